// The log read by commit time: exactly the records that are in force and shown, from any time on,
// forwards and backwards, however many segments, voided records and restarts there are.
#include "store/log/log_index.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "store/journal/journal.h"
#include "tests/store/faulty_file_system.h"
#include "tests/store/map_machine.h"

namespace cellar::log_index_test {

uint64_t Seeds(uint64_t usual) {
  const char* text = std::getenv("CELLAR_TEST_SEEDS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

struct Entry {
  Lsn lsn;
  int64_t micros{0};
  std::string payload;
  friend bool operator==(const Entry&, const Entry&) = default;
};

std::ostream& operator<<(std::ostream& to, const Entry& entry) {
  return to << FormatLsn(entry.lsn) << " at " << entry.micros;
}

// A log that gets records as another machine numbers them, and what is in force of it.
class Log {
 public:
  enum class Kind : uint8_t { kAlone, kMember };

  Log(FaultyFileSystem* disk, Kind kind) : disk_(disk) {
    options_.directory = "db";
    options_.sync_policy = SyncPolicy::kAlways;
    options_.segment_bytes_max = 96 << 10;
    options_.allocation_bytes_max = 8192;
    options_.allocation_bytes_min = 512;
    options_.retry_delay_micros = 500;
    options_.set_member = kind == Kind::kMember;
    Open();
  }

  void Open() {
    journal_.reset();
    index_.reset();
    machine_ = std::make_unique<MapMachine>();
    auto opened = Journal::Open(options_, *disk_, Clock::System(), *machine_, {});
    if (!opened.ok()) FAIL(opened.status().text());
    journal_ = *std::move(opened);
    journal_->RetainFrom(0);
    index_ = std::make_unique<LogIndex>(*disk_, "db");
  }
  void Append(const Entry& entry) {
    REQUIRE(journal_->Reserve(entry.payload.size()).ok());
    journal_->AppendAt({.lsn = entry.lsn, .commit_micros = entry.micros}, entry.payload, 1);
    while (!chain.empty() && chain.back().lsn.seq >= entry.lsn.seq) chain.pop_back();
    chain.push_back(entry);
  }
  // The next one of `epoch`, in place of what stands from `seq` on.
  void Write(uint32_t epoch, uint64_t seq, size_t bytes) {
    time += 1 + static_cast<int64_t>(seq % 3);
    const std::string name = "k" + std::to_string(seq % 50) + "=";
    Append(
        {{epoch, seq},
         time,
         name + std::to_string(epoch) + "-" + std::to_string(seq) + std::string(bytes, 'x') + ";"});
  }
  void Commit(uint64_t seq) {
    if (seq == 0) return;
    committed = seq;
    const Lsn lsn = chain[seq - 1].lsn;
    REQUIRE(journal_->Reserve(kMarkBytesMax).ok());
    journal_->AppendMark({.lsn = lsn, .retention_micros = 0});
    journal_->SetCommitted(lsn);
  }
  void WaitDurable() {
    journal_->Flush();
    WaitUntil([this] { return journal_->durable_appended() == journal_->appended(); });
  }
  void WaitUntil(const std::function<bool()>& condition) {
    for (int i = 0; i < 200'000; ++i) {
      journal_->Poll();
      if (condition()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    FAIL("it does not come");
  }
  LogIndex& Update() {
    const Status updated =
        index_->Update(journal_->CopyManifest(), journal_->settled_lsn(), journal_->healthy());
    if (!updated.ok()) FAIL(updated.text());
    return *index_;
  }
  Journal& journal() { return *journal_; }
  LogIndex& index() { return *index_; }

  std::vector<Entry> chain;  // the record with seq n is chain[n - 1]
  uint64_t committed{0};
  int64_t time{1'000'000};

 private:
  FaultyFileSystem* const disk_;
  JournalOptions options_;
  std::unique_ptr<MapMachine> machine_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<LogIndex> index_;
};

// Goes on from *place; checks that each record is told with the time of the one before.
std::vector<Entry> ReadOn(LogIndex& index, LogPlace* place) {
  std::vector<Entry> read;
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    if (!read.empty()) CHECK(before == read.back().micros);
    CHECK(before < record.commit_micros);
    read.push_back({record.lsn, record.commit_micros, std::string(record.payload)});
    return true;
  };
  for (;;) {
    const Result<LogIndex::Ended> ended = index.ReadPiece(place, visit);
    if (!ended.ok()) FAIL(ended.status().text());
    if (*ended == LogIndex::Ended::kShown) return read;
  }
}

std::vector<Entry> ReadFrom(LogIndex& index, int64_t micros) {
  LogPlace place = index.Find(micros);
  std::vector<Entry> read = ReadOn(index, &place);
  std::erase_if(read, [micros](const Entry& entry) { return entry.micros < micros; });
  return read;
}

// Piece by piece from the end to the beginning, in order.
std::vector<Entry> ReadBackwards(LogIndex& index) {
  LogPlace end = index.Find(INT64_MAX);
  (void)ReadOn(index, &end);
  LogPlace begin = index.Find(INT64_MAX);
  std::vector<Entry> read;
  for (;;) {
    std::vector<Entry> piece;
    LogPlace at = begin;
    const auto visit = [&](const LogRecord& record, int64_t) -> Result<bool> {
      piece.push_back({record.lsn, record.commit_micros, std::string(record.payload)});
      return true;
    };
    REQUIRE(index.ReadPiece(&at, visit).ok());
    read.insert(read.begin(), piece.begin(), piece.end());
    for (;;) {
      const Result<bool> known = index.LookBefore(begin);
      REQUIRE(known.ok());
      if (*known) break;
    }
    const std::optional<LogPlace> before = index.Before(begin);
    if (!before) return read;
    begin = *before;
  }
}

std::vector<Entry> From(const std::vector<Entry>& entries, int64_t micros) {
  std::vector<Entry> left = entries;
  std::erase_if(left, [micros](const Entry& entry) { return entry.micros < micros; });
  return left;
}

TEST_CASE("The log is read from any time on, over pieces and segments", "[feed][log]") {
  FaultyFileSystem disk;
  Log log(&disk, Log::Kind::kAlone);
  Random random(7);
  LogPlace place;
  std::vector<Entry> followed;
  for (int turn = 0; turn < 60; ++turn) {
    const uint64_t records = random.Below(20);
    for (uint64_t i = 0; i < records; ++i)
      log.Write(1, log.chain.size() + 1, random.OneIn(30) ? 100'000 : random.Below(4000));
    log.WaitDurable();
    LogIndex& index = log.Update();
    CHECK(index.shown().seq == log.chain.size());
    if (place.segment == 0) place = index.Find(1);
    for (Entry& entry : ReadOn(index, &place)) followed.push_back(std::move(entry));
    REQUIRE(followed == log.chain);
    if (turn % 10 == 9) {
      const int64_t micros = log.time - static_cast<int64_t>(random.Below(1000));
      REQUIRE(ReadFrom(index, micros) == From(log.chain, micros));
      REQUIRE(ReadBackwards(index) == log.chain);
    }
    if (turn % 20 == 19) {
      log.Open();
      place = log.Update().Find(log.time + 1);
      CHECK(ReadOn(log.index(), &place).size() <= log.chain.size());
      REQUIRE(ReadFrom(log.index(), 1) == log.chain);
      REQUIRE(ReadBackwards(log.index()) == log.chain);
    }
  }
  CHECK(log.journal().CopyManifest().segments.size() > 5);
}

TEST_CASE("What is not on disk is not read", "[feed][log]") {
  FaultyFileSystem disk;
  Log log(&disk, Log::Kind::kAlone);
  log.Write(1, 1, 10);
  log.WaitDurable();
  disk.HoldSyncsOf(".log");
  log.Write(1, 2, 10);
  log.journal().Flush();
  LogPlace place = log.Update().Find(1);
  CHECK(ReadOn(log.index(), &place).size() == 1);
  CHECK(ReadOn(log.Update(), &place).empty());
  disk.ReleaseSyncs();
  log.WaitDurable();
  CHECK(ReadOn(log.Update(), &place).size() == 1);
}

TEST_CASE("A segment that is kept no longer takes its records along, and no others",
          "[feed][log]") {
  FaultyFileSystem disk;
  Log log(&disk, Log::Kind::kAlone);
  for (int i = 0; i < 200; ++i) {
    log.Write(1, log.chain.size() + 1, 3000);
    if (i % 10 == 9) log.WaitDurable();
  }
  REQUIRE(log.journal().SaveNow().ok());
  const Manifest before = log.journal().CopyManifest();
  REQUIRE(before.segments.size() > 4);
  CHECK(ReadFrom(log.Update(), 1) == log.chain);
  const SegmentEntry& first = before.segments[2];
  log.journal().RetainFrom(first.number);
  log.WaitUntil(
      [&] { return log.journal().CopyManifest().segments.front().number == first.number; });
  LogIndex& index = log.Update();
  const int64_t begin = index.begin_micros();
  CHECK(begin == log.chain[first.after.seq - 1].micros);
  CHECK(ReadFrom(index, begin + 1) == From(log.chain, begin + 1));
  CHECK(ReadBackwards(index) == From(log.chain, begin + 1));
  log.journal().RetainFrom(UINT64_MAX);
  log.WaitUntil([&] { return log.journal().CopyManifest().segments.size() == 1; });
  log.Write(1, log.chain.size() + 1, 30);
  log.WaitDurable();
  LogIndex& rest = log.Update();
  CHECK(ReadFrom(rest, rest.begin_micros() + 1) == std::vector<Entry>{log.chain.back()});
}

TEST_CASE("A torn tail is not read; damage before the end is an error", "[feed][log]") {
  FaultyFileSystem disk;
  {
    Log log(&disk, Log::Kind::kAlone);
    for (int i = 0; i < 100; ++i) log.Write(1, log.chain.size() + 1, 3000);
    log.WaitDurable();
    const std::vector<Entry> whole = log.chain;
    log.Write(1, log.chain.size() + 1, 3000);
    disk.KillAtCall(1);
    log.journal().Flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    disk.Reboot();
    log.Open();
    // The last one is there as a whole, or not at all.
    const uint64_t last = log.journal().last_lsn().seq;
    CHECK((last == whole.size() || last == log.chain.size()));
    log.chain.resize(last);
    CHECK(ReadFrom(log.Update(), 1) == log.chain);
    CHECK(log.journal().CopyManifest().segments.size() > 1);
  }
  Log log(&disk, Log::Kind::kAlone);
  const SegmentEntry entry = log.journal().CopyManifest().segments.front();
  const std::string path = "db/" + FormatFileName(StoreFileKind::kSegment, entry.number);
  std::string bytes = disk.Content(path);
  bytes[entry.end->offset / 2] ^= 1;
  disk.SetContent(path, bytes);
  LogPlace place = log.Update().Find(1);
  Status status;
  const auto pass = [](const LogRecord&, int64_t) -> Result<bool> { return true; };
  for (int i = 0; i < 100 && status.ok(); ++i)
    status = log.index().ReadPiece(&place, pass).status();
  CHECK(status.code() == ErrorCode::kCorruption);
  CHECK(status.text().find("is damaged at offset") != std::string::npos);
}

// What has been voided, to be written once more: behind `parent`.
struct Branch {
  Lsn parent;
  std::vector<Entry> entries;
};

class VoidingLog {
 public:
  VoidingLog(FaultyFileSystem* disk, uint64_t seed)
      : log(disk, Log::Kind::kMember), random_(seed) {}

  void Turn() {
    const uint64_t what = random_.Below(10);
    if (what < 4 || log.chain.empty()) {
      WriteSome();
    } else if (what < 6) {
      Elect();
    } else if (what < 7) {
      BringBack();
    } else if (what < 9) {
      log.WaitDurable();
      log.Commit(log.committed + random_.Below(log.chain.size() - log.committed + 1));
    } else if (log.committed > 0 && random_.OneIn(3)) {
      (void)log.journal().StartSnapshot();
    }
    log.journal().Flush();
  }
  // What is shown now.
  std::vector<Entry> Shown() {
    log.WaitDurable();
    return {log.chain.begin(), log.chain.begin() + static_cast<std::ptrdiff_t>(log.committed)};
  }

  Log log;

 private:
  Lsn LsnAt(uint64_t seq) const { return seq == 0 ? Lsn{} : log.chain[seq - 1].lsn; }
  void WriteSome() {
    for (uint64_t left = 1 + random_.Below(20); left > 0; --left)
      log.Write(epoch_, log.chain.size() + 1, random_.Below(3000));
  }
  void Void(uint64_t from) {
    if (from > log.chain.size()) return;
    Branch branch{LsnAt(from - 1), {}};
    branch.entries.assign(log.chain.begin() + static_cast<std::ptrdiff_t>(from - 1),
                          log.chain.end());
    branches_.push_back(std::move(branch));
  }
  // A new leader, who lacks some of what is not committed.
  void Elect() {
    const uint64_t from = log.committed + 1 + random_.Below(log.chain.size() - log.committed + 1);
    Void(from);
    log.Write(++epoch_, from, random_.Below(3000));
    WriteSome();
  }
  // A new leader who has what others had voided.
  void BringBack() {
    if (branches_.empty()) return;
    const Branch branch = branches_[random_.Below(branches_.size())];
    const uint64_t from = branch.entries.front().lsn.seq;
    const bool fits = from > log.committed && from <= log.chain.size() &&
                      LsnAt(from - 1) == branch.parent &&
                      log.chain[from - 1].lsn.epoch != branch.entries.front().lsn.epoch &&
                      log.chain.back().lsn.epoch != branch.entries.front().lsn.epoch;
    if (!fits) return;
    Void(from);
    const uint64_t count = 1 + random_.Below(branch.entries.size());
    for (uint64_t i = 0; i < count; ++i) log.Append(branch.entries[i]);
    ++epoch_;
    if (!random_.OneIn(3)) WriteSome();
  }

  Random random_;
  uint32_t epoch_{1};
  std::vector<Branch> branches_;
};

TEST_CASE("What has been voided in a set's log is never read, what is committed always is",
          "[feed][log][set]") {
  const uint64_t seeds = Seeds(40);
  uint64_t voided = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    FaultyFileSystem disk;
    VoidingLog set(&disk, seed);
    Random random(seed * 977);
    LogPlace place;
    std::vector<Entry> followed;
    for (int turn = 0; turn < 120; ++turn) {
      INFO("turn " << turn);
      set.Turn();
      if (random.OneIn(4)) continue;
      const std::vector<Entry> shown = set.Shown();
      LogIndex& index = set.log.Update();
      REQUIRE(index.shown().seq == set.log.committed);
      if (place.segment == 0) place = index.Find(1);
      for (Entry& entry : ReadOn(index, &place)) followed.push_back(std::move(entry));
      REQUIRE(followed == shown);
      if (random.OneIn(10)) {
        REQUIRE(ReadFrom(index, 1) == shown);
        const int64_t micros =
            1'000'000 +
            static_cast<int64_t>(random.Below(static_cast<uint64_t>(set.log.time - 1'000'000) + 1));
        REQUIRE(ReadFrom(index, micros) == From(shown, micros));
        REQUIRE(ReadBackwards(index) == shown);
      }
      if (random.OneIn(12)) {
        set.log.Open();
        (void)set.log.journal().TakePending();
        if (set.log.committed > 0)
          set.log.journal().SetCommitted(set.log.chain[set.log.committed - 1].lsn);
        set.log.Update();
        REQUIRE(ReadFrom(set.log.index(), 1) == shown);
        place = set.log.index().Find(shown.empty() ? 1 : shown.back().micros);
        followed = shown;
        (void)ReadOn(set.log.index(), &place);
      }
    }
    voided += set.log.journal().appended() - set.log.chain.size();
  }
  CHECK(voided > seeds);
}

TEST_CASE("Before it is known what is committed, a member shows what the marks say",
          "[feed][log][set]") {
  FaultyFileSystem disk;
  {
    Log log(&disk, Log::Kind::kMember);
    for (uint64_t seq = 1; seq <= 5; ++seq) log.Write(1, seq, 10);
    log.WaitDurable();
    CHECK(log.Update().shown() == Lsn{});
    CHECK(log.journal().settled_lsn() == Lsn{});
    log.Commit(3);
    log.WaitDurable();
    CHECK(log.journal().settled_lsn() == Lsn{1, 3});
  }
  Log log(&disk, Log::Kind::kMember);
  CHECK(log.journal().settled_lsn() == Lsn{1, 3});
  CHECK(ReadFrom(log.Update(), 1).size() == 3);
  log.journal().SetCommitted({1, 5});
  CHECK(ReadFrom(log.Update(), 1).size() == 5);
}

}  // namespace cellar::log_index_test
