// Files that are not as they were written: cut, flipped, overwritten, lost. Each is refused with
// the place, or is the tail of a crash and cut, or makes no difference; never is anything else
// loaded.
#include <catch2/catch.hpp>
#include <sstream>

#include "base/coding.h"
#include "base/random.h"
#include "store/format/log_format.h"
#include "store/journal/recovery.h"
#include "store/offline/check.h"
#include "tests/store/journal_rig.h"

namespace cellar::damage_test {

const std::string kLog = "db/cellar-000001.log";

enum class End { kClosed, kKilled };

uint64_t EncodeWhole(char* to, uint64_t chain, Lsn lsn, Lsn claim, std::string_view payload) {
  const RecordKind kind = payload.empty() ? RecordKind::kClaim : RecordKind::kCommand;
  const auto commit_micros = static_cast<int64_t>(lsn.seq);
  LayOutRecord(to, chain, {lsn, claim, commit_micros, kind}, payload);
  return SealRecord(to);
}

// A store with one segment of `records` records, and with a snapshot behind the first `saved` of
// them.
std::unique_ptr<FaultyFileSystem> MakeStore(uint64_t records, uint64_t saved, End end) {
  auto disk = std::make_unique<FaultyFileSystem>();
  JournalRig rig(disk.get());
  rig.options.segment_bytes_max = 1 << 30;
  REQUIRE(rig.Open().ok());
  for (uint64_t i = 1; i <= records; ++i) {
    REQUIRE(rig.WriteAndWait().ok());
    if (i == saved) REQUIRE(rig.journal->SaveNow().ok());
  }
  if (end == End::kKilled) disk->Kill();
  rig.journal.reset();
  disk->Reboot();
  return disk;
}

struct Outcome {
  Status status;
  uint64_t mutations{0};
  RecoveryReport report;
};

// What a start makes of the disk. The state is REQUIREd to be that of some number of mutations.
Outcome Recover(FileSystem& files, const std::vector<std::map<std::string, std::string>>& states) {
  MapMachine machine;
  auto store = RecoverStore(files, Clock::System(), "db", machine, {}, {});
  if (!store.ok()) return {store.status(), 0, {}};
  const std::string n = machine.Get("n");
  const uint64_t k = n == "(none)" ? 0 : std::stoull(n);
  REQUIRE(k < states.size());
  REQUIRE(machine.Content() == states[k]);
  return {Status::Ok(), k, std::move(store->report)};
}

std::vector<std::map<std::string, std::string>> States(uint64_t records) {
  std::vector<std::map<std::string, std::string>> states;
  for (uint64_t k = 0; k <= records; ++k) states.push_back(NumberedState(k));
  return states;
}

// Offsets behind each record with a payload.
std::vector<uint64_t> RecordEnds(std::string_view segment) {
  std::vector<uint64_t> ends;
  auto header = DecodeSegmentHeader(segment);
  REQUIRE(header.ok());
  LogPosition position = LogPosition::BehindHeader(*header);
  LogRecord record;
  std::string fault;
  while (ReadRecord(segment, &position, &record, &fault) == LogStep::kRecord)
    if (record.is_entry()) ends.push_back(record.end_offset);
  return ends;
}

Status CheckWith(FileSystem& files, CheckMode mode, std::ostream& out) {
  MapMachine machine;
  return CheckStore(files, "db", mode, machine, out);
}

void RequirePlace(const Status& status, const std::string& path) {
  REQUIRE(status.code() == ErrorCode::kCorruption);
  REQUIRE(status.text().find(path) != std::string::npos);
  REQUIRE(status.text().find("offset") != std::string::npos);
}

TEST_CASE("A log cut at any byte loads every whole record before the cut", "[damage]") {
  const uint64_t records = 60;
  const auto states = States(records);
  for (const End end : {End::kKilled, End::kClosed}) {
    const auto disk = MakeStore(records, 0, end);
    const std::string log = disk->Content(kLog);
    const std::vector<uint64_t> ends = RecordEnds(log);
    REQUIRE(ends.size() == records);
    for (size_t cut = 0; cut <= log.size(); ++cut) {
      disk->SetContent(kLog, log.substr(0, cut));
      const auto whole =
          static_cast<uint64_t>(std::upper_bound(ends.begin(), ends.end(), cut) - ends.begin());
      const Outcome outcome = Recover(*disk, states);
      INFO("cut at " << cut << ": " << outcome.status.ToString());
      REQUIRE(outcome.status.ok());
      REQUIRE(outcome.mutations == whole);
      const uint64_t good = whole == 0 ? kSegmentHeaderBytes : ends[whole - 1];
      if (cut > good + 4 && whole < records) {
        REQUIRE(outcome.report.tail_bytes_cut > 0);
        REQUIRE(outcome.report.tail_bytes_cut <= cut - good);
        REQUIRE(outcome.report.warnings.size() == 1);
      }
    }
  }
}

TEST_CASE("Two thousand records, cut at each byte, are read up to the cut", "[damage]") {
  std::string log = EncodeSegmentHeader({.number = 1, .created_micros = 5});
  std::vector<LogPosition> positions{{}};
  for (uint64_t k = 1; k <= 2000; ++k) {
    const std::string payload = NumberedMutation(k);
    const size_t at = log.size();
    log.resize(at + kRecordHeaderBytes + payload.size());
    const uint64_t chain =
        EncodeWhole(&log[at], positions.back().chain, {1, k}, {1, k - k % 5}, payload);
    positions.push_back({.offset = log.size(), .last = {1, k}, .chain = chain});
  }
  positions[0].chain = kChainStart;
  size_t whole = 0;
  for (size_t cut = kSegmentHeaderBytes; cut <= log.size(); ++cut) {
    const std::string_view found = std::string_view(log).substr(0, cut);
    if (whole + 1 < positions.size() && positions[whole + 1].offset <= cut) ++whole;
    // From three records before the cut on; what is before does not depend on it.
    LogPosition position = positions[whole < 3 ? 0 : whole - 3];
    LogRecord record;
    std::string fault;
    while (ReadRecord(found, &position, &record, &fault) == LogStep::kRecord) {
    }
    REQUIRE(position.offset == positions[whole].offset);
    REQUIRE(position.last == positions[whole].last);
    REQUIRE_FALSE(JudgeTail(found, position).is_damage);
  }
  CHECK(whole == 2000);
}

TEST_CASE("A flipped bit in a log is refused, cut with the tail, or harmless", "[damage]") {
  const uint64_t records = 12;
  const auto states = States(records);
  for (const End end : {End::kClosed, End::kKilled}) {
    const auto disk = MakeStore(records, 0, end);
    const std::string log = disk->Content(kLog);
    uint64_t refused = 0;
    uint64_t cut = 0;
    for (size_t bit = 0; bit < log.size() * 8; ++bit) {
      std::string flipped = log;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      disk->SetContent(kLog, flipped);
      const Outcome outcome = Recover(*disk, states);
      INFO("bit " << bit << ": " << outcome.status.ToString());
      if (!outcome.status.ok()) {
        RequirePlace(outcome.status, kLog);
        ++refused;
      } else if (outcome.mutations < records) {
        // Nothing says that the last record was ever on disk, until the log is closed or idle.
        REQUIRE(end == End::kKilled);
        REQUIRE(outcome.mutations == records - 1);
        REQUIRE(outcome.report.tail_bytes_cut > 0);
        ++cut;
      }
    }
    CHECK(refused > 5000);
    CHECK((cut > 0) == (end == End::kKilled));
  }
}

TEST_CASE("A flipped bit in a snapshot or in the manifest is refused", "[damage]") {
  const uint64_t records = 30;
  const auto states = States(records);
  const auto disk = MakeStore(records, 25, End::kClosed);
  for (const std::string& path : disk->Paths()) {
    const bool is_snapshot = path.ends_with(".snapshot");
    if (!is_snapshot && !path.ends_with(".manifest")) continue;
    const std::string content = disk->Content(path);
    for (size_t bit = 0; bit < content.size() * 8; ++bit) {
      std::string flipped = content;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      disk->SetContent(path, flipped);
      const Outcome outcome = Recover(*disk, states);
      INFO(path << " bit " << bit);
      REQUIRE_FALSE(outcome.status.ok());
      if (is_snapshot) RequirePlace(outcome.status, path);
      REQUIRE(outcome.status.text().find(path) != std::string::npos);
    }
    for (size_t cut = 0; cut < content.size(); ++cut) {
      disk->SetContent(path, content.substr(0, cut));
      REQUIRE_FALSE(Recover(*disk, states).status.ok());
    }
    disk->SetContent(path, content + '\0');
    REQUIRE_FALSE(Recover(*disk, states).status.ok());
    disk->SetContent(path, content);
  }
  CHECK(Recover(*disk, states).mutations == records);
}

TEST_CASE("A tail of zeros or of random bytes is cut, and said to be", "[damage]") {
  const uint64_t records = 40;
  const auto states = States(records);
  for (const End end : {End::kKilled, End::kClosed}) {
    const auto disk = MakeStore(records, 0, end);
    const std::string log = disk->Content(kLog);
    const uint64_t good = RecordEnds(log).back();
    Random random(7);
    for (const size_t size : {1U, 12U, 100U, 4096U}) {
      for (const bool zeros : {true, false}) {
        std::string tail(size, '\0');
        if (!zeros)
          for (char& byte : tail) byte = static_cast<char>(1 + random.Below(255));
        for (const size_t at : {good, uint64_t{log.size()}, good - 9}) {
          const auto copy = disk->Clone();
          copy->SetContent(kLog, log.substr(0, at) + tail);
          const Outcome outcome = Recover(*copy, states);
          INFO(size << " bytes at " << at << ": " << outcome.status.ToString());
          REQUIRE(outcome.status.ok());
          REQUIRE(outcome.mutations == (at < good ? records - 1 : records));
          if (!zeros) REQUIRE(outcome.report.warnings.size() == 1);
          // And the store goes on from there.
          JournalRig rig(copy.get());
          REQUIRE(rig.Open().ok());
          REQUIRE(rig.WriteAndWait().ok());
          const uint64_t written = rig.written;
          REQUIRE(rig.Open().ok());
          REQUIRE(rig.CheckState() == written);
          REQUIRE(rig.journal->recovery().warnings.empty());
        }
      }
    }
  }
}

TEST_CASE("A hole is a torn tail unless what is behind it says that it was on disk", "[damage]") {
  // Six records; `claims[i]` is what record i says was durable when it was made.
  const auto build = [](const std::vector<uint64_t>& claims, size_t hole) {
    std::string log = EncodeSegmentHeader({.number = 1});
    uint64_t chain = kChainStart;
    for (uint64_t k = 1; k <= claims.size(); ++k) {
      const std::string payload = NumberedMutation(k);
      const size_t at = log.size();
      log.resize(at + kRecordHeaderBytes + payload.size());
      const Lsn claim = claims[k - 1] == 0 ? Lsn{} : Lsn{1, claims[k - 1]};
      chain = EncodeWhole(&log[at], chain, {1, k}, claim, payload);
      if (k == hole) std::fill(log.begin() + static_cast<ptrdiff_t>(at), log.end(), '\0');
    }
    return log + std::string(1000, '\0');
  };
  const auto judge = [](std::string_view log) {
    LogPosition position;
    LogRecord record;
    std::string fault;
    while (ReadRecord(log, &position, &record, &fault) == LogStep::kRecord) {
    }
    CHECK(position.last == Lsn{1, 3});
    return JudgeTail(log, position);
  };
  const LogTail torn = judge(build({0, 0, 0, 0, 3, 3}, 4));
  CHECK_FALSE(torn.is_damage);
  CHECK(torn.records == 2);
  const LogTail damage = judge(build({0, 0, 0, 0, 3, 4}, 4));
  CHECK(damage.is_damage);
  CHECK(damage.claim == Lsn{1, 4});
}

TEST_CASE("Lost, swapped and foreign files are refused", "[damage]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 100; ++i) REQUIRE(rig.WriteAndWait().ok());
  REQUIRE(rig.journal->SaveNow().ok());
  for (int i = 0; i < 100; ++i) REQUIRE(rig.WriteAndWait().ok());
  rig.journal.reset();
  const auto states = States(200);
  std::vector<std::string> logs;
  std::string snapshot;
  for (const std::string& path : disk.Paths()) {
    if (path.ends_with(".log")) logs.push_back(path);
    if (path.ends_with(".snapshot")) snapshot = path;
  }
  REQUIRE(logs.size() > 2);
  for (const std::string& path : {logs[0], logs[1], logs.back(), snapshot}) {
    const auto copy = disk.Clone();
    REQUIRE(copy->Remove(path).ok());
    CHECK_FALSE(Recover(*copy, states).status.ok());
  }
  const auto swapped = disk.Clone();
  swapped->SetContent(logs[0], disk.Content(logs[1]));
  RequirePlace(Recover(*swapped, states).status, logs[0]);
  // A segment that was closed must be there to its end.
  const auto cut = disk.Clone();
  cut->SetContent(logs[0], disk.Content(logs[0]).substr(0, disk.Content(logs[0]).size() - 1));
  RequirePlace(Recover(*cut, states).status, logs[0]);
}

TEST_CASE("--check names the damage, --repair cuts the log there and keeps a copy",
          "[damage][check]") {
  const auto disk = MakeStore(40, 10, End::kClosed);
  std::ostringstream sound;
  REQUIRE(CheckWith(*disk, CheckMode::kLook, sound).ok());
  CHECK(sound.str().find("30 records") != std::string::npos);

  std::string path;
  for (const std::string& name : disk->Paths())
    if (name.ends_with(".log")) path = name;
  std::string log = disk->Content(path);
  const std::vector<uint64_t> ends = RecordEnds(log);
  log[ends[20] + 50] = static_cast<char>(log[ends[20] + 50] ^ 1);
  disk->SetContent(path, log);
  std::ostringstream look;
  CHECK(CheckWith(*disk, CheckMode::kLook, look).code() == ErrorCode::kCorruption);
  CHECK(look.str().find("offset " + std::to_string(ends[20])) != std::string::npos);
  const auto states = States(40);
  CHECK_FALSE(Recover(*disk, states).status.ok());

  std::ostringstream repair;
  REQUIRE(CheckWith(*disk, CheckMode::kRepair, repair).ok());
  CHECK(Recover(*disk, states).mutations == 31);
  CHECK(disk->Content(path + ".damaged") == log);
  std::ostringstream again;
  CHECK(CheckWith(*disk, CheckMode::kLook, again).ok());
  JournalRig rig(disk.get());
  REQUIRE(rig.Open().ok());
  CHECK(rig.CheckState() == 31);
  std::ostringstream locked;
  CHECK(CheckWith(*disk, CheckMode::kLook, locked).code() == ErrorCode::kIo);
}

std::string SegmentPath(const FaultyFileSystem& disk) {
  std::string found;
  for (const std::string& path : disk.Paths())
    if (path.ends_with(".log")) found = path;
  REQUIRE_FALSE(found.empty());
  return found;
}

void FlipAt(FaultyFileSystem* disk, const std::string& path, uint64_t offset) {
  std::string bytes = disk->Content(path);
  bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
  disk->SetContent(path, bytes);
}

TEST_CASE("--repair that ends at any call is completed by the next one", "[damage][check]") {
  const auto whole = MakeStore(40, 10, End::kClosed);
  const std::string path = SegmentPath(*whole);
  const uint64_t at = RecordEnds(whole->Content(path))[20];
  FlipAt(whole.get(), path, at + 50);
  const std::string damaged = whole->Content(path);
  const auto states = States(40);
  enum class Stop { kFails, kNoSpace, kPowerLoss };
  for (const Stop stop : {Stop::kFails, Stop::kNoSpace, Stop::kPowerLoss}) {
    bool completed = false;
    for (uint64_t n = 1; !completed; ++n) {
      REQUIRE(n < 200);
      const auto disk = whole->Clone();
      disk->FailCall(n, true, stop == Stop::kNoSpace ? ErrorCode::kNoSpace : ErrorCode::kIo);
      std::ostringstream first;
      completed = CheckWith(*disk, CheckMode::kRepair, first).ok() && !disk->has_failed();
      disk->Heal();
      if (stop == Stop::kPowerLoss) {
        disk->PowerLoss(n);
        disk->Reboot();
      }
      std::ostringstream again;
      const Status status = CheckWith(*disk, CheckMode::kRepair, again);
      INFO("call " << n << ": " << first.str() << again.str() << status.ToString());
      REQUIRE(status.ok());
      REQUIRE(Recover(*disk, states).mutations == 31);
      REQUIRE(disk->Content(path + ".damaged") == damaged);
      for (const std::string& left : disk->Paths()) {
        const bool is_half_a_copy = left.find(".damaged.tmp") != std::string::npos;
        REQUIRE_FALSE(is_half_a_copy);
        REQUIRE(left.find(".damaged-2") == std::string::npos);
      }
    }
  }
}

TEST_CASE("A second damage in a segment that was repaired is repaired too", "[damage][check]") {
  const auto disk = MakeStore(40, 10, End::kClosed);
  const std::string path = SegmentPath(*disk);
  const std::vector<uint64_t> ends = RecordEnds(disk->Content(path));
  const auto states = States(40);
  uint64_t mutations = 31;
  for (const size_t record : {20, 12, 3}) {
    FlipAt(disk.get(), path, ends[record] + 50);
    std::ostringstream said;
    REQUIRE(CheckWith(*disk, CheckMode::kRepair, said).ok());
    mutations = 11 + record;
    CHECK(Recover(*disk, states).mutations == mutations);
  }
  size_t copies = 0;
  for (const std::string& name : disk->Paths())
    copies += name.find(".damaged") != std::string::npos;
  CHECK(copies == 3);
}

TEST_CASE("--dump prints records as commands and goes on behind damage", "[damage][check]") {
  const auto disk = MakeStore(6, 2, End::kClosed);
  std::string path;
  for (const std::string& name : disk->Paths())
    if (name.ends_with(".log")) path = name;
  MapMachine machine;
  const auto describe = [&](std::string_view payload) { return machine.Describe(payload); };
  std::ostringstream whole;
  REQUIRE(DumpStore(*disk, "db", describe, whole).ok());
  CHECK(whole.str().find("1-3 SET " + NumberedMutation(3)) != std::string::npos);
  CHECK(whole.str().find("1-6 SET " + NumberedMutation(6)) != std::string::npos);
  CHECK(whole.str().find("snapshot up to record 1-2") != std::string::npos);
  std::string log = disk->Content(path);
  log[RecordEnds(log)[1] + 20] ^= 4;
  disk->SetContent(path, log);
  std::ostringstream damaged;
  CHECK_FALSE(DumpStore(*disk, path, describe, damaged).ok());
  CHECK(damaged.str().find("1-4 SET") != std::string::npos);
  CHECK(damaged.str().find("DAMAGED") != std::string::npos);
  CHECK(damaged.str().find("1-5 SET") == std::string::npos);
  CHECK(damaged.str().find("1-6 SET") != std::string::npos);
}

}  // namespace cellar::damage_test
