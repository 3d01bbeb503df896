// Earlier snapshots that are kept: a store whose newest one is damaged goes on from the one before,
// and has lost nothing; which files stay, and when they go.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>

#include "base/hash.h"
#include "base/random.h"
#include "store/format/manifest.h"
#include "store/format/snapshot_format.h"
#include "store/offline/check.h"
#include "store/offline/manifest_rebuild.h"
#include "tests/store/journal_rig.h"

namespace cellar::snapshot_keep_test {

Manifest ManifestOf(FileSystem& disk) {
  const auto manifest = LoadManifest(disk, "db");
  REQUIRE(manifest.ok());
  REQUIRE(*manifest);
  return **manifest;
}

std::string PathOf(StoreFileKind kind, uint64_t number) {
  return "db/" + FormatFileName(kind, number);
}
std::string SnapshotPath(const SnapshotEntry& entry) {
  return PathOf(StoreFileKind::kSnapshot, entry.number);
}

// All snapshots, the newest first.
std::vector<SnapshotEntry> SnapshotsOf(const Manifest& manifest) {
  std::vector<SnapshotEntry> all(manifest.earlier.rbegin(), manifest.earlier.rend());
  if (manifest.snapshot) all.insert(all.begin(), *manifest.snapshot);
  return all;
}

void FlipBit(FaultyFileSystem* disk, const std::string& path, uint64_t seed) {
  std::string bytes = disk->Content(path);
  Random random(seed);
  bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
  disk->SetContent(path, bytes);
}

// The files in the folder are those of the manifest, and its log leads from the oldest snapshot to
// the end without a gap.
void RequireTidy(FaultyFileSystem* disk) {
  const Manifest manifest = ManifestOf(*disk);
  std::set<std::string> expected{"db/" + std::string(kManifestName),
                                 "db/" + std::string(kLockName)};
  for (const SnapshotEntry& entry : SnapshotsOf(manifest)) expected.insert(SnapshotPath(entry));
  for (const SegmentEntry& entry : manifest.segments)
    expected.insert(PathOf(StoreFileKind::kSegment, entry.number));
  const std::vector<std::string> paths = disk->Paths();
  REQUIRE(std::set<std::string>(paths.begin(), paths.end()) == expected);
  if (manifest.earlier.empty()) return;
  REQUIRE_FALSE(manifest.segments.empty());
  REQUIRE(manifest.segments.front().after <= manifest.earlier.front().lsn);
  for (size_t i = 1; i < manifest.segments.size(); ++i)
    REQUIRE(manifest.segments[i].after == manifest.segments[i - 1].end->last);
}

void WriteSome(JournalRig* rig, int count) {
  for (int i = 0; i < count; ++i) REQUIRE(rig->WriteAndWait().ok());
}

bool WarnsOf(const RecoveryReport& report, std::string_view text) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST_CASE("As many snapshots stay as are to be kept, and the log behind the oldest",
          "[journal][keep]") {
  const uint32_t kept = GENERATE(1, 2, 3, 5);
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.snapshots_kept = kept;
  REQUIRE(rig.Open().ok());
  for (uint32_t n = 1; n <= 8; ++n) {
    CAPTURE(kept, n);
    WriteSome(&rig, 30);
    REQUIRE(rig.journal->SaveNow().ok());
    const Manifest manifest = ManifestOf(disk);
    REQUIRE(SnapshotsOf(manifest).size() == std::min(n, kept));
    REQUIRE(rig.journal->Stats().snapshots == std::min(n, kept));
    uint64_t bytes = 0;
    for (const SnapshotEntry& entry : SnapshotsOf(manifest)) bytes += entry.bytes;
    REQUIRE(rig.journal->Stats().snapshots_bytes == bytes);
    RequireTidy(&disk);
    // Until there are so many, the beginning of the log does for one.
    if (n < kept) REQUIRE(manifest.segments.front().after == Lsn{});
    if (n == kept && kept > 1) REQUIRE(manifest.segments.front().after > Lsn{});
    if (n == 5) REQUIRE(rig.Open().ok());
  }
  rig.CheckState();
}

TEST_CASE("Snapshots one behind the other with nothing between them are kept too",
          "[journal][keep]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.snapshots_kept = 3;
  REQUIRE(rig.Open().ok());
  WriteSome(&rig, 10);
  for (int i = 0; i < 6; ++i) REQUIRE(rig.journal->SaveNow().ok());
  REQUIRE(ManifestOf(disk).earlier.size() == 2);
  RequireTidy(&disk);
  for (const SnapshotEntry& entry : SnapshotsOf(ManifestOf(disk)))
    REQUIRE(entry.lsn == rig.journal->last_lsn());
  const Manifest before = ManifestOf(disk);
  rig.journal.reset();
  FlipBit(&disk, SnapshotPath(*before.snapshot), 1);
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.CheckState() == 10);
}

