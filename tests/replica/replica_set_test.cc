// Replica sets: what the glue around libraft's core keeps, and the simulation, with all rules and
// with each one left out.
#include "replica/set/replica_set.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/replica/forgeries.h"
#include "tests/replica/schedules.h"
#include "tests/replica/simulation.h"

namespace cellar::replica_set_test {

uint64_t Seeds(uint64_t usual) {
  const char* text = std::getenv("CELLAR_TEST_SEEDS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

SetMembers Three() {
  SetMembers members;
  members.index = 1;
  members.list = {{.id = 1, .kind = MemberKind::kVoter, .host = "a", .port = 6479},
                  {.id = 2, .kind = MemberKind::kWitness, .host = "b.example", .port = 1},
                  {.id = 3, .kind = MemberKind::kStandby, .host = "::1", .port = 65535}};
  return members;
}

TEST_CASE("Members survive the way into a record and back", "[replica][set]") {
  const SetMembers members = Three();
  const std::string payload = EncodeMembers(members);
  SetMembers read;
  REQUIRE(DecodeMembers(payload, &read));
  CHECK(read == members);
  CHECK(read.Find(2)->votes());
  CHECK_FALSE(read.Find(3)->votes());
  for (const MemberKind kind : {MemberKind::kJoining, MemberKind::kStandby}) {
    SetMembers one = members;
    one.list[0].kind = kind;
    REQUIRE(DecodeMembers(EncodeMembers(one), &read));
    CHECK(read == one);
    CHECK_FALSE(read.list[0].votes());
  }
  CHECK(read.Find(4) == nullptr);
  // One with data, a witness, one that joins or stands by.
  CHECK(members.CountVoters().with_data == 1);
  CHECK(members.CountVoters().witnesses == 1);
  CHECK_FALSE(members.CountVoters().fit());
  SetMembers fit = members;
  fit.list.push_back({.id = 4, .kind = MemberKind::kVoter, .host = "d", .port = 1});
  CHECK(fit.CountVoters().fit());
  for (size_t n = 0; n < payload.size(); ++n)
    CHECK_FALSE(DecodeMembers(payload.substr(0, n), &read));
  CHECK_FALSE(DecodeMembers(payload + "x", &read));
  SetMembers twice = members;
  twice.list.push_back(members.list[0]);
  CHECK_FALSE(DecodeMembers(EncodeMembers(twice), &read));
}

TEST_CASE("The log of terms says what is durable where records come and go", "[replica][set]") {
  EntryLog log;
  const std::string payload = EncodeMembers(Three());
  REQUIRE(log.Append({1, 1}, RecordKind::kMembers, payload));  // the 1st
  REQUIRE(log.Append({2, 2}, RecordKind::kCommand, {}));       // 2nd
  REQUIRE(log.Append({3, 2}, RecordKind::kCommand, {}));       // 3rd, voids (2, 2)
  REQUIRE(log.Append({2, 2}, RecordKind::kCommand, {}));       // 4th: it comes again (figure 8)
  REQUIRE(log.Append({4, 3}, RecordKind::kCommand, {}));       // 5th
  CHECK(log.last() == Lsn{4, 3});
  CHECK(log.TermOf(2) == 2);
  CHECK(log.TermOf(4) == 0);
  CHECK(log.DurableIndex(0) == 0);
  CHECK(log.DurableIndex(1) == 1);
  CHECK(log.DurableIndex(3) == 1);  // (3, 2) is, which is void
  CHECK(log.DurableIndex(4) == 2);
  CHECK(log.DurableIndex(5) == 3);
  CHECK(log.members() == Three());
  log.TakeSnapshot({2, 2}, 2);
  CHECK(log.first() == 2);
  CHECK(log.TermOf(1) == 0);
  CHECK(log.members() == Three());
  CHECK(log.DurableIndex(4) == 2);
  log.TakeSnapshot({4, 3}, 4);
  CHECK(log.first() == 4);
  CHECK(log.TermOf(3) == 4);
  CHECK(log.DurableIndex(0) == 3);
  CHECK_FALSE(log.Append({4, 4}, RecordKind::kMembers, payload));  // it is not the first record
}

TEST_CASE("The log of terms agrees with a plain list", "[replica][set]") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    EntryLog log;
    std::vector<std::pair<Lsn, uint64_t>> plain;  // with their ordinals
    uint32_t term = 1;
    uint64_t ordinal = 0;
    uint64_t snapshot = 0;
    for (int i = 0; i < 60; ++i) {
      if (random.OneIn(8) && plain.size() > snapshot) {
        const uint64_t index = snapshot + 1 + random.Below(plain.size() - snapshot);
        const uint64_t first = std::max(log.first(), index + 1 - std::min(index, random.Below(4)));
        log.TakeSnapshot(plain[index - 1].first, first);
        snapshot = index;
      }
      uint64_t at = plain.size() + 1;
      if (random.OneIn(5)) at = snapshot + 1 + random.Below(plain.size() - snapshot + 1);
      plain.resize(at - 1);
      const uint32_t before = plain.empty() ? 1 : plain.back().first.epoch;
      if (random.OneIn(4)) ++term;
      const Lsn lsn{before + static_cast<uint32_t>(random.Below(term - before + 1)), at};
      REQUIRE(log.Append(lsn, RecordKind::kCommand, {}));
      plain.emplace_back(lsn, ++ordinal);
      REQUIRE(log.last() == lsn);
      for (uint64_t j = log.first(); j <= plain.size(); ++j)
        REQUIRE(log.TermOf(j) == plain[j - 1].first.epoch);
      const uint64_t durable = random.Below(ordinal + 1);
      uint64_t expected = std::max(snapshot, log.first() - 1);
      for (uint64_t j = log.first(); j <= plain.size() && plain[j - 1].second <= durable; ++j)
        expected = std::max(expected, j);
      REQUIRE(std::max(log.DurableIndex(durable), snapshot) == expected);
    }
  }
}

TEST_CASE("The log of terms begins as a start has found it", "[replica][set]") {
  SetMembers later = Three();
  later.index = 9;
  LogShape shape{.snapshot = {2, 7},
                 .snapshot_members = EncodeMembers(Three()),
                 .begins = {{2, 8}, {4, 9}},
                 .named = {{{4, 9}, EncodeMembers(later)}},
                 .last = {4, 10},
                 .committed = {2, 7}};
  const auto log = EntryLog::Of(shape);
  REQUIRE(log);
  CHECK(log->first() == 8);
  CHECK(log->last() == Lsn{4, 10});
  CHECK(log->snapshot() == Lsn{2, 7});
  CHECK(log->TermOf(7) == 2);
  CHECK(log->TermOf(8) == 2);
  CHECK(log->TermOf(9) == 4);
  CHECK(log->MembersAt(8) == Three());
  CHECK(log->members() == later);
  shape.named[0].payload = "nobody";
  CHECK_FALSE(EntryLog::Of(shape));
  CHECK(EntryLog::Of({})->last() == Lsn{});
}

std::string FrameOf(const SetMessage& message) {
  FrameHead head;
  head.kind = FrameKindOf(message.raft.kind);
  head.term = static_cast<uint32_t>(message.raft.term);
  head.from = message.raft.peer;
  return EncodeFrame(head, EncodeSetMessage(message));
}

TEST_CASE("Messages of a set survive the way into a frame and back", "[replica][set]") {
  std::string wire(kRecordHeaderBytes + 5, '\0');
  LayOutRecord(wire.data(), 0, {.lsn = {7, 12}, .commit_micros = 99}, "hello");
  (void)SealRecord(wire.data());
  for (int kind = kRaftAppend; kind <= kRaftTimeoutNow; ++kind) {
    INFO("kind " << kind);
    SetMessage sent;
    sent.raft.kind = kind;
    sent.raft.peer = 5;
    sent.raft.term = 70'000;
    sent.raft.version = 2;
    if (kind == kRaftAppend) {
      sent.raft.previous_index = 11;
      sent.raft.previous_term = 6;
      sent.raft.commit = 10;
      sent.raft.n_entries = 1;
      sent.retention_micros = 77;
      sent.wire = wire;
    } else if (kind == kRaftInstall) {
      sent.offer = {.lsn = {6, 9}, .bytes = 1, .hash = 2, .number = 3, .members = Three()};
      sent.offer.commit_micros = 99;
    } else {
      sent.raft.last_index = 4;
      sent.raft.rejected = kind == kRaftAppendResult ? 8 : 0;
      sent.raft.granted = kind == kRaftVoteResult ? 1 : 0;
      sent.raft.is_pre_vote = kind == kRaftVote ? 1 : 0;
    }
    const std::string bytes = FrameOf(sent);
    FrameReader reader = MakeSetFrameReader();
    reader.Add(bytes);
    Frame frame;
    REQUIRE(*reader.Next(&frame));
    REQUIRE(IsSetFrame(frame.kind));
    SetMessage read;
    REQUIRE(DecodeSetMessage(frame, &read).ok());
    CHECK(read.raft.kind == kind);
    CHECK(read.raft.peer == 5);
    CHECK(read.raft.term == 70'000);
    CHECK(read.raft.version == 2);
    CHECK(read.raft.previous_index == sent.raft.previous_index);
    CHECK(read.raft.commit == sent.raft.commit);
    CHECK(read.raft.rejected == sent.raft.rejected);
    CHECK(read.raft.granted == sent.raft.granted);
    CHECK(read.raft.is_pre_vote == sent.raft.is_pre_vote);
    CHECK(read.offer.lsn == sent.offer.lsn);
    CHECK(read.offer.commit_micros == sent.offer.commit_micros);
    CHECK(read.offer.members == sent.offer.members);
    CHECK(read.records.size() == sent.raft.n_entries);
    if (kind == kRaftAppend) {
      CHECK(read.records[0].lsn == Lsn{7, 12});
      CHECK(read.records[0].payload == "hello");
    }
    const std::string_view body = frame.body;
    for (size_t n = 0; n < body.size(); ++n) {
      frame.body = body.substr(0, n);
      // An older version's offer ends before the commit time, its results before the term.
      const bool is_older =
          (kind == kRaftInstall || kind == kRaftAppendResult) && n + sizeof(int64_t) == body.size();
      CHECK(DecodeSetMessage(frame, &read).ok() == is_older);
    }
  }
}

// --- the simulation

void RunSchedules(uint64_t first, uint64_t count, SimOptions options) {
  if (raft_core_available() == 0) {
    WARN("built without libraft: skipped");
    return;
  }
  Simulation simulation(std::move(options));
  for (uint64_t seed = first; seed < first + count; ++seed) {
    try {
      simulation.Run(seed);
    } catch (const Violation& violation) {
      FAIL(violation.what);
    }
  }
  CHECK(simulation.stats.acknowledged > count * 100);
}

TEST_CASE("Random schedules: three voters", "[replica][set][simulation]") {
  RunSchedules(1, Seeds(200), {});
}

TEST_CASE("Random schedules: readers wait everywhere", "[replica][set][simulation]") {
  SimOptions options;
  options.awaits = true;
  RunSchedules(1, Seeds(100), options);
  options.nodes = 5;
  options.members = true;
  RunSchedules(1, Seeds(50), options);
}

// How long lone writes take until all know that they are committed, on average.
int64_t MicrosUntilKnown(bool awaits) {
  constexpr int64_t kWrites{100};
  SimOptions options = ByHand({}, 3, false);
  options.awaits = awaits;
  Simulation sim(options);
  sim.Begin(1);
  SimNode& leader = *WaitForLeader(sim);
  const std::vector<SimNode*> others = Others(sim, leader);
  Settle(sim, 500'000);
  int64_t micros = 0;
  for (int64_t i = 0; i < kWrites; ++i) {
    leader.Write(1);
    const uint64_t last = leader.log->last().seq;
    const int64_t begin = sim.now();
    const auto know = [&](const SimNode* node) { return node->set->commit().seq >= last; };
    REQUIRE(sim.WaitFor(1'000'000, [&] { return know(others[0]) && know(others[1]); }));
    micros += sim.now() - begin;
    Settle(sim, 40'000 + i * 977 % 30'000);
  }
  return micros / kWrites;
}

TEST_CASE("A follower with readers that wait is told a commit at once, not with a heartbeat",
          "[replica][set][simulation]") {
  if (raft_core_available() == 0) return;
  const int64_t otherwise = MicrosUntilKnown(false);
  const int64_t awaiting = MicrosUntilKnown(true);
  INFO("awaiting " << awaiting << ", otherwise " << otherwise);
  CHECK(awaiting * 2 < otherwise);
}

TEST_CASE("Random schedules: five voters", "[replica][set][simulation]") {
  SimOptions options;
  options.nodes = 5;
  RunSchedules(1, Seeds(150), options);
}

TEST_CASE("Random schedules: members come and go, disks are lost", "[replica][set][simulation]") {
  SimOptions options;
  options.nodes = 5;
  options.members = true;
  RunSchedules(1, Seeds(150), options);
}

TEST_CASE("Random schedules: long records over slow links", "[replica][set][simulation]") {
  SimOptions options;
  options.link_bytes = kLongFrameBytes / 500;
  RunSchedules(1, Seeds(60), options);
}

// Directories that come back older, whole or in part: nothing that was acknowledged is lost, who
// holds less is refused, and nobody else is.
TEST_CASE("Random schedules: directories come back as older copies", "[replica][set][simulation]") {
  SimOptions options;
  options.copies = true;
  RunSchedules(1, Seeds(150), options);
  options.nodes = 5;
  options.members = true;
  RunSchedules(1, Seeds(60), options);
}

// Damaged frames with right checksums: the set goes on.
TEST_CASE("Random schedules: frames are damaged, and their checksums are right",
          "[replica][set][simulation]") {
  SimOptions options;
  options.damage = 0.03;
  RunSchedules(1, Seeds(200), options);
  options.nodes = 5;
  options.members = true;
  RunSchedules(1, Seeds(60), options);
}

TEST_CASE("Terms that are named are followed in steps", "[replica][set]") {
  CHECK(TermTowards(5, 5) == 5);
  CHECK(TermTowards(5, 4) == 4);
  CHECK(TermTowards(5, 6) == 6);
  CHECK(TermTowards(5, UINT32_MAX) == 5 + kTermReach);
  CHECK(TermTowards(kTermCeiling - 1, UINT32_MAX) == kTermCeiling);
  CHECK(TermTowards(kTermCeiling, UINT32_MAX) == kTermCeiling + 1);
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t own = random.Next() >> (32 + random.Below(32));
    const uint64_t named = random.Next() >> (32 + random.Below(32));
    const uint64_t next = TermTowards(own, named);
    CHECK(next <= named);
    CHECK((next > own) == (named > own));
    CHECK((next <= kTermCeiling || next <= own + 1));
  }
}

TEST_CASE("What a member remembers survives the way into a file and back", "[replica][set]") {
  MemberMemory memory{.cluster = 7, .start = 9, .closed = true, .whole = true};
  PeerPast& past = memory.peers[5];
  past.start = 3;
  past.certain = true;
  past.now.acknowledged = {2, 100};
  past.now.epoch = 1;
  past.before.led = {4, 8};
  past.before.lazy = true;
  const std::string text = EncodeMemory(memory);
  MemberMemory read;
  REQUIRE(DecodeMemory(text, &read));
  CHECK(read == memory);
  for (size_t n = 0; n < text.size(); ++n) CHECK_FALSE(DecodeMemory(text.substr(0, n), &read));
  FaultyFileSystem disk;
  REQUIRE(disk.CreateDirectory("n").ok());
  for (uint64_t i = 0; i < 6; ++i) {
    auto file = MemberFile::Open(disk, "n", i + 1);
    REQUIRE(file.ok());
    if (i > 0) CHECK((*file)->memory().start == i);
    memory.start = i + 1;
    REQUIRE((*file)->Write(memory, Durable::kYes).ok());
    // What is not synced may be torn, and leaves what is.
    MemberMemory lost = memory;
    lost.start = 100;
    REQUIRE((*file)->Write(lost, Durable::kNo).ok());
    REQUIRE((*file)->Write(lost, Durable::kNo).ok());
    std::string bytes = disk.Content("n/cellar.member");
    const size_t at = bytes.find(EncodeMemory(lost));
    REQUIRE(at != std::string::npos);
    bytes[at + 1] ^= 1;
    disk.SetContent("n/cellar.member", bytes);
  }
}

// Whether `run` ends in a violation or a failed assertion; in a process of its own.
bool IsFound(const std::function<void()>& run) {
  std::fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    (void)!std::freopen("/dev/null", "w", stderr);
    try {
      run();
    } catch (const Violation&) {
      _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

struct Planted {
  const char* name;
  void (*plant)(SimFaults*);
  bool members;  // the kind of random schedule that finds it
  uint32_t witnesses{0};
  bool copies{false};
};

TEST_CASE("Random schedules find planted faults", "[replica][set][simulation]") {
  if (raft_core_available() == 0) return;
  const Planted planted[] = {
      {"no rollback", [](SimFaults* f) { f->no_rollback = true; }, false},
      {"replies before commit", [](SimFaults* f) { f->replies_before_commit = true; }, false},
      {"vote not synced", [](SimFaults* f) { f->vote_not_synced = true; }, false},
      {"lease too long", [](SimFaults* f) { f->set.long_lease = true; }, true},
      {"snapshot before commit", [](SimFaults* f) { f->early_snapshot = true; }, false},
      {"a change behind other records", [](SimFaults* f) { f->set.no_divide = true; }, true},
      {"members out of order", [](SimFaults* f) { f->set.no_order = true; }, true},
      {"a witness leads on", [](SimFaults* f) { f->witness_stays = true; }, false, 1},
      {"copies are trusted", [](SimFaults* f) { f->trusts_copies = true; }, false, 0, true},
  };
  for (const Planted& fault : planted) {
    INFO(fault.name);
    SimOptions options;
    options.members = fault.members;
    options.nodes = fault.members ? 5 : 3;
    options.witnesses = fault.witnesses;
    options.copies = fault.copies;
    fault.plant(&options.faults);
    CHECK(IsFound([&] {
      Simulation simulation(options);
      for (uint64_t seed = 1; seed <= 150; ++seed) simulation.Run(seed);
    }));
  }
}

struct Story {
  const char* name;
  void (*run)(const SimFaults&, uint64_t seed);
  void (*plant)(SimFaults*);
};

const Story kStories[] = {
    {"figure 8", FigureEight, [](SimFaults* f) { f->set.counts_old_terms = true; }},
    {"change before barrier", ChangeBeforeBarrier, [](SimFaults* f) { f->set.no_barrier = true; }},
    // A start that waits for what the others remember hides it.
    {"vote after a start", VoteAfterStart,
     [](SimFaults* f) { f->set.no_vote_pause = f->trusts_copies = true; }},
    {"blocked by terms", BlockedByTerms, [](SimFaults* f) { f->set.no_told_term = true; }},
    {"vote of a stranger", VoteOfStranger,
     [](SimFaults* f) { f->set.no_vote_of_strangers = true; }},
    {"a leader not forgotten", VoteOfStranger,
     [](SimFaults* f) { f->set.no_forgotten_leader = true; }},
    // Where a leader gives up its term when it is refused what was acknowledged, that ends it, too.
    {"compacted past the leader", CompactedPastTheLeader,
     [](SimFaults* f) { f->set.no_cut = f->set.keeps_match = true; }},
    {"wiped node", WipedNode, [](SimFaults* f) { f->wiped_node_votes = true; }},
    {"sole voter", SoleVoter, [](SimFaults* f) { f->set.no_new_term = true; }},
    {"change behind a record", ChangeBehindRecord, [](SimFaults* f) { f->set.no_divide = true; }},
    {"changes together", ChangesTogether, [](SimFaults* f) { f->set.changes_together = true; }},
    {"change without quorum", ChangeWithoutQuorum,
     [](SimFaults* f) { f->set.no_quorum_check = true; }},
    {"only the witness has it", OnlyTheWitness, [](SimFaults* f) { f->witness_stays = true; }},
    {"a long record", LongRecord, [](SimFaults* f) { f->set.deaf_to_arriving = true; }},
    {"cut in a long record", CutInALongRecord,
     [](SimFaults* f) { f->set.deaf_to_arriving = true; }},
    {"a long record is not repeated", LongRecordIsNotRepeated,
     [](SimFaults* f) { f->set.repeats_long = true; }},
    {"what was due is not shown behind a transfer", TimeBeforeATransfer,
     [](SimFaults* f) { f->set.untold_time = true; }},
    {"the witness has no state", WitnessWithoutState,
     [](SimFaults* f) { f->witness_offers = true; }},
    {"a forged acknowledgement", ForgedAcknowledgement,
     [](SimFaults* f) { f->set.any_ack = true; }},
    {"a forged match", ForgedMatch, [](SimFaults* f) { f->set.keeps_match = true; }},
    {"a forged term", ForgedTerm, [](SimFaults* f) { f->set.any_term = true; }},
    {"a forged leader", ForgedLeader, [](SimFaults* f) { f->set.one_leader = true; }},
    {"a forged contradiction", ForgedContradiction,
     [](SimFaults* f) { f->set.one_contradiction = true; }},
    {"a forged offer", ForgedOffer, [](SimFaults* f) { f->set.one_offer = true; }},
    {"a forged time", ForgedTime, [](SimFaults* f) { f->set.one_time = true; }},
    {"a forged echo", ForgedEcho, [](SimFaults* f) { f->set.any_echo = true; }},
    {"a forged greeting", ForgedGreeting, [](SimFaults* f) { f->one_greeting = true; }},
};

TEST_CASE("Schedules by hand hold, and each finds its fault", "[replica][set][simulation]") {
  if (raft_core_available() == 0) return;
  for (const Story& story : kStories) {
    bool found = false;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      INFO(story.name << ", seed " << seed);
      try {
        story.run({}, seed);
      } catch (const Violation& violation) {
        FAIL(violation.what);
      }
      SimFaults faults;
      story.plant(&faults);
      if (!found) found = IsFound([&] { story.run(faults, seed); });
    }
    INFO(story.name);
    CHECK(found);
  }
}

}  // namespace cellar::replica_set_test
