// A snapshot that comes from another machine: however its bytes are cut, it makes the state that a
// start would load; whatever is wrong with them is noticed, and what was loaded by then can be
// thrown away.
#include "store/snapshot/snapshot_intake.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/random.h"
#include "store/snapshot/snapshot_reader.h"
#include "tests/store/rich_store.h"

namespace cellar::snapshot_intake_test {

// A snapshot file, and what a start makes of it.
struct Source {
  explicit Source(int rounds) {
    FaultyFileSystem disk;
    RichStore rich(&disk);
    RichStore::Do(rich.Open());
    if (rounds > 0) rich.MakeTables();
    for (int i = 0; i < rounds; ++i) {
      rich.WriteRound(i);
      // Values of more than a block, and trees of several.
      if (i % 8 == 0) {
        const std::string n = std::to_string(i);
        rich.Write(
            rich.Find("plain"), "big" + n,
            {RichStore::Put("f", "v", std::string(30'000 + static_cast<size_t>(i) * 9000, 'b'))});
      }
    }
    RichStore::Do(rich.store->journal().SaveNow());
    const Manifest manifest = rich.store->journal().CopyManifest();
    entry = *manifest.snapshot;
    const std::string path = "db/" + FormatFileName(StoreFileKind::kSnapshot, entry.number);
    bytes = disk.Content(path);
    auto reader = SnapshotReader::Open(disk, path);
    REQUIRE(reader.ok());
    Engine engine;
    RichStore::Do(LoadSnapshot(reader->get(), engine, [](uint64_t) { return Status::Ok(); }));
    trees = TreesOf(engine);
    end_bytes = bytes.size() - (*reader)->footer_offset();
  }
  // In the order of coming.
  std::string Sent() const {
    const size_t footer = bytes.size() - end_bytes;
    return bytes.substr(0, kSnapshotHeaderBytes) + bytes.substr(footer) +
           bytes.substr(kSnapshotHeaderBytes, footer - kSnapshotHeaderBytes);
  }

  SnapshotEntry entry;
  std::string bytes;
  uint64_t end_bytes{0};
  std::map<uint64_t, Tree> trees;
};

// Steps until there is nothing more to do with what is there.
Status StepAll(SnapshotIntake* intake, Random* random) {
  for (int steps = 0;; ++steps) {
    REQUIRE(steps < 100'000);
    // A deadline that is over: one part at a time.
    const int64_t deadline =
        random->OneIn(2) ? 0 : Clock::System().MonotonicMicros() + int64_t{1'000'000};
    const Result<bool> more = intake->Step(Clock::System(), deadline);
    if (!more.ok()) return more.status();
    if (!*more) return Status::Ok();
  }
}

Status Feed(SnapshotIntake* intake, std::string_view sent, Random* random, size_t piece_max) {
  while (!sent.empty()) {
    const size_t n = std::min<size_t>(sent.size(), 1 + random->Below(piece_max));
    intake->Add(sent.substr(0, n));
    sent.remove_prefix(n);
    if (random->OneIn(3) || sent.empty()) RETURN_IF_ERROR(StepAll(intake, random));
  }
  return Status::Ok();
}

TEST_CASE("A snapshot in pieces of any size makes the state that it was taken of",
          "[replica][intake]") {
  for (const int rounds : {0, 1, 40}) {
    const Source source(rounds);
    const std::string sent = source.Sent();
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      CAPTURE(rounds, seed);
      Random random(seed);
      SnapshotIntake intake(source.entry, source.end_bytes);
      const size_t piece_max = seed % 4 == 0 ? 7 : seed % 4 == 1 ? 5000 : 1 << 20;
      // The last byte decides.
      const Status fed =
          Feed(&intake, std::string_view(sent).substr(0, sent.size() - 1), &random, piece_max);
      INFO(fed.ToString());
      REQUIRE(fed.ok());
      REQUIRE_FALSE(intake.done());
      REQUIRE(
          Feed(&intake, std::string_view(sent).substr(sent.size() - 1), &random, piece_max).ok());
      REQUIRE(intake.done());
      const std::unique_ptr<Engine> engine = intake.TakeEngine();
      REQUIRE(TreesOf(*engine) == source.trees);
    }
  }
}

TEST_CASE("Any bit that is flipped on the way is noticed, and nothing of it is left",
          "[replica][intake][damage]") {
  const Source source(25);
  const std::string sent = source.Sent();
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    std::string flipped = sent;
    // Header, footer, head and the first block, and anywhere.
    const size_t at = seed % 2 == 0
                          ? random.Below(std::min<size_t>(sent.size(), source.end_bytes + 1500))
                          : random.Below(sent.size());
    flipped[at] ^= static_cast<char>(1 << random.Below(8));
    CAPTURE(seed, at);
    SnapshotIntake intake(source.entry, source.end_bytes);
    const Status fed = Feed(&intake, flipped, &random, 20'000);
    if (fed.ok()) {
      // A length that is larger now waits for what never comes.
      REQUIRE_FALSE(intake.done());
      REQUIRE(at > source.end_bytes);
    } else {
      REQUIRE(fed.code() == ErrorCode::kCorruption);
    }
    (void)intake.TakeEngine();
  }
}

TEST_CASE("What is cut short is never done, and more than belongs to it is refused",
          "[replica][intake][damage]") {
  const Source source(10);
  const std::string sent = source.Sent();
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    const size_t cut = random.Below(sent.size());
    CAPTURE(cut);
    SnapshotIntake intake(source.entry, source.end_bytes);
    REQUIRE(Feed(&intake, std::string_view(sent).substr(0, cut), &random, 9000).ok());
    REQUIRE_FALSE(intake.done());
    REQUIRE(intake.memory_bytes() <= sent.size() * 2 + (1 << 20));
    // With or without what was laid half.
    if (i % 2 == 0) (void)intake.TakeEngine();
  }
  SnapshotIntake intake(source.entry, source.end_bytes);
  intake.Add(sent);
  intake.Add("x");
  REQUIRE(StepAll(&intake, &random).code() == ErrorCode::kCorruption);
}

TEST_CASE("Another snapshot than was announced is refused", "[replica][intake][damage]") {
  const Source source(6);
  const std::string sent = source.Sent();
  Random random(1);
  const auto refused = [&](const SnapshotEntry& entry, uint64_t end_bytes) {
    SnapshotIntake intake(entry, end_bytes);
    const Status fed = Feed(&intake, sent, &random, 1 << 20);
    return !fed.ok() && fed.code() == ErrorCode::kCorruption;
  };
  const auto changed = [&](const auto& change) {
    SnapshotEntry entry = source.entry;
    change(&entry);
    return entry;
  };
  CHECK(refused(changed([](SnapshotEntry* entry) { ++entry->lsn.seq; }), source.end_bytes));
  CHECK(refused(changed([](SnapshotEntry* entry) { ++entry->lsn.epoch; }), source.end_bytes));
  CHECK(refused(changed([](SnapshotEntry* entry) { entry->hash ^= 1; }), source.end_bytes));
  CHECK(refused(changed([](SnapshotEntry* entry) { --entry->bytes; }), source.end_bytes));
  CHECK(refused(changed([](SnapshotEntry* entry) { ++entry->bytes; }), source.end_bytes));
  CHECK(refused(changed([](SnapshotEntry* entry) { entry->bytes = 0; }), source.end_bytes));
  CHECK(refused(source.entry, 0));
  CHECK(refused(source.entry, source.end_bytes - 1));
  CHECK(refused(source.entry, source.entry.bytes));
  CHECK(refused(source.entry, UINT64_MAX));
  CHECK(refused(source.entry, UINT64_MAX - kSnapshotHeaderBytes + 1));
  // The number is of the other's folder.
  CHECK_FALSE(refused(changed([](SnapshotEntry* entry) { entry->number = 77; }), source.end_bytes));
}

}  // namespace cellar::snapshot_intake_test