TEST_CASE("A growing log starts snapshots as often with earlier ones as without",
          "[journal][keep]") {
  const auto snapshots = [](uint32_t kept) {
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.snapshots_kept = kept;
    rig.options.rewrite_bytes_min = 4000;
    REQUIRE(rig.Open().ok());
    for (int i = 0; i < 1200; ++i) {
      WriteSome(&rig, 1);
      if (!rig.journal->MaybeStartSnapshot()) continue;
      REQUIRE(rig.WaitUntil([&] { return !rig.journal->snapshot_running(); }));
    }
    return rig.journal->Stats().saves;
  };
  const uint64_t alone = snapshots(1);
  REQUIRE(alone > 5);
  CHECK(snapshots(4) == alone);
}

TEST_CASE("Snapshots that are too many go when the number is lowered, and at a start",
          "[journal][keep]") {
  FaultyFileSystem disk;
  JournalRig rig(&disk);
  rig.options.snapshots_kept = 5;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < 6; ++i) {
    WriteSome(&rig, 40);
    REQUIRE(rig.journal->SaveNow().ok());
  }
  REQUIRE(ManifestOf(disk).earlier.size() == 4);
  const auto has = [&](size_t earlier) {
    return rig.WaitUntil([&] {
      if (ManifestOf(disk).earlier.size() != earlier) return false;
      size_t files = 0;
      for (const std::string& path : disk.Paths()) files += path.ends_with(".snapshot") ? 1 : 0;
      return files == earlier + 1;
    });
  };
  rig.journal->SetSnapshotsKept(3);
  REQUIRE(has(2));
  // More from now on; a failure on the way is tried again.
  rig.journal->SetSnapshotsKept(4);
  WriteSome(&rig, 40);
  REQUIRE(rig.journal->SaveNow().ok());
  REQUIRE(has(3));
  rig.options.snapshots_kept = 2;
  REQUIRE(rig.Open().ok());
  REQUIRE(has(1));
  rig.journal->SetSnapshotsKept(1);
  REQUIRE(has(0));
  REQUIRE(rig.WaitUntil([&] {
    for (const SegmentEntry& entry : ManifestOf(disk).segments)
      if (disk.Paths().size() != 3 + ManifestOf(disk).segments.size() || entry.number == 0)
        return false;
    return true;
  }));
  RequireTidy(&disk);
  WriteSome(&rig, 5);
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.CheckState() == 6 * 40 + 45);
}

// Three snapshots, `behind` mutations after each.
std::unique_ptr<FaultyFileSystem> MakeStore(uint32_t kept, int snapshots, uint64_t* mutations) {
  auto disk = std::make_unique<FaultyFileSystem>();
  JournalRig rig(disk.get());
  rig.options.snapshots_kept = kept;
  REQUIRE(rig.Open().ok());
  for (int i = 0; i < snapshots; ++i) {
    WriteSome(&rig, 40);
    REQUIRE(rig.journal->SaveNow().ok());
  }
  WriteSome(&rig, 25);
  *mutations = rig.written;
  return disk;
}

