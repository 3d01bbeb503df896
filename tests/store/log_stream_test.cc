// Readers of a log that is being written: each goes on, record by record, with what has come since
// it last reached the end, in the same segment or in the next ones.
#include "store/log/log_stream.h"

#include <catch2/catch.hpp>
#include <cstdio>

#include "base/random.h"
#include "store/log/log_entry_reader.h"
#include "tests/store/journal_rig.h"

namespace cellar::log_stream_test {

// The numbers of the records in `wire`, which follow one another from `*next` on.
void CheckRecords(std::string_view wire, uint64_t* next) {
  while (!wire.empty()) {
    LogRecord record;
    const auto bytes = NextWireRecord(wire, &record);
    REQUIRE(bytes.has_value());
    REQUIRE(*bytes > 0);
    REQUIRE(record.lsn.seq == *next);
    REQUIRE(record.payload == NumberedMutation(*next));
    ++*next;
    wire.remove_prefix(*bytes);
  }
}

class Growing {
 public:
  explicit Growing(uint64_t seed) : random_(seed), rig_(&disk_) {
    rig_.options.segment_bytes_max = 16 << 10;
    rig_.options.allocation_bytes_max = 8 << 10;  // zeros stand behind the last record
    rig_.options.allocation_bytes_min = 4 << 10;
    if (!rig_.Open().ok()) FAIL("the journal does not open");
    rig_.journal->RetainFrom(0);
  }
  // A few records more, all of them in the file.
  void Grow() {
    const uint64_t count = 1 + random_.Below(20);
    for (uint64_t i = 0; i < count; ++i) {
      REQUIRE(rig_.Write().ok());
      if (random_.Below(4) == 0) rig_.journal->Flush();
    }
    rig_.journal->Flush();
    REQUIRE(rig_.WaitReleased());
  }
  // The same, but they cannot be synced at first: the writer gives their segment up, and writes
  // them once more into the next one. They stand in the first one alone while `between` is called.
  template <typename Between>
  void GrowTwice(Between between) {
    disk_.FailSyncsOf(".log");
    for (uint64_t i = 1 + random_.Below(5); i > 0; --i) REQUIRE(rig_.Write().ok());
    rig_.journal->Flush();
    REQUIRE(rig_.WaitUntil([this] { return !rig_.journal->healthy(); }));
    between();
    disk_.Heal();
    REQUIRE(rig_.WaitReleased());
  }
  FaultyFileSystem& disk() { return disk_; }
  Manifest manifest() const { return rig_.journal->CopyManifest(); }
  Lsn last() const { return rig_.lsn; }
  size_t SomeBytes() { return 1 + random_.Below(3000); }

 private:
  Random random_;
  FaultyFileSystem disk_;
  JournalRig rig_;
};

TEST_CASE("A stream of the log goes on where it found the end", "[store]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Growing log(seed);
    auto opened = LogStream::Open(log.disk(), "db", log.manifest(), RecordName{});
    REQUIRE(opened.ok());
    REQUIRE(opened->stream != nullptr);
    uint64_t next = 1;
    for (int round = 0; round < 60; ++round) {
      log.Grow();
      while (opened->stream->position() < log.last()) {
        std::string wire;
        REQUIRE(opened->stream->Read(log.manifest(), log.last(), log.SomeBytes(), &wire).ok());
        REQUIRE(!wire.empty());
        CheckRecords(wire, &next);
      }
    }
    CHECK(next == log.last().seq + 1);
  }
}

TEST_CASE("A stream of the log goes on behind a segment that its writer has given up", "[store]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Growing log(seed);
    uint64_t next = 1;
    auto opened = LogStream::Open(log.disk(), "db", log.manifest(), RecordName{});
    REQUIRE(opened.ok());
    const auto read = [&](LogStream* stream, uint64_t* at, Lsn last) {
      std::string wire;
      REQUIRE(stream->Read(log.manifest(), last, log.SomeBytes(), &wire).ok());
      CheckRecords(wire, at);
      return !wire.empty();
    };
    for (int round = 0; round < 20; ++round) {
      log.Grow();
      // In some rounds it has what is written twice from where it is written first.
      log.GrowTwice([&] {
        if (round % 3 == 0) return;
        while (read(opened->stream.get(), &next, log.last())) continue;
      });
      log.Grow();
      while (opened->stream->position() < log.last())
        REQUIRE(read(opened->stream.get(), &next, log.last()));
      // As one that comes now does.
      auto late = LogStream::Open(log.disk(), "db", log.manifest(), RecordName{});
      uint64_t at = 1;
      while (late->stream->position() < log.last())
        REQUIRE(read(late->stream.get(), &at, log.last()));
    }
    CHECK(next == log.last().seq + 1);
  }
}

TEST_CASE("Records of a set's log are read on where the end was found", "[store]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Growing log(seed);
    LogEntryReader reader(log.disk(), "db");
    uint64_t next = 1;
    for (int round = 0; round < 60; ++round) {
      log.Grow();
      while (next <= log.last().seq) {
        const std::vector<uint32_t> epochs(log.last().seq + 1 - next, log.last().epoch);
        std::string wire;
        const uint64_t first = next;
        const auto found = reader.Read(log.manifest(), first, epochs, log.SomeBytes(), &wire);
        REQUIRE(found.ok());
        REQUIRE(*found > 0);
        CheckRecords(wire, &next);
        REQUIRE(next == first + *found);
      }
    }
  }
}

}  // namespace cellar::log_stream_test
