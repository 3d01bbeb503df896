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
      // An older version's offer ends before the commit time.
      const bool is_older = kind == kRaftInstall && n + sizeof(int64_t) == body.size();
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
  };
  for (const Planted& fault : planted) {
    INFO(fault.name);
    SimOptions options;
    options.members = fault.members;
    options.nodes = fault.members ? 5 : 3;
    options.witnesses = fault.witnesses;
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
    {"vote after a start", VoteAfterStart, [](SimFaults* f) { f->set.no_vote_pause = true; }},
    {"blocked by terms", BlockedByTerms, [](SimFaults* f) { f->set.no_told_term = true; }},
    {"vote of a stranger", VoteOfStranger,
     [](SimFaults* f) { f->set.no_vote_of_strangers = true; }},
    {"a leader not forgotten", VoteOfStranger,
     [](SimFaults* f) { f->set.no_forgotten_leader = true; }},
    {"compacted past the leader", CompactedPastTheLeader,
     [](SimFaults* f) { f->set.no_cut = true; }},
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
    {"the witness has no state", WitnessWithoutState,
     [](SimFaults* f) { f->witness_offers = true; }},
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
