// Damaged snapshots and lost manifests: what --repair says is lost is what is lost, all else is
// there, and a repair that ends anywhere is completed by the next one. Compared with what the store
// held.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

#include "base/random.h"
#include "store/format/snapshot_format.h"
#include "store/offline/check.h"
#include "store/offline/manifest_rebuild.h"
#include "store/snapshot/snapshot_reader.h"
#include "store/snapshot/snapshot_salvage.h"
#include "tests/store/rich_store.h"

namespace cellar::salvage_test {

// Tables of several groups and key orders, indexes, super columns, values up to a megabyte, and a
// snapshot in the middle. Returns its path.
struct WideStore {
  explicit WideStore(uint64_t seed) : random(seed), rich(&disk) {
    RichStore::Do(rich.Open());
    rich.MakeTables();
    FamilyOptions super;
    super.order = *Order::Parse("utf8/i64");
    FamilyOptions cold;
    cold.group = "cold";
    RichStore::Do(rich.store->CreateTable("0", "wide", *Order::Parse("u64"),
                                          {{"s", super}, {"big", cold}, {"f", {}}}));
    RichStore::Do(rich.store->CreateTable("0", "empty", Order(), {{"f", {}}}));
    for (int i = 0; i < 10; ++i) rich.WriteRound(i % 4);
    for (int i = 0; i < 2500; ++i) Write();
    RichStore::Do(rich.store->journal().SaveNow());
    snapshot = TreesOf(rich.store->engine());
    for (int i = 0; i < 100; ++i) Write();
    rich.store->Flush();
    digest = rich.store->Digest();
    RichStore::Do(rich.store->journal().Close());
    rich.store.reset();
    for (const std::string& name : disk.Paths())
      if (name.ends_with(".snapshot")) path = name;
  }
  void Write() {
    Table& wide = rich.Find("wide");
    const std::string row = std::to_string(random.Below(400));
    const std::string n = std::to_string(random.Below(1000));
    const std::string value(random.Below(300), static_cast<char>('a' + random.Below(26)));
    rich.Write(wide, row,
               {RichStore::Put("s", "part" + n + "/" + n, value), RichStore::Put("f", n, value)});
    if (random.OneIn(200)) {
      const size_t bytes = random.OneIn(4) ? 1 << 20 : 25'000 + random.Below(100'000);
      rich.Write(wide, row, {RichStore::Put("big", n, std::string(bytes, 'B'))});
    }
    rich.Write(rich.Find("plain"), "row" + std::to_string(random.Below(3000)),
               {RichStore::Put("f", "a", value)});
    if (random.OneIn(8)) rich.store->Flush();
  }

  Random random;
  FaultyFileSystem disk;
  RichStore rich;
  std::string path;
  std::map<uint64_t, Tree> snapshot;
  std::string digest;
};

enum class Harm : uint8_t { kBit, kPage, kCut, kHeader, kFooter };

std::string Damaged(Random* random, std::string bytes, Harm harm) {
  const size_t at = random->Below(bytes.size());
  switch (harm) {
    case Harm::kBit:
      for (uint64_t n = 1 + random->Below(4); n > 0; --n)
        bytes[random->Below(bytes.size())] ^= static_cast<char>(1 << random->Below(8));
      return bytes;
    case Harm::kPage:
      for (size_t i = at / 4096 * 4096; i < std::min(bytes.size(), at / 4096 * 4096 + 4096); ++i)
        bytes[i] = '\0';
      return bytes;
    case Harm::kCut:
      return bytes.substr(0, at);
    case Harm::kHeader:
      bytes[random->Below(kSnapshotHeaderBytes)] ^= 1;
      return bytes;
    case Harm::kFooter:
      bytes[bytes.size() - 1 - random->Below(200)] ^= 1;
      bytes[at] ^= 1;
      return bytes;
  }
  return bytes;
}