TEST_CASE("With any bit of the newest snapshots flipped, a start goes on from the one before",
          "[journal][keep][damage]") {
  uint64_t mutations = 0;
  const auto store = MakeStore(4, 3, &mutations);
  const Manifest manifest = ManifestOf(*store);
  const std::vector<SnapshotEntry> all = SnapshotsOf(manifest);
  REQUIRE(all.size() == 3);
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const auto disk = store->Clone();
    // All three too: the log goes back to the first record.
    const uint64_t damaged = 1 + seed % 3;
    CAPTURE(seed, damaged);
    for (uint64_t i = 0; i < damaged; ++i) {
      if (seed % 7 == 0 && i == 0) {
        REQUIRE(disk->Remove(SnapshotPath(all[i])).ok());
      } else {
        FlipBit(disk.get(), SnapshotPath(all[i]), seed + i);
      }
    }
    JournalRig rig(disk.get());
    rig.options.snapshots_kept = 4;
    const Status opened = rig.Open();
    INFO(opened.ToString());
    REQUIRE(opened.ok());
    REQUIRE(rig.CheckState() == mutations);
    REQUIRE(rig.journal->recovery().from_earlier);
    REQUIRE(WarnsOf(rig.journal->recovery(), "THE NEWEST SNAPSHOT IS DAMAGED"));
    REQUIRE(
        WarnsOf(rig.journal->recovery(), FormatFileName(StoreFileKind::kSnapshot, all[0].number)));
    // The same once more, if it is killed at once; unless the log has begun another segment, with a
    // manifest that names the damaged one no more.
    bool is_over = false;
    if (seed % 3 == 0) {
      WriteSome(&rig, 3);
      disk->Kill();
      rig.journal.reset();
      disk->Reboot();
      REQUIRE(rig.Open().ok());
      REQUIRE(rig.CheckState() == mutations + 3);
      is_over = !rig.journal->recovery().from_earlier;
      REQUIRE(is_over == (ManifestOf(*disk).snapshot != manifest.snapshot));
    }
    const uint64_t written = rig.written;
    REQUIRE(rig.journal->MaybeStartSnapshot() == !is_over);
    if (is_over) REQUIRE(rig.journal->SaveNow().ok());
    REQUIRE(rig.WaitUntil([&] { return !rig.journal->snapshot_running(); }));
    REQUIRE_FALSE(rig.journal->MaybeStartSnapshot());
    RequireTidy(disk.get());
    WriteSome(&rig, 2);
    REQUIRE(rig.Open().ok());
    REQUIRE_FALSE(rig.journal->recovery().from_earlier);
    REQUIRE(rig.journal->recovery().warnings.empty());
    REQUIRE(rig.CheckState() == written + 2);
  }
}

TEST_CASE(
    "Where the log does not lead to what the newest snapshot held, a damaged one stops the start",
    "[journal][keep][damage]") {
  uint64_t mutations = 0;
  const auto store = MakeStore(2, 3, &mutations);
  const Manifest manifest = ManifestOf(*store);
  const std::string newest = SnapshotPath(*manifest.snapshot);
  const auto refused = [&](FaultyFileSystem* disk) {
    JournalRig rig(disk);
    rig.options.snapshots_kept = 2;
    const Status status = rig.Open();
    REQUIRE_FALSE(status.ok());
    CAPTURE(status.text());
    CHECK(status.text().find(newest) != std::string::npos);
    CHECK(status.text().find("--check") != std::string::npos);
    MapMachine machine;
    std::ostringstream out;
    return status.text();
  };
  SECTION("since it is damaged") {
    const SegmentEntry* between = nullptr;
    for (const SegmentEntry& entry : manifest.segments) {
      if (entry.end && entry.end->last > manifest.earlier[0].lsn)
        between = between ? between : &entry;
    }
    REQUIRE(between != nullptr);
    const auto disk = store->Clone();
    const std::string path = PathOf(StoreFileKind::kSegment, between->number);
    std::string bytes = disk->Content(path);
    bytes[between->end->offset - 3] ^= 4;
    disk->SetContent(path, bytes);
    {
      // The newest one alone needs none of it.
      JournalRig rig(disk.get());
      REQUIRE(rig.Open().ok());
      REQUIRE(rig.CheckState() == mutations);
    }
    FlipBit(disk.get(), newest, 1);
    CHECK(refused(disk.get()).find(path) != std::string::npos);
  }
  SECTION("since the one before is damaged too") {
    const auto disk = store->Clone();
    FlipBit(disk.get(), newest, 1);
    FlipBit(disk.get(), SnapshotPath(manifest.earlier[0]), 2);
    refused(disk.get());
  }
  SECTION("since it was off") {
    const auto disk = store->Clone();
    uint64_t written = 0;
    {
      JournalRig rig(disk.get());
      rig.options.snapshots_kept = 2;
      rig.options.log_enabled = false;
      REQUIRE(rig.Open().ok());
      WriteSome(&rig, 5);
      REQUIRE(rig.journal->SaveNow().ok());
      REQUIRE(ManifestOf(*disk).earlier.size() == 1);
      written = rig.written;
    }
    FlipBit(disk.get(), SnapshotPath(*ManifestOf(*disk).snapshot), 1);
    JournalRig rig(disk.get());
    rig.options.log_enabled = false;
    const Status status = rig.Open();
    REQUIRE_FALSE(status.ok());
    CHECK(status.text().find("leads only to record") != std::string::npos);
    CHECK(written == mutations + 5);
  }
}

