// What format 2 of the log added: kinds of records, commit times, records that void others, and
// marks of what is committed; and what recovery makes of them.
#include "store/format/log_format.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/coding.h"
#include "store/journal/recovery.h"
#include "tests/manual_clock.h"
#include "tests/store/journal_rig.h"

namespace cellar::log_format_test {

// A folder with one open segment, made record by record.
class HandMadeLog {
 public:
  HandMadeLog() {
    REQUIRE(disk.CreateDirectory("db").ok());
    Manifest manifest;
    manifest.segments.push_back({.number = 1, .after = {}, .end = std::nullopt});
    manifest.next = 2;
    REQUIRE(InstallManifest(disk, "db", manifest).status.ok());
  }

  void Add(RecordKind kind, Lsn lsn, std::string_view payload, int64_t commit_micros = 0) {
    if (commit_micros == 0) commit_micros = ++time_;
    time_ = commit_micros;
    const size_t at = bytes_.size();
    bytes_.resize(at + kRecordHeaderBytes + payload.size());
    LayOutRecord(&bytes_[at], chain_, {lsn, {}, commit_micros, kind}, payload);
    chain_ = SealRecord(&bytes_[at]);
    last_ = lsn;
  }
  void Set(Lsn lsn, std::string_view key) {
    Add(RecordKind::kCommand, lsn, std::string(key) + "=" + FormatLsn(lsn) + ";");
  }
  void Mark(Lsn lsn) {
    Add(RecordKind::kCommit, last_, EncodeCommitMark({.lsn = lsn, .retention_micros = 7}));
  }

  Result<RecoveredStore> Recover(MapMachine* machine, ApplyUpTo up_to) {
    disk.SetContent("db/cellar-000001.log", bytes_);
    return RecoverStore(disk, Clock::System(), "db", *machine, {.up_to = up_to}, {});
  }

  FaultyFileSystem disk;

