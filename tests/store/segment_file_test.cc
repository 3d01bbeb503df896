// The segment's room: reserved, zeroed ahead, written.
#include "store/journal/segment_file.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/random.h"
#include "store/format/log_format.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::segment_file_test {

struct Fixture {
  explicit Fixture(uint64_t room_bytes) {
    auto created = SegmentFile::Create(disk, "db", {.number = 1}, 0,
                                       {.wanted = room_bytes, .least = room_bytes});
    REQUIRE(created.ok());
    segment = *std::move(created);
  }
  std::string Content() const {
    return disk.Content(JoinPath("db", FormatFileName(StoreFileKind::kSegment, 1)));
  }

  FaultyFileSystem disk;
  std::unique_ptr<SegmentFile> segment;
};

TEST_CASE("zeros written ahead leave the content of a segment as it was", "[segment_file]") {
  Fixture plain(8 * kZeroAheadBytes);
  Fixture zeroed(8 * kZeroAheadBytes);
  const std::string record(kZeroAheadBytes / 8 * 3 + 5, 'r');
  for (uint64_t i = 1; i <= 8; ++i) {
    REQUIRE(zeroed.segment->ZeroAhead(record.size()).ok());
    for (Fixture* fixture : {&plain, &zeroed}) {
      REQUIRE(fixture->segment->Append(record, Lsn{1, i}).ok());
      REQUIRE(fixture->segment->Sync().ok());
    }
    REQUIRE(plain.Content() == zeroed.Content());
    REQUIRE(plain.segment->end_offset() == zeroed.segment->end_offset());
  }
}

TEST_CASE("zeros are written ahead many records at a time", "[segment_file]") {
  Fixture fixture(8 * kZeroAheadBytes);
  const std::string record(100, 'r');
  const uint64_t calls_before = fixture.disk.calls();
  for (uint64_t i = 1; i <= 100; ++i) {
    REQUIRE(fixture.segment->ZeroAhead(record.size()).ok());
    REQUIRE(fixture.segment->Append(record, Lsn{1, i}).ok());
  }
  CHECK(fixture.disk.calls() - calls_before == 101);
}

TEST_CASE("zeros ahead keep to the reserved room", "[segment_file]") {
  Fixture fixture(1000);
  const uint64_t bytes_before = fixture.Content().size();
  const std::string record(900, 'r');
  for (uint64_t i = 1; i <= 2; ++i) {
    REQUIRE(fixture.segment->ZeroAhead(record.size()).ok());
    CHECK(fixture.Content().size() == bytes_before);
    if (i == 1) REQUIRE(fixture.segment->Append(record, Lsn{1, i}).ok());
  }
}

TEST_CASE("a failure to write zeros ahead is told", "[segment_file]") {
  Fixture fixture(kZeroAheadBytes);
  fixture.disk.FailKind(FileCall::kWrite);
  CHECK(!fixture.segment->ZeroAhead(1).ok());
}

TEST_CASE("what is durable leaves the page cache in whole units", "[segment_file]") {
  constexpr uint64_t kUnitBytes = kZeroAheadBytes;
  Fixture fixture(64 << 20);
  const std::string path = JoinPath("db", FormatFileName(StoreFileKind::kSegment, 1));
  uint64_t dropped = 0;  // up to here
  size_t calls = 0;
  const uint64_t seed = 20261123;
  INFO("seed " << seed);
  Random random(seed);
  for (uint64_t i = 1; i <= 400; ++i) {
    REQUIRE(fixture.segment->Append(std::string(random.Below(100'000), 'r'), Lsn{1, i}).ok());
    CHECK(fixture.disk.Dropped(path).size() == calls);  // not before it is synced
    if (random.Below(3) == 0) {
      REQUIRE(fixture.segment->Sync().ok());
    } else if (random.Below(3) == 0) {
      fixture.segment->SetDurable(fixture.segment->end());
    }
    CHECK(fixture.disk.Dropped(path).size() == calls);  // not while replies wait
    fixture.segment->DropDurable();
    const auto ranges = fixture.disk.Dropped(path);
    for (; calls < ranges.size(); ++calls) {
      const auto& [offset, bytes] = ranges[calls];
      CHECK(offset == dropped);
      CHECK(bytes % kUnitBytes == 0);
      dropped += bytes;
    }
    REQUIRE(dropped <= fixture.segment->durable_offset());
    REQUIRE(fixture.segment->durable_offset() - dropped < (1 << 20) + kUnitBytes);
  }
  CHECK(calls > 10);
  CHECK(calls <= 20);  // a mebibyte each, or more
}

}  // namespace cellar::segment_file_test