// Work with snapshots, until the process dies or a call fails for good. Returns how many mutations
// are acknowledged, of which `acknowledged` were before.
uint64_t WorkWithSnapshots(JournalRig* rig, const FaultyFileSystem& disk, Random* random,
                           uint64_t acknowledged) {
  for (int turn = 0; turn < 60; ++turn) {
    if (!rig->Write().ok()) return acknowledged;
    rig->journal->Flush();
    const uint64_t written = rig->written;
    const auto is_released = [&] { return rig->journal->released_lsn() >= rig->lsn; };
    if (!rig->WaitUntil(
            [&] { return is_released() || disk.is_halted() || !rig->journal->healthy(); }))
      FAIL("neither released nor killed");
    if (is_released()) acknowledged = written;
    if (random->OneIn(8)) (void)rig->journal->StartSnapshot();
    if (random->OneIn(12)) (void)rig->journal->SaveNow();
    if (random->OneIn(15))
      rig->journal->SetSnapshotsKept(static_cast<uint32_t>(1 + random->Below(4)));
  }
  return acknowledged;
}

// Opens what a crash has left; damages the newest snapshot if another one stands behind it.
void RequireNothingLost(FaultyFileSystem* disk, uint64_t acknowledged, uint64_t written,
                        uint64_t seed) {
  const auto loaded = LoadManifest(*disk, "db");
  REQUIRE(loaded.ok());
  bool harmed = false;
  if (*loaded && !(*loaded)->earlier.empty()) {
    FlipBit(disk, SnapshotPath(*(*loaded)->snapshot), seed);
    harmed = true;
  }
  JournalRig after(disk);
  after.options.snapshots_kept = 3;
  const Status recovered = after.Open();
  INFO(recovered.ToString());
  REQUIRE(recovered.ok());
  REQUIRE(after.journal->recovery().from_earlier == harmed);
  const uint64_t found = after.CheckState();
  REQUIRE(found >= acknowledged);
  REQUIRE(found <= written);
  REQUIRE(after.journal->SaveNow().ok());
  REQUIRE(after.Open().ok());
  REQUIRE_FALSE(after.journal->recovery().from_earlier);
  REQUIRE(after.CheckState() == found);
  RequireTidy(disk);
}

TEST_CASE("In whichever call the process is killed, the snapshot before stands in for the newest",
          "[journal][keep][crash]") {
  for (const SyncPolicy policy : {SyncPolicy::kAlways, SyncPolicy::kEverySecond}) {
    bool was_hit = true;
    for (uint64_t n = 1; was_hit; n += 1 + n / 100) {
      CAPTURE(static_cast<int>(policy), n);
      Random random(n);
      FaultyFileSystem disk;
      JournalRig rig(&disk);
      rig.options.sync_policy = policy;
      rig.options.snapshots_kept = 3;
      disk.KillAtCall(n);
      const uint64_t acknowledged =
          rig.Open().ok() ? WorkWithSnapshots(&rig, disk, &random, 0) : uint64_t{0};
      was_hit = disk.is_halted();
      if (!was_hit) disk.Kill();
      rig.journal.reset();
      disk.Reboot();
      RequireNothingLost(&disk, acknowledged, rig.written, n);
    }
  }
}