 private:
  std::string bytes_ = EncodeSegmentHeader({.number = 1});
  uint64_t chain_{kChainStart};
  int64_t time_{0};
  Lsn last_;
};

TEST_CASE("Records read back with their kind and commit time", "[log_format]") {
  std::string log = EncodeSegmentHeader({.number = 3, .after = {1, 4}, .after_micros = 90});
  const std::string mark = EncodeCommitMark({.lsn = {1, 4}, .retention_micros = 5});
  const std::vector<std::pair<RecordHead, std::string>> records{
      {{{1, 5}, {}, 100, RecordKind::kCommand}, "ops"},
      {{{1, 5}, {1, 5}, 100, RecordKind::kClaim}, ""},
      {{{2, 6}, {}, 101, RecordKind::kBarrier}, ""},
      {{{2, 6}, {}, 101, RecordKind::kCommit}, mark},
      {{{2, 7}, {}, kCommitTimeMax, RecordKind::kMembers}, "a b c"}};
  uint64_t chain = kChainStart;
  for (const auto& [head, payload] : records) {
    const size_t at = log.size();
    log.resize(at + kRecordHeaderBytes + payload.size());
    LayOutRecord(&log[at], chain, head, payload);
    chain = SealRecord(&log[at]);
  }
  const Result<SegmentHeader> header = DecodeSegmentHeader(log);
  REQUIRE(header.ok());
  CHECK(header->after_micros == 90);
  LogPosition position = LogPosition::BehindHeader(*header);
  LogRecord record;
  std::string fault;
  for (const auto& [head, payload] : records) {
    REQUIRE(ReadRecord(log, &position, &record, &fault) == LogStep::kRecord);
    CHECK(record.lsn == head.lsn);
    CHECK(record.kind == head.kind);
    CHECK(record.commit_micros == head.commit_micros);
    CHECK(record.payload == payload);
  }
  CHECK(ReadRecord(log, &position, &record, &fault) == LogStep::kEnd);
}

TEST_CASE("A commit time that goes back is damage", "[log_format]") {
  HandMadeLog log;
  log.Add(RecordKind::kCommand, {1, 1}, "n=1;", 50);
  log.Add(RecordKind::kCommand, {1, 2}, "n=2;", 49);
  MapMachine machine;
  const auto store = log.Recover(&machine, ApplyUpTo::kEnd);
  REQUIRE(store.ok());  // as a torn tail: nothing says that it was ever durable
  CHECK(store->report.warnings.size() == 1);
  CHECK(machine.Get("n") == "1");
}

TEST_CASE("A record's identity is its own: no claim and no chain is in it", "[log_format]") {
  const auto identity = [](uint64_t chain, const RecordHead& head, std::string_view payload) {
    std::string log = EncodeSegmentHeader({.number = 1, .chain = chain});
    log.resize(kSegmentHeaderBytes + kRecordHeaderBytes + payload.size());
    LayOutRecord(&log[kSegmentHeaderBytes], chain, head, payload);
    (void)SealRecord(&log[kSegmentHeaderBytes]);
    LogPosition position{.chain = chain};
    LogRecord record;
    std::string fault;
    REQUIRE(ReadRecord(log, &position, &record, &fault) == LogStep::kRecord);
    return IdentityOf(record);
  };
  const uint64_t one = identity(5, {{2, 9}, {}, 77, RecordKind::kCommand}, "x=1;");
  CHECK(identity(6, {{2, 9}, {2, 8}, 77, RecordKind::kCommand}, "x=1;") == one);
  CHECK(identity(5, {{2, 9}, {}, 77, RecordKind::kCommand}, "x=2;") != one);
  CHECK(identity(5, {{3, 9}, {}, 77, RecordKind::kCommand}, "x=1;") != one);
  CHECK(identity(5, {{2, 9}, {}, 78, RecordKind::kCommand}, "x=1;") != one);
  CHECK(identity(5, {{2, 9}, {}, 77, RecordKind::kMembers}, "x=1;") != one);
}

TEST_CASE("Recovery to the mark applies what is committed and keeps the rest", "[log_format]") {
  HandMadeLog log;
  log.Set({1, 1}, "a");
  log.Set({1, 2}, "b");
  log.Add(RecordKind::kMembers, {1, 3}, "members one");
  log.Set({1, 4}, "c");
  log.Mark({1, 3});
  log.Set({1, 5}, "d");
  log.Add(RecordKind::kMembers, {1, 6}, "members two");
  MapMachine machine;
  const auto store = log.Recover(&machine, ApplyUpTo::kCommitMark);
  REQUIRE(store.ok());
  CHECK(machine.Get("a") == "1-1");
  CHECK(machine.Get("c") == "(none)");
  CHECK(store->members == "members one");
  CHECK(store->mark.lsn == Lsn{1, 3});
  CHECK(store->mark.retention_micros == 7);
  REQUIRE(store->pending.size() == 3);
  CHECK(store->pending[0].head.lsn == Lsn{1, 4});
  CHECK(store->pending[2].head.kind == RecordKind::kMembers);
  CHECK(store->end.last == Lsn{1, 6});
}

TEST_CASE("A record of a higher epoch voids what stood in its place and behind it",
          "[log_format]") {
  HandMadeLog log;
  log.Set({1, 1}, "a");
  log.Mark({1, 1});
  log.Set({1, 2}, "lost");
  log.Set({1, 3}, "lost");
  log.Add(RecordKind::kBarrier, {2, 2}, "");
  log.Set({2, 3}, "b");
  log.Mark({2, 3});
  MapMachine machine;
  const auto store = log.Recover(&machine, ApplyUpTo::kCommitMark);
  REQUIRE(store.ok());
  CHECK(machine.Get("a") == "1-1");
  CHECK(machine.Get("lost") == "(none)");
  CHECK(machine.Get("b") == "2-3");
  CHECK(store->pending.empty());
}

TEST_CASE("A record of a lower epoch voids one of a higher epoch, at its own time",
          "[log_format]") {
  // Figure 8 of the Raft paper, (e): a leader of epoch 4 sends what one of epoch 2 has written, in
  // place of what one of epoch 3 wrote, whose clock was ahead.
  HandMadeLog log;
  log.Set({1, 1}, "a");
  log.Mark({1, 1});
  log.Add(RecordKind::kCommand, {3, 2}, "lost=1;", 900);
  log.Add(RecordKind::kCommand, {2, 2}, "b=1;", 500);
  log.Add(RecordKind::kBarrier, {4, 3}, "", 501);
  log.Mark({4, 3});
  MapMachine machine;
  const auto store = log.Recover(&machine, ApplyUpTo::kCommitMark);
  REQUIRE(store.ok());
  CHECK(store->report.warnings.empty());
  CHECK(machine.Get("a") == "1-1");
  CHECK(machine.Get("lost") == "(none)");
  CHECK(machine.Get("b") == "1");
  CHECK(store->end.last == Lsn{4, 3});
}

TEST_CASE("What is committed cannot be voided", "[log_format]") {
  HandMadeLog log;
  log.Set({1, 1}, "a");
  log.Set({1, 2}, "b");
  log.Mark({1, 2});
  log.Set({2, 2}, "c");
  for (const ApplyUpTo up_to : {ApplyUpTo::kEnd, ApplyUpTo::kCommitMark}) {
    MapMachine machine;
    const auto store = log.Recover(&machine, up_to);
    REQUIRE_FALSE(store.ok());
    CHECK(store.status().text().find("record 2-2: it voids the records from 2 on") !=
          std::string::npos);
  }
}

// Commit times of the records in the only segment of "db".
std::vector<int64_t> CommitTimes(FaultyFileSystem& disk) {
  const std::string log = disk.Content("db/cellar-000001.log");
  LogPosition position = LogPosition::BehindHeader(*DecodeSegmentHeader(log));
  std::vector<int64_t> times;
  LogRecord record;
  std::string fault;
  while (ReadRecord(log, &position, &record, &fault) == LogStep::kRecord) {
    if (record.is_entry()) times.push_back(record.commit_micros);
  }
  return times;
}

TEST_CASE("Each step gets a commit time above all before, whatever the clock does",
          "[log_format]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.segment_bytes_max = 1 << 20;
  rig.joins = true;
  REQUIRE(rig.Open().ok());
  const auto turn = [&](int64_t wall_micros, int steps) {
    rig.journal->SetTurnTime(wall_micros);
    for (int i = 0; i < steps; ++i) REQUIRE(rig.Write().ok());
    rig.journal->Flush();
    REQUIRE(rig.WaitReleased());
  };
  turn(1000, 3);  // one record: steps 1000, 1001, 1002
  turn(2000, 1);
  turn(500, 2);  // set back
  CHECK(rig.journal->last_commit_micros() == 2002);
  CHECK(CommitTimes(disk) == std::vector<int64_t>{1002, 2000, 2002});

  SECTION("after a restart") {}
  SECTION("after a restart from a snapshot alone") { REQUIRE(rig.journal->SaveNow().ok()); }
  REQUIRE(rig.Open().ok());
  CHECK(rig.journal->last_commit_micros() == 2002);
}

TEST_CASE("An epoch is of the records behind it", "[log_format]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.WriteAndWait().ok());
  rig.journal->SetEpoch(4);
  CHECK(rig.journal->last_lsn() == Lsn{1, 1});
  CHECK(rig.journal->durable_lsn() == Lsn{1, 1});
  REQUIRE(rig.WriteAndWait().ok());
  CHECK(rig.lsn == Lsn{4, 2});
  CHECK(rig.journal->durable_lsn() == Lsn{4, 2});
  REQUIRE(rig.Open().ok());
  CHECK(rig.CheckState() == 2);
  REQUIRE(rig.WriteAndWait().ok());
  CHECK(rig.lsn == Lsn{4, 3});
}

TEST_CASE("Records that another machine has numbered keep their numbers and times",
          "[log_format]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  const std::vector<RecordHead> heads{{{3, 7}, {}, 10, RecordKind::kCommand},
                                      {{3, 8}, {}, 30, RecordKind::kBarrier},
                                      {{5, 9}, {}, 31, RecordKind::kCommand}};
  for (const RecordHead& head : heads) {
    const std::string payload = head.kind == RecordKind::kBarrier ? "" : "n=9;";
    REQUIRE(rig.journal->Reserve(payload.size()).ok());
    rig.journal->AppendAt(head, payload, 1);
  }
  rig.journal->Flush();
  rig.lsn = {5, 9};
  REQUIRE(rig.WaitReleased());
  CHECK(rig.journal->last_commit_micros() == 31);
  CHECK(CommitTimes(disk) == std::vector<int64_t>{10, 30, 31});
  REQUIRE(rig.Open().ok());
  CHECK(rig.journal->last_lsn() == Lsn{5, 9});
}

}  // namespace cellar::log_format_test