// The lines about stretches that should be there, from what is missing.
std::set<std::string> ExpectedGaps(const Engine& engine, const std::map<uint64_t, Tree>& before,
                                   const std::map<uint64_t, Tree>& after) {
  std::set<std::string> lines;
  for (const auto& table : before) {  // clang 14 captures no names of a binding
    const uint64_t id = table.first;
    const Tree& left = after.at(id);
    std::string last;
    bool in_gap = false;
    const auto end_gap = [&](const std::string* next) {
      const std::string from = last.empty() ? "" : engine.KeyText(id, last);
      const std::string to = next == nullptr ? "" : engine.KeyText(id, *next);
      lines.insert(from.empty() ? to.empty() ? "all" : "all before " + to
                   : to.empty() ? "all behind " + from
                                : "all between " + from + " and " + to);
      in_gap = false;
    };
    for (const auto& [key, value] : table.second) {
      const auto found = left.find(key);
      if (found == left.end()) {
        in_gap = true;
        continue;
      }
      REQUIRE(found->second == value);
      if (in_gap) end_gap(&key);
      last = key;
    }
    if (in_gap) end_gap(nullptr);
    REQUIRE(left.size() <= table.second.size());
  }
  return lines;
}

uint64_t Entries(const std::map<uint64_t, Tree>& trees) {
  uint64_t entries = 0;
  for (const auto& [id, tree] : trees) entries += tree.size();
  return entries;
}

// The numbers and the stretches of the lines.
void CheckLost(const std::vector<std::string>& lost, const Engine& engine,
               const std::map<uint64_t, Tree>& before, bool has_footer) {
  const std::map<uint64_t, Tree> after = TreesOf(engine);
  uint64_t cells = 0;
  std::set<std::string> said;
  bool all_named = true;
  for (const std::string& line : lost) {
    const size_t all = line.find(": all");
    if (all != std::string::npos) {
      said.insert(line.substr(all + 2));
    } else if (line.find("more stretches") != std::string::npos) {
      all_named = false;
    } else {
      cells += std::stoull(line.substr(line.find(": ") + 2));
    }
  }
  CHECK(cells == Entries(before) - Entries(after));
  const std::set<std::string> expected = ExpectedGaps(engine, before, after);
  if (has_footer && all_named) CHECK(said == expected);
  if (all_named) {
    for (const std::string& line : expected) CHECK(said.contains(line));
  }
}

TEST_CASE("What is salvaged of a snapshot, and what is said to be lost, is all of it",
          "[salvage][damage]") {
  for (const uint64_t seed : {1, 2}) {
    WideStore store(seed);
    const std::string bytes = store.disk.Content(store.path);
    const auto manifest = LoadManifest(store.disk, "db");
    REQUIRE(manifest.ok());
    REQUIRE((*manifest)->snapshot);
    Random random(seed * 100);
    uint64_t lossless = 0;
    uint64_t hopeless = 0;
    for (int round = 0; round < 60; ++round) {
      const auto harm = static_cast<Harm>(random.Below(5));
      CAPTURE(seed, round, static_cast<int>(harm));
      store.disk.SetContent(store.path, Damaged(&random, bytes, harm));
      Engine engine;
      const auto salvage = SalvageSnapshot(store.disk, store.path, (*manifest)->snapshot, engine);
      if (!salvage.ok()) {
        // Of a file that ends before its catalog does nothing can be read.
        REQUIRE(salvage.status().code() == ErrorCode::kCorruption);
        ++hopeless;
        continue;
      }
      INFO(fmt::format("{}", fmt::join(salvage->lost, "\n")));
      CHECK(salvage->lsn == (*manifest)->snapshot->lsn);
      CheckLost(salvage->lost, engine, store.snapshot, harm != Harm::kCut && harm != Harm::kFooter);
      if (salvage->lost.empty()) ++lossless;
      for (const Table* table = engine.FindTableFrom(0); table != nullptr;
           table = engine.FindTableFrom(table->id() + 1)) {
        const auto counted = CountTable(*table);
        REQUIRE(counted.ok());
        CHECK(counted->rows == table->counters().rows);
      }
    }
    CHECK(lossless > 5);
    CHECK(hopeless < 10);
  }
}

std::string LostLines(const std::string& said) {
  std::istringstream lines(said);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("LOST") != std::string::npos) found += line + "\n";
  }
  return found;
}