TEST_CASE("With calls that fail on the way too", "[journal][keep][crash]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    FaultyFileSystem disk;
    JournalRig rig(&disk);
    rig.options.sync_policy = seed % 2 == 0 ? SyncPolicy::kAlways : SyncPolicy::kEverySecond;
    rig.options.snapshots_kept = 3;
    REQUIRE(rig.Open().ok());
    uint64_t acknowledged = WorkWithSnapshots(&rig, disk, &random, 0);
    disk.FailCall(1 + random.Below(120), random.OneIn(3),
                  random.OneIn(3) ? ErrorCode::kNoSpace : ErrorCode::kIo);
    acknowledged = WorkWithSnapshots(&rig, disk, &random, acknowledged);
    if (random.OneIn(2)) {
      disk.Heal();
      acknowledged = WorkWithSnapshots(&rig, disk, &random, acknowledged);
    }
    if (seed % 2 == 0)
      disk.PowerLoss(random.Next());
    else
      disk.Kill();
    rig.journal.reset();
    disk.Reboot();
    RequireNothingLost(&disk, acknowledged, rig.written, seed);
  }
}

Status Check(FileSystem& files, CheckMode mode, std::string* said) {
  MapMachine machine;
  std::ostringstream out;
  const Status status = CheckStore(files, "db", mode, machine, out);
  *said = out.str();
  return status;
}

uint64_t StateOf(FaultyFileSystem* disk) {
  JournalRig rig(disk);
  rig.options.snapshots_kept = 3;
  const Status opened = rig.Open();
  INFO(opened.ToString());
  REQUIRE(opened.ok());
  const uint64_t found = rig.CheckState();
  WriteSome(&rig, 2);
  REQUIRE(rig.journal->SaveNow().ok());
  REQUIRE(rig.Open().ok());
  REQUIRE(rig.CheckState() == found + 2);
  return found;
}

