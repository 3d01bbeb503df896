// What stays of snapshots and log, against the rules said one by one, for random stores.
#include "store/journal/log_retention.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/random.h"

namespace cellar::log_retention_test {

constexpr uint64_t kSegmentBytes{1000};

// Segments of ten records each, numbered from 1, the last one open; snapshots behind records.
Manifest StoreOf(uint64_t segments, const std::vector<uint64_t>& snapshot_seqs) {
  Manifest manifest;
  for (uint64_t i = 0; i < segments; ++i) {
    SegmentEntry entry{.number = i + 1, .after = i == 0 ? Lsn{} : Lsn{1, i * 10}};
    if (i + 1 < segments)
      entry.end = SegmentEntry::End{.offset = kSegmentBytes, .last = {1, (i + 1) * 10}};
    manifest.segments.push_back(entry);
  }
  for (const uint64_t seq : snapshot_seqs) {
    if (manifest.snapshot) manifest.earlier.push_back(*manifest.snapshot);
    manifest.snapshot = SnapshotEntry{.number = 1000 + seq, .lsn = {1, seq}};
  }
  return manifest;
}

std::vector<uint64_t> Numbers(const Manifest& manifest) {
  std::vector<uint64_t> numbers;
  for (const SegmentEntry& entry : manifest.segments) numbers.push_back(entry.number);
  return numbers;
}

std::vector<uint64_t> KeptOf(const LogRetention& retention, Manifest manifest) {
  std::vector<std::string> names;
  retention.Prune(&manifest, &names);
  return Numbers(manifest);
}

TEST_CASE("log that a snapshot covers goes", "[log_retention]") {
  const LogRetention retention(1);
  CHECK(KeptOf(retention, StoreOf(6, {35})) == std::vector<uint64_t>{4, 5, 6});
  CHECK(KeptOf(retention, StoreOf(6, {50})) == std::vector<uint64_t>{6});
  CHECK(KeptOf(retention, StoreOf(6, {9})) == std::vector<uint64_t>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a damaged snapshot goes before an older one", "[log_retention]") {
  LogRetention retention(2);
  Manifest store = StoreOf(6, {9, 25, 50});
  std::vector<std::string> names;
  SECTION("none is") {
    retention.Prune(&store, &names);
    REQUIRE(store.earlier.size() == 1);
    CHECK(store.earlier[0].number == 1025);
  }
  SECTION("the one before the newest is") {
    retention.SetDamaged(1025);
    retention.Prune(&store, &names);
    REQUIRE(store.earlier.size() == 1);
    CHECK(store.earlier[0].number == 1009);
    CHECK(Numbers(store) == std::vector<uint64_t>{1, 2, 3, 4, 5, 6});
    CHECK(names == std::vector<std::string>{"cellar-001025.snapshot"});
  }
  SECTION("the newest is: it stays until there is another one") {
    retention.SetDamaged(1050);
    retention.Prune(&store, &names);
    CHECK(store.snapshot->number == 1050);
  }
}

TEST_CASE("what is wanted stays, and what lies behind it", "[log_retention]") {
  LogRetention retention(1);
  const Manifest store = StoreOf(6, {50});
  SECTION("bytes for followers") {
    retention.SetBacklog(2 * kSegmentBytes);
    CHECK(KeptOf(retention, store) == std::vector<uint64_t>{4, 5, 6});
  }
  SECTION("records after a number") {
    retention.SetRetainBehind(25);
    CHECK(KeptOf(retention, store) == std::vector<uint64_t>{3, 4, 5, 6});
  }
  SECTION("segments from a number on, by whoever wants most") {
    CHECK_FALSE(retention.RetainFrom(5));
    CHECK_FALSE(retention.PinFrom(LogPin{0}, 2));
    CHECK_FALSE(retention.PinFrom(LogPin{1}, 4));
    CHECK(KeptOf(retention, store) == std::vector<uint64_t>{2, 3, 4, 5, 6});
    CHECK(retention.PinFrom(LogPin{0}, 6));
    CHECK(KeptOf(retention, store) == std::vector<uint64_t>{4, 5, 6});
  }
}

TEST_CASE("snapshots stay as many as are kept, and the log behind the oldest", "[log_retention]") {
  const LogRetention retention(2);
  Manifest store = StoreOf(6, {15, 25, 45});
  std::vector<std::string> names;
  retention.Prune(&store, &names);
  CHECK(store.earlier.size() == 1);
  CHECK(store.earlier.front().lsn.seq == 25);
  CHECK(Numbers(store) == std::vector<uint64_t>{3, 4, 5, 6});
  const std::vector<std::string> wanted{"cellar-001015.snapshot", "cellar-000002.log",
                                        "cellar-000001.log"};
  CHECK(names == wanted);
  CHECK(retention.keeps_snapshots());
  // A log that goes back to the start does what a second snapshot would.
  CHECK(KeptOf(retention, StoreOf(3, {15})) == std::vector<uint64_t>{1, 2, 3});
}

// For every store: nothing that is open or not covered goes, what stays has no gap, all that
// anybody wants stays, and what goes is named once.
TEST_CASE("random stores keep what they must, and nothing else", "[log_retention]") {
  const uint64_t seed = Catch::rngSeed();
  CAPTURE(seed);
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    const uint64_t segments = 1 + random.Below(12);
    std::vector<uint64_t> seqs;
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) seqs.push_back(random.Below(segments * 10));
    std::sort(seqs.begin(), seqs.end());
    const auto kept_max = static_cast<uint32_t>(1 + random.Below(3));
    LogRetention retention(kept_max);
    const uint64_t backlog = random.Below(3) == 0 ? random.Below(8000) : 0;
    const uint64_t behind = random.Below(3) == 0 ? random.Below(segments * 10) : UINT64_MAX;
    const uint64_t from = random.Below(3) == 0 ? 1 + random.Below(segments) : UINT64_MAX;
    retention.SetBacklog(backlog);
    retention.SetRetainBehind(behind);
    retention.PinFrom(LogPin{1}, from);

    const Manifest before = StoreOf(segments, seqs);
    Manifest after = before;
    std::vector<std::string> names;
    retention.Prune(&after, &names);
    const size_t snapshots_before = before.earlier.size() + 1;
    const size_t snapshots_after = after.earlier.size() + 1;
    REQUIRE(after.snapshot == before.snapshot);
    REQUIRE(snapshots_after == std::min<size_t>(snapshots_before, kept_max));
    REQUIRE(names.size() ==
            snapshots_before - snapshots_after + before.segments.size() - after.segments.size());
    REQUIRE_FALSE(after.segments.empty());
    const uint64_t first = after.segments.front().number;
    REQUIRE(after.segments.back().number == segments);
    REQUIRE(after.segments.size() == segments - first + 1);
    const Lsn oldest = after.earlier.empty() ? after.snapshot->lsn : after.earlier.front().lsn;
    const bool from_start = snapshots_after < kept_max;
    uint64_t covered = 0;
    uint64_t first_wanted = segments;  // the open one
    for (uint64_t number = segments - 1; number >= 1; --number) {
      const Lsn last = before.segments[number - 1].end->last;
      if (last <= before.snapshot->lsn) covered += kSegmentBytes;
      const bool is_wanted = last > oldest || from_start || number >= from || last.seq > behind ||
                             (covered > 0 && covered <= backlog);
      if (is_wanted) first_wanted = number;
    }
    REQUIRE(first == first_wanted);
  }
}

}  // namespace cellar::log_retention_test