Status Check(FileSystem& files, CheckMode mode, std::string* said) {
  Engine engine;
  std::ostringstream out;
  const Status status = CheckStore(files, "db", mode, engine, out);
  *said = out.str();
  return status;
}

// Opened, sound, and it goes on.
std::string Reopened(FaultyFileSystem* disk, int64_t now_micros) {
  RichStore rich(disk);
  rich.clock.now_micros = now_micros;
  RichStore::Do(rich.Open());
  RichStore::Do(ValidateStore(rich.store.get()));
  const std::string digest = rich.store->Digest();
  rich.Write(rich.Find("plain"), "new", {RichStore::Put("f", "v", "1")});
  RichStore::Do(rich.store->journal().SaveNow());
  RichStore::Do(rich.store->journal().Close());
  RichStore::Do(rich.Open());
  RichStore::Do(ValidateStore(rich.store.get()));
  return digest;
}

TEST_CASE("--repair makes a store of whatever was harmed, and tells what is lost",
          "[salvage][damage][check]") {
  const uint64_t seed = 3;
  WideStore store(seed);
  Random random(seed);
  CAPTURE(seed);
  uint64_t repaired = 0;
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const auto disk = store.disk.Clone();
    bool manifest_only = true;
    const uint64_t harms = 1 + random.Below(2);
    for (uint64_t n = 0; n < harms; ++n) {
      std::string path = "db/" + std::string(kManifestName);
      if (random.OneIn(2)) {
        std::vector<std::string> paths;
        for (const std::string& one : disk->Paths())
          if (one.ends_with(".snapshot") || one.ends_with(".log")) paths.push_back(one);
        path = paths[random.Below(paths.size())];
        manifest_only = false;
      } else if (random.OneIn(2)) {
        if (std::ranges::count(disk->Paths(), path) > 0) REQUIRE(disk->Remove(path).ok());
        continue;
      }
      if (std::ranges::count(disk->Paths(), path) == 0) continue;
      disk->SetContent(
          path, Damaged(&random, disk->Content(path), random.OneIn(3) ? Harm::kCut : Harm::kBit));
    }
    std::string looked;
    std::string said;
    const Status look = Check(*disk, CheckMode::kLook, &looked);
    const Status status = Check(*disk, CheckMode::kRepair, &said);
    INFO(looked << look.ToString() << "\n---\n" << said << status.ToString());
    if (!status.ok()) {
      REQUIRE(status.text().find("backup") != std::string::npos);
      REQUIRE_FALSE(manifest_only);
      continue;
    }
    ++repaired;
    CHECK(LostLines(looked) == LostLines(said));
    std::string again;
    REQUIRE(Check(*disk, CheckMode::kLook, &again).ok());
    CHECK(LostLines(again).empty());
    const std::string digest = Reopened(disk.get(), store.rich.clock.now_micros);
    if (manifest_only) CHECK(digest == store.digest);
  }
  CHECK(repaired > 30);
}