TEST_CASE("--check reads earlier snapshots too, and a repair goes back to one without a loss",
          "[keep][check][damage]") {
  uint64_t mutations = 0;
  const auto store = MakeStore(3, 4, &mutations);
  const Manifest manifest = ManifestOf(*store);
  REQUIRE(manifest.earlier.size() == 2);
  std::string said;
  REQUIRE(Check(*store, CheckMode::kLook, &said).ok());
  CHECK(said.find("a snapshot, 2 earlier, ") != std::string::npos);
  for (const SnapshotEntry& entry : manifest.earlier)
    CHECK(said.find(FormatFileName(StoreFileKind::kSnapshot, entry.number) + ": ok") !=
          std::string::npos);
  CHECK(said.find("not part") == std::string::npos);

  const auto repaired = [&](FaultyFileSystem* disk, std::string_view words) {
    std::string looked;
    const Status look = Check(*disk, CheckMode::kLook, &looked);
    INFO(looked << look.ToString());
    REQUIRE(look.code() == ErrorCode::kCorruption);
    CHECK((looked + look.text()).find(words) != std::string::npos);
    CHECK(looked.find("LOST") == std::string::npos);
    const auto before = disk->Clone();
    const Status repair = Check(*disk, CheckMode::kRepair, &said);
    INFO(said << repair.ToString());
    REQUIRE(repair.ok());
    CHECK(said.find("LOST") == std::string::npos);
    REQUIRE(Check(*disk, CheckMode::kLook, &said).ok());
    REQUIRE(StateOf(disk) == mutations);
  };
  SECTION("the newest") {
    const auto disk = store->Clone();
    const std::string path = SnapshotPath(*manifest.snapshot);
    FlipBit(disk.get(), path, 3);
    const std::string bytes = disk->Content(path);
    repaired(disk.get(), "nothing is lost");
    CHECK(disk->Content(path + ".damaged") == bytes);
  }
  SECTION("the newest two") {
    const auto disk = store->Clone();
    FlipBit(disk.get(), SnapshotPath(*manifest.snapshot), 3);
    FlipBit(disk.get(), SnapshotPath(manifest.earlier[1]), 4);
    repaired(disk.get(), "nothing is lost");
    CHECK(std::ranges::count(disk->Paths(), SnapshotPath(manifest.earlier[1]) + ".damaged") == 1);
  }
  SECTION("an earlier one") {
    const auto disk = store->Clone();
    FlipBit(disk.get(), SnapshotPath(manifest.earlier[0]), 3);
    repaired(disk.get(), "the earlier snapshot");
    CHECK(std::ranges::count(disk->Paths(), SnapshotPath(manifest.earlier[0]) + ".damaged") == 1);
  }
  SECTION("the log behind the newest") {
    // Whatever is kept of it, none of what is newer goes.
    for (const SegmentEntry& entry : manifest.segments) {
      if (!entry.end || entry.end->last > manifest.snapshot->lsn) continue;
      const auto disk = store->Clone();
      const std::string path = PathOf(StoreFileKind::kSegment, entry.number);
      std::string bytes = disk->Content(path);
      bytes[entry.end->offset - 1] ^= 1;
      disk->SetContent(path, bytes);
      CAPTURE(path);
      repaired(disk.get(), "the log that is kept behind the snapshot");
      CHECK(disk->Content(path + ".damaged") == bytes);
    }
  }
  SECTION("the manifest") {
    const auto disk = store->Clone();
    REQUIRE(disk->Remove("db/" + std::string(kManifestName)).ok());
    const auto rebuilt = RebuildManifest(*disk, "db", std::nullopt);
    REQUIRE(rebuilt.ok());
    REQUIRE(*rebuilt);
    CHECK((*rebuilt)->manifest.snapshot == manifest.snapshot);
    CHECK((*rebuilt)->manifest.earlier == manifest.earlier);
    CHECK((*rebuilt)->manifest.segments == manifest.segments);
    CHECK((*rebuilt)->left.empty());
    FlipBit(disk.get(), SnapshotPath(*manifest.snapshot), 9);
    const Status repair = Check(*disk, CheckMode::kRepair, &said);
    INFO(said << repair.ToString());
    REQUIRE(repair.ok());
    REQUIRE(StateOf(disk.get()) == mutations);
  }
}

TEST_CASE("What is newer than an earlier snapshot moved away, a repair goes back to it",
          "[keep][check]") {
  uint64_t mutations = 0;
  const auto disk = MakeStore(3, 4, &mutations);
  const Manifest manifest = ManifestOf(*disk);
  REQUIRE(disk->Remove(SnapshotPath(*manifest.snapshot)).ok());
  for (const SegmentEntry& entry : manifest.segments) {
    if (entry.after >= manifest.earlier[1].lsn)
      REQUIRE(disk->Remove(PathOf(StoreFileKind::kSegment, entry.number)).ok());
  }
  std::string said;
  const Status repair = Check(*disk, CheckMode::kRepair, &said);
  INFO(said << repair.ToString());
  REQUIRE(repair.ok());
  CHECK(said.find("LOST: all changes after record") != std::string::npos);
  REQUIRE(StateOf(disk.get()) == 120);
}

TEST_CASE("A repair that goes back and ends anywhere is completed by the next one",
          "[keep][check][damage]") {
  uint64_t mutations = 0;
  const auto store = MakeStore(3, 4, &mutations);
  const Manifest manifest = ManifestOf(*store);
  FlipBit(store.get(), SnapshotPath(*manifest.snapshot), 5);
  FlipBit(store.get(), SnapshotPath(manifest.earlier[1]), 6);
  for (const bool kills : {true, false}) {
    bool completed = false;
    for (uint64_t n = 1; !completed; ++n) {
      REQUIRE(n < 400);
      const auto disk = store->Clone();
      if (kills) {
        disk->KillAtCall(n);
      } else {
        disk->FailCall(n, true, ErrorCode::kNoSpace);
      }
      std::string first;
      const Status ended = Check(*disk, CheckMode::kRepair, &first);
      completed = ended.ok() && !disk->has_failed() && !disk->is_halted();
      disk->Heal();
      disk->Reboot();
      CAPTURE(n, kills);
      std::string again;
      const Status status = Check(*disk, CheckMode::kRepair, &again);
      INFO(first << ended.ToString() << "\n---\n" << again << status.ToString());
      REQUIRE(status.ok());
      REQUIRE(StateOf(disk.get()) == mutations);
    }
  }
}

