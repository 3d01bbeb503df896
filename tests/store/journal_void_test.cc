// The log of a replica set's member: records that void others, by whatever epoch; marks of what is
// committed; a start that applies no more than that.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "store/journal/recovery.h"
#include "tests/manual_clock.h"
#include "tests/store/journal_rig.h"

namespace cellar::journal_void_test {

uint64_t Seeds(uint64_t usual) {
  const char* text = std::getenv("CELLAR_TEST_SEEDS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

// One record of the log that is in force, as a key: "epoch-seq" of who wrote it and how often.
struct Entry {
  Lsn lsn;
  std::string payload;
  friend bool operator==(const Entry&, const Entry&) = default;
};

// A journal as a follower of a set uses it: records come with their numbers.
class Member {
 public:
  explicit Member(FaultyFileSystem* disk) : disk_(disk) {
    options_.directory = "db";
    options_.sync_policy = SyncPolicy::kAlways;
    options_.segment_bytes_max = 4096;
    options_.allocation_bytes_max = 2048;
    options_.allocation_bytes_min = 512;
    options_.retry_delay_micros = 500;
    options_.set_member = true;
    options_.members = [this] { return members_; };
  }

  void Open() {
    machine_ = std::make_unique<MapMachine>();
    auto opened = Journal::Open(options_, *disk_, Clock::System(), *machine_, {});
    if (!opened.ok()) FAIL(opened.status().text());
    journal_ = *std::move(opened);
  }
  void Close() { journal_.reset(); }
  void Append(Lsn lsn, const std::string& payload) {
    REQUIRE(journal_->Reserve(payload.size()).ok());
    journal_->AppendAt({.lsn = lsn, .commit_micros = ++time_}, payload, 1);
  }
  void AppendMembers(Lsn lsn, const std::string& payload) {
    REQUIRE(journal_->Reserve(payload.size()).ok());
    journal_->AppendAt({.lsn = lsn, .commit_micros = ++time_, .kind = RecordKind::kMembers},
                       payload, 0);
  }
  void SetMembers(const std::string& payload) { members_ = payload; }
  void Mark(Lsn lsn) {
    REQUIRE(journal_->Reserve(kMarkBytesMax).ok());
    journal_->AppendMark({.lsn = lsn, .retention_micros = 0});
  }
  bool WaitDurable() {
    journal_->Flush();
    for (int i = 0; i < 200'000; ++i) {
      journal_->Poll();
      if (journal_->durable_appended() == journal_->appended()) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return false;
  }
  Journal& journal() { return *journal_; }
  MapMachine& machine() { return *machine_; }
  void SetClock(int64_t micros) { time_ = micros; }

 private:
  FaultyFileSystem* const disk_;
  JournalOptions options_;
  std::unique_ptr<MapMachine> machine_;
  std::unique_ptr<Journal> journal_;
  std::string members_;
  int64_t time_{1'000'000};
};

TEST_CASE("A member's log voids records, also by a lower epoch, and goes on", "[journal][set]") {
  FaultyFileSystem disk;
  Member member(&disk);
  member.Open();
  member.Append({1, 1}, "a=1;");
  member.Append({1, 2}, "b=1;");
  CHECK(member.journal().appended() == 2);
  REQUIRE(member.WaitDurable());
  member.Mark({1, 2});
  member.SetClock(9'000'000);
  member.Append({3, 3}, "lost=1;");
  member.Append({3, 4}, "lost=2;");
  REQUIRE(member.WaitDurable());
  CHECK(member.journal().durable_lsn() == Lsn{3, 4});
  // Figure 8: what came from epoch 2 takes the place, at the time of another clock.
  member.SetClock(2'000'000);
  member.Append({2, 3}, "c=1;");
  CHECK(member.journal().last_lsn() == Lsn{2, 3});
  CHECK(member.journal().appended() == 5);
  REQUIRE(member.WaitDurable());
  CHECK(member.journal().durable_lsn() == Lsn{2, 3});
  CHECK(member.journal().LastSeqOf(3) == 3);
  member.Append({4, 4}, "d=1;");
  REQUIRE(member.WaitDurable());
  CHECK(member.journal().durable_lsn() == Lsn{4, 4});
  CHECK(member.journal().LastSeqOf(1) == 2);
  CHECK(member.journal().LastSeqOf(2) == 3);
  CHECK(member.journal().LastSeqOf(4) == 4);

  member.Close();
  member.Open();
  CHECK(member.machine().Get("b") == "1");
  CHECK(member.machine().Get("c") == "(none)");  // not known to be committed
  CHECK(member.machine().Get("lost") == "(none)");
  CHECK(member.journal().last_lsn() == Lsn{4, 4});
  CHECK(member.journal().appended() == 4);
  const std::vector<PendingRecord> pending = member.journal().TakePending();
  REQUIRE(pending.size() == 2);
  CHECK(pending[0].head.lsn == Lsn{2, 3});
  CHECK(pending[0].payload == "c=1;");
  CHECK(pending[1].head.lsn == Lsn{4, 4});
  // A record of a slower clock follows.
  member.SetClock(2'000'100);
  member.Append({4, 5}, "e=1;");
  member.Mark({4, 5});
  REQUIRE(member.WaitDurable());
  CHECK(member.journal().durable_lsn() == Lsn{4, 5});
  member.Close();
  member.Open();
  CHECK(member.machine().Get("c") == "1");
  CHECK(member.machine().Get("e") == "1");
  CHECK(member.machine().Get("lost") == "(none)");
  CHECK(member.journal().TakePending().empty());
}

TEST_CASE("A snapshot of a log that has voided records takes their place", "[journal][set]") {
  FaultyFileSystem disk;
  Member member(&disk);
  member.Open();
  member.Append({1, 1}, "a=1;");
  REQUIRE(member.machine().Apply("a=1;").ok());
  member.Append({7, 2}, "lost=1;");
  REQUIRE(member.WaitDurable());
  member.Append({6, 2}, "b=1;");
  REQUIRE(member.machine().Apply("b=1;").ok());
  CHECK(member.journal().SaveNow().code() == ErrorCode::kTryAgain);
  member.journal().SetCommitted({6, 2});
  // Up to (6, 2), which is below what it voids; the log that stays holds all of it.
  member.journal().SetBacklog(1 << 20);
  REQUIRE(member.journal().SaveNow().ok());
  member.Append({8, 3}, "c=1;");
  REQUIRE(member.WaitDurable());
  member.Close();
  member.Open();
  CHECK(member.machine().Get("a") == "1");
  CHECK(member.machine().Get("b") == "1");
  CHECK(member.machine().Get("lost") == "(none)");
  CHECK(member.journal().recovery().snapshot_lsn == Lsn{6, 2});
  CHECK(member.journal().last_lsn() == Lsn{8, 3});
  const std::vector<PendingRecord> pending = member.journal().TakePending();
  REQUIRE(pending.size() == 1);
  CHECK(pending[0].head.lsn == Lsn{8, 3});
}

// The epochs of all records behind the snapshot, from the shape.
std::vector<uint32_t> EpochsOf(const LogShape& shape) {
  std::vector<uint32_t> epochs;
  size_t next = 0;
  for (uint64_t i = shape.snapshot.seq + 1; i <= shape.last.seq; ++i) {
    if (next < shape.begins.size() && shape.begins[next].seq == i) ++next;
    REQUIRE(next > 0);
    epochs.push_back(shape.begins[next - 1].epoch);
  }
  return epochs;
}

TEST_CASE("A start tells what consensus must know of the log", "[journal][set]") {
  FaultyFileSystem disk;
  Member member(&disk);
  member.Open();
  CHECK(member.journal().TakeShape().last == Lsn{});
  member.Append({1, 1}, "a=1;");
  member.Append({1, 2}, "b=1;");
  member.AppendMembers({2, 3}, "who");
  member.Mark({2, 3});
  member.Append({5, 4}, "lost=1;");
  member.AppendMembers({4, 4}, "others");
  member.Append({6, 5}, "c=1;");
  REQUIRE(member.WaitDurable());
  member.Close();
  member.Open();
  LogShape shape = member.journal().TakeShape();
  CHECK(shape.snapshot == Lsn{});
  CHECK(shape.last == Lsn{6, 5});
  CHECK(shape.committed == Lsn{2, 3});
  CHECK(EpochsOf(shape) == std::vector<uint32_t>{1, 1, 2, 4, 6});
  REQUIRE(shape.named.size() == 2);
  CHECK(shape.named[0].lsn == Lsn{2, 3});
  CHECK(shape.named[0].payload == "who");
  CHECK(shape.named[1].lsn == Lsn{4, 4});
  CHECK(shape.named[1].payload == "others");
  // With a snapshot, in which the first members are.
  member.SetMembers("who");
  member.journal().SetCommitted({6, 5});
  REQUIRE(member.journal().SaveNow().ok());
  member.Append({6, 6}, "d=1;");
  REQUIRE(member.WaitDurable());
  member.Close();
  member.Open();
  shape = member.journal().TakeShape();
  CHECK(shape.snapshot == Lsn{6, 5});
  CHECK(shape.snapshot_members == "who");
  CHECK(shape.named.empty());
  CHECK(EpochsOf(shape) == std::vector<uint32_t>{6});
}

TEST_CASE("A member's snapshot counts once what it holds is committed", "[journal][set]") {
  FaultyFileSystem disk;
  Member member(&disk);
  member.Open();
  for (const char* payload : {"a=1;", "b=1;"}) {
    member.Append({1, payload[0] == 'a' ? 1u : 2u}, payload);
    REQUIRE(member.machine().Apply(payload).ok());
  }
  REQUIRE(member.WaitDurable());
  member.journal().SetCommitted({1, 1});
  REQUIRE(member.journal().StartSnapshot().ok());
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    member.journal().Poll();
  }
  CHECK(member.journal().snapshot_running());
  SECTION("it is") {
    member.journal().SetCommitted({1, 2});
    while (member.journal().snapshot_running()) member.journal().Poll();
    CHECK(member.journal().Stats().last_save_ok);
    member.Close();
    member.Open();
    CHECK(member.journal().recovery().snapshot_lsn == Lsn{1, 2});
    CHECK(member.machine().Get("b") == "1");
  }
  SECTION("it is voided") {
    member.Append({2, 2}, "c=1;");
    while (member.journal().snapshot_running()) member.journal().Poll();
    CHECK_FALSE(member.journal().Stats().last_save_ok);
    member.Mark({2, 2});
    REQUIRE(member.WaitDurable());
    for (const std::string& path : disk.Paths()) CHECK(path.find("snapshot") == std::string::npos);
    member.Close();
    member.Open();
    CHECK_FALSE(member.journal().recovery().from_snapshot);
    CHECK(member.machine().Get("b") == "(none)");
    CHECK(member.machine().Get("c") == "1");
  }
  SECTION("the process ends before") {
    member.Close();
    member.Open();
    CHECK_FALSE(member.journal().recovery().from_snapshot);
    CHECK(member.journal().TakePending().size() == 2);
  }
}

// Voids at random, power lost at random: what is found is the log as it stood at some moment not
// before the newest one of which all was durable.
TEST_CASE("After a power loss a member's log is what it was at some moment",
          "[journal][set][crash]") {
  const uint64_t seeds = Seeds(150);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    FaultyFileSystem disk;
    disk.SetSyncMicros(seed % 2 * 50);
    Member member(&disk);
    std::vector<Entry> log;                   // in force
    std::vector<std::vector<Entry>> moments;  // after each record
    uint64_t committed = 0;
    uint32_t epoch = 1;
    uint64_t durable = 0;  // of the moments
    for (int round = 0; round < 3; ++round) {
      member.Open();
      const uint64_t base = member.journal().appended();
      moments.assign(1, log);
      durable = 0;
      const uint64_t turns = 1 + random.Below(25);
      for (uint64_t turn = 0; turn < turns; ++turn) {
        for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
          uint64_t seq = log.size() + 1;
          if (random.OneIn(6)) seq = committed + 1 + random.Below(log.size() - committed + 1);
          const bool voids = seq <= log.size();
          const uint32_t before = seq > 1 ? log[seq - 2].lsn.epoch : 1;
          Lsn lsn{before, seq};
          if (voids || random.OneIn(5)) {
            epoch += random.OneIn(2) ? 1 : 0;
            lsn.epoch = before + static_cast<uint32_t>(random.Below(epoch - before + 1));
          }
          // The same record in its own place voids nothing.
          if (voids && lsn.epoch == log.back().lsn.epoch) lsn.epoch = ++epoch;
          log.resize(seq - 1);
          const std::string payload =
              "k" + std::to_string(random.Below(5)) + "=" + std::to_string(random.Next()) + ";";
          member.Append(lsn, payload);
          log.push_back({lsn, payload});
          moments.push_back(log);
        }
        if (random.OneIn(4)) {
          committed += random.Below(log.size() - committed + 1);
          if (committed > 0) member.Mark(log[committed - 1].lsn);
        }
        member.journal().Flush();
        if (random.OneIn(3)) {
          REQUIRE(member.WaitDurable());
          CHECK(member.journal().durable_lsn() == log.back().lsn);
        }
      }
      durable = member.journal().durable_appended() - base;
      REQUIRE(durable < moments.size());
      random.OneIn(2) ? disk.PowerLoss(random.Next()) : disk.Kill();
      member.Close();
      disk.Reboot();

      MapMachine machine;
      ManualClock clock;
      const auto found =
          RecoverStore(disk, clock, "db", machine, {.up_to = ApplyUpTo::kCommitMark}, {});
      REQUIRE(found.ok());
      // Marks lie in the same log: what they name is in force and applied.
      member.Open();
      const LogShape shape = member.journal().TakeShape();
      member.Close();
      std::vector<Entry> tail;
      for (const PendingRecord& record : found->pending)
        tail.push_back({record.head.lsn, record.payload});
      const uint64_t applied = found->end.last.seq - tail.size();
      bool fits = false;
      for (uint64_t at = durable; at < moments.size() && !fits; ++at) {
        if (moments[at].size() != found->end.last.seq) continue;
        std::vector<Entry> whole = moments[at];
        if (std::vector<Entry>(whole.begin() + static_cast<std::ptrdiff_t>(applied), whole.end()) !=
            tail)
          continue;
        MapMachine expected;
        for (uint64_t i = 0; i < applied; ++i) REQUIRE(expected.Apply(whole[i].payload).ok());
        if (expected.Content() != machine.Content()) continue;
        std::vector<uint32_t> epochs;
        for (const Entry& entry : whole) epochs.push_back(entry.lsn.epoch);
        if (EpochsOf(shape) != epochs) continue;
        log = std::move(whole);
        fits = true;
      }
      REQUIRE(fits);
      committed = std::max<uint64_t>(applied, std::min<uint64_t>(committed, log.size()));
      committed = applied;  // what nobody knows to be committed may be voided by the next one
    }
  }
}

}  // namespace cellar::journal_void_test