TEST_CASE("A repair of snapshot and manifest that ends anywhere is completed by the next one",
          "[salvage][damage][check]") {
  FaultyFileSystem whole;
  {
    RichStore rich(&whole);
    RichStore::Do(rich.Open());
    rich.MakeTables();
    for (int i = 0; i < 3; ++i) rich.WriteRound(i);
    RichStore::Do(rich.store->journal().SaveNow());
    rich.WriteRound(4);
    RichStore::Do(rich.store->journal().Close());
  }
  std::string path;
  for (const std::string& name : whole.Paths())
    if (name.ends_with(".snapshot")) path = name;
  std::string bytes = whole.Content(path);
  auto reader = SnapshotReader::Open(whole, path);
  REQUIRE(reader.ok());
  bytes[(*reader)->footer().trees[0].begin_offset + 100] ^= 1;
  whole.SetContent(path, bytes);
  const bool has_manifest = GENERATE(true, false);
  const bool has_links = GENERATE(true, false);
  if (!has_manifest) REQUIRE(whole.Remove("db/" + std::string(kManifestName)).ok());
  std::string expected;
  std::string digest;
  {
    const auto disk = whole.Clone();
    REQUIRE(Check(*disk, CheckMode::kRepair, &expected).ok());
    REQUIRE_FALSE(LostLines(expected).empty());
    REQUIRE(disk->Content(path + ".damaged") == bytes);
    digest = Reopened(disk.get(), RichStore::kNow);
  }
  enum class Stop { kFails, kNoSpace, kKilled, kPowerLoss };
  for (const Stop stop : {Stop::kFails, Stop::kNoSpace, Stop::kKilled, Stop::kPowerLoss}) {
    bool completed = false;
    for (uint64_t n = 1; !completed; ++n) {
      REQUIRE(n < 400);
      const auto disk = whole.Clone();
      if (!has_links) disk->ForbidLinks();
      if (stop == Stop::kKilled) {
        disk->KillAtCall(n);
      } else {
        disk->FailCall(n, true, stop == Stop::kNoSpace ? ErrorCode::kNoSpace : ErrorCode::kIo);
      }
      std::string first;
      const Status ended = Check(*disk, CheckMode::kRepair, &first);
      completed = ended.ok() && !disk->has_failed() && !disk->is_halted();
      disk->Heal();
      if (stop == Stop::kPowerLoss) disk->PowerLoss(n);
      disk->Reboot();
      CAPTURE(n, static_cast<int>(stop), has_manifest, has_links);
      INFO(first << ended.ToString());
      std::string again;
      const Status status = Check(*disk, CheckMode::kRepair, &again);
      INFO("---\n" << again << status.ToString());
      REQUIRE(status.ok());
      // What is lost has been said, by the one or by the other.
      const bool told =
          LostLines(first) == LostLines(expected) || LostLines(again) == LostLines(expected);
      REQUIRE(told);
      REQUIRE(disk->Content(path + ".damaged") == bytes);
      REQUIRE(Reopened(disk.get(), RichStore::kNow) == digest);
    }
  }
}

TEST_CASE("A manifest is made anew as it was, wherever the log was when it was lost",
          "[salvage][damage][check]") {
  for (const uint64_t seed : {5, 6, 7}) {
    CAPTURE(seed);
    Random random(seed);
    FaultyFileSystem disk;
    std::string digest;
    RichStore rich(&disk);
    rich.options.journal.segment_bytes_max = 8000;
    rich.options.journal.retry_delay_micros = 100;
    RichStore::Do(rich.Open());
    rich.MakeTables();
    for (int i = 0; i < 30; ++i) {
      rich.WriteRound(i % 5);
      if (random.OneIn(6)) RichStore::Do(rich.store->journal().SaveNow());
      // A write that fails: what stood behind the last sync is written again, to the next segment.
      if (random.OneIn(5)) {
        disk.FailSyncsOf(".log");
        rich.store->journal().RequestSync();
        for (int k = 0; k < 500 && rich.store->journal().healthy(); ++k) {
          rich.store->journal().Poll();
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        disk.Heal();
        for (int k = 0; k < 5000 && !rich.store->journal().healthy(); ++k) {
          rich.clock.now_micros += 1000;  // which the next attempt waits for
          rich.store->journal().RequestSync();
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      }
    }
    digest = rich.store->Digest();
    RichStore::Do(rich.store->journal().Close());
    rich.store.reset();
    const auto manifest = LoadManifest(disk, "db");
    REQUIRE(manifest.ok());
    REQUIRE(disk.Remove("db/" + std::string(kManifestName)).ok());
    const auto rebuilt = RebuildManifest(disk, "db", std::nullopt);
    REQUIRE(rebuilt.ok());
    REQUIRE(*rebuilt);
    CHECK((*rebuilt)->manifest.snapshot == (*manifest)->snapshot);
    std::string said;
    const Status status = Check(disk, CheckMode::kRepair, &said);
    INFO(said << status.ToString());
    REQUIRE(status.ok());
    CHECK(LostLines(said).empty());
    CHECK(Reopened(&disk, rich.clock.now_micros) == digest);
  }
}

}  // namespace cellar::salvage_test