TEST_CASE("A manifest is of version 2 only if it names earlier snapshots", "[keep][manifest]") {
  Manifest manifest{.next = 9, .snapshot = {}, .earlier = {}, .segments = {}};
  manifest.snapshot = SnapshotEntry{.number = 5, .lsn = {1, 20}, .bytes = 7, .hash = 0xab};
  const std::string plain = FormatManifest(manifest);
  CHECK(plain.starts_with("cellar-manifest 1\nnext 9\nsnapshot cellar-000005.snapshot lsn 1-20 "));
  manifest.earlier = {{.number = 2, .lsn = {1, 4}, .bytes = 5, .hash = 1},
                      {.number = 3, .lsn = {1, 9}, .bytes = 6, .hash = 2}};
  manifest.segments.push_back({.number = 4, .after = {1, 4}, .end = std::nullopt});
  const std::string text = FormatManifest(manifest);
  CHECK(text.starts_with(
      "cellar-manifest 2\nnext 9\n"
      "earlier-snapshot cellar-000002.snapshot lsn 1-4 bytes 5 hash 0000000000000001\n"
      "earlier-snapshot cellar-000003.snapshot lsn 1-9 bytes 6 hash 0000000000000002\n"
      "snapshot cellar-000005.snapshot lsn 1-20 bytes 7 hash 00000000000000ab\n"
      "log cellar-000004.log after 1-4\n"));
  const Result<Manifest> parsed = ParseManifest(text);
  REQUIRE(parsed.ok());
  CHECK(*parsed == manifest);
  CHECK(parsed->Names({StoreFileKind::kSnapshot, 2}));
  CHECK(parsed->Names({StoreFileKind::kSnapshot, 5}));
  CHECK(parsed->Names({StoreFileKind::kSegment, 4}));
  CHECK_FALSE(parsed->Names({StoreFileKind::kSnapshot, 4}));
  CHECK_FALSE(parsed->Names({StoreFileKind::kTemporarySnapshot, 2}));
  for (size_t at = 0; at < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] ^= 1;
    REQUIRE_FALSE(ParseManifest(flipped).ok());
  }
}

TEST_CASE("A manifest is of version 3 only if the store holds a log alone", "[keep][manifest]") {
  Manifest manifest;
  manifest.next = 9;
  manifest.holds_log_only = true;
  manifest.segments.push_back({.number = 4, .after = {1, 4}, .end = std::nullopt});
  const std::string text = FormatManifest(manifest);
  CHECK(
      text.starts_with("cellar-manifest 3\nnext 9\nholds log\nlog cellar-000004.log after 1-4\n"));
  const Result<Manifest> parsed = ParseManifest(text);
  REQUIRE(parsed.ok());
  CHECK(*parsed == manifest);
  manifest.snapshot = SnapshotEntry{.number = 5, .lsn = {1, 20}, .bytes = 7, .hash = 0xab};
  manifest.earlier = {{.number = 2, .lsn = {1, 4}, .bytes = 5, .hash = 1}};
  const Result<Manifest> whole = ParseManifest(FormatManifest(manifest));
  REQUIRE(whole.ok());
  CHECK(*whole == manifest);
  for (size_t at = 0; at < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] ^= 1;
    REQUIRE_FALSE(ParseManifest(flipped).ok());
  }
  // The version and what is named go together.
  for (const auto& [from, to] :
       {std::pair("cellar-manifest 3", "cellar-manifest 1"),
        std::pair("cellar-manifest 3", "cellar-manifest 2"), std::pair("holds log\n", "")}) {
    std::string other = text.substr(0, text.rfind("xxh3 "));
    other.replace(other.find(from), std::strlen(from), to);
    char hash[24];
    std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(Hash64(other)));
    CHECK_FALSE(ParseManifest(other + "xxh3 " + hash + "\n").ok());
  }
}

}  // namespace cellar::snapshot_keep_test
