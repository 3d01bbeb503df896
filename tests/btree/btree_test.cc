// BTree against std::map, under random operations; see tree_model.h.
#include "btree/btree.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "btree/nodes/arena.h"
#include "tests/btree/tree_model.h"

namespace btree_test {

using cellar::BTree;
using cellar::BTreeBulkLoader;
using cellar::BTreeCursor;
using cellar::BTreeSnapshot;
using cellar::NodeArena;
using cellar::Random;
using tree_model::TreeModel;

uint64_t Seed(uint64_t seed) {
  if (const char* text = std::getenv("CELLAR_SEED")) return std::strtoull(text, nullptr, 10);
  return seed;
}

// Returns what the leaves were at the end.
TreeModel::Leaves RunModel(uint64_t seed, const TreeModel::Options& options, uint64_t steps,
                           uint64_t compared_every) {
  std::printf("tree model: seed %llu, %llu steps\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(steps));
  std::fflush(stdout);
  Random random(seed);
  TreeModel model(options, [&](uint64_t n) { return random.Below(n); });
  for (uint64_t i = 0; i < steps; ++i) {
    model.Step();
    if (i % compared_every == 0) model.Compare();
  }
  const TreeModel::Leaves leaves = model.CountLeaves();
  model.Finish();
  return leaves;
}

TEST_CASE("a small tree equals std::map under random operations", "[btree]") {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    RunModel(Seed(seed), {.key_variety = 20, .delete_often = seed % 2 == 0}, 3000, 50);
  SUCCEED();
}

TEST_CASE("a larger tree equals std::map under random operations", "[btree]") {
  RunModel(Seed(100), {.key_variety = 2000, .large_value_bytes_max = 1 << 14}, 100'000, 10'000);
  RunModel(Seed(101), {.key_variety = 2000, .large_value_bytes_max = 0, .delete_often = true},
           100'000, 10'000);
  SUCCEED();
}

TEST_CASE("a million random operations leave the tree equal to std::map", "[btree]") {
  RunModel(Seed(150), {.key_variety = 3000, .large_value_bytes_max = 2000}, 600'000, 200'000);
  RunModel(Seed(151), {.key_variety = 100'000, .large_value_bytes_max = 600}, 400'000, 200'000);
  SUCCEED();
}

TEST_CASE("leaves with dictionaries equal std::map under random operations", "[btree]") {
  TreeModel::Leaves all_leaves{0, 0};
  for (uint64_t seed = 300; seed < 312; ++seed) {
    const TreeModel::Leaves leaves = RunModel(Seed(seed),
                                              {.key_variety = uint64_t{50} << seed % 4,
                                               .delete_often = seed % 3 == 0,
                                               .only_cells = true},
                                              30'000, 500);
    all_leaves.with_dictionary += leaves.with_dictionary;
    all_leaves.all += leaves.all;
  }
  CHECK(all_leaves.with_dictionary * 2 > all_leaves.all);
}

TEST_CASE("runs put at once leave the tree equal to std::map", "[btree]") {
  for (uint64_t seed = 400; seed < 424; ++seed) {
    RunModel(Seed(seed),
             {.key_variety = uint64_t{20} << seed % 5,
              .long_key_bytes_max = seed % 8 == 0 ? cellar::kTreeKeyBytesMax : 0,
              .large_value_bytes_max = seed % 3 == 0 ? 0U : 1U << 12,
              .delete_often = seed % 2 == 0,
              .only_cells = seed % 4 == 1,
              .only_runs = true},
             6000, 100);
  }
  SUCCEED();
}

TEST_CASE("rows of the same columns do not repeat the columns' names", "[btree]") {
  constexpr const char* kColumns[]{"temperature", "pressure",       "humidity",      "altitude",
                                   "wind_speed",  "wind_direction", "battery_level", "signal_power",
                                   "latitude",    "longitude"};
  constexpr uint64_t kRows{20'000};
  const auto cell = [&](uint64_t i) {
    char text[64];
    (void)std::snprintf(text, sizeof(text), "station#%06u", static_cast<unsigned>(i / 10));
    std::string key(text);
    key += std::string_view("\0\1\1", 3);
    key += kColumns[i % 10];
    key += std::string_view("\0\1\xf9\xf4", 4);
    Random random(i);
    for (int j = 0; j < 5; ++j) key += static_cast<char>(random.Below(256));
    return key;
  };
  const auto fill = [&](const auto& number) {
    auto tree = std::make_unique<BTree>();
    for (uint64_t i = 0; i < kRows * 10; ++i) tree->Put(cell(number(i)), "8 bytes.");
    tree->Validate();
    return tree;
  };
  // 2 of lengths, 1 of code, 5 of timestamp, 8 of value; the rest is the tree's.
  constexpr uint64_t kCellBytes{16};
  const auto in_order = fill([](uint64_t i) { return i; });
  CHECK(in_order->memory_bytes() < kRows * 10 * (kCellBytes + 7));
  // Rows at random places, their cells together; then every cell at a random place.
  const auto rows = fill([](uint64_t i) { return i / 10 * 7919 % kRows * 10 + i % 10; });
  CHECK(rows->memory_bytes() < kRows * 10 * (kCellBytes + 11));
  const auto cells = fill([](uint64_t i) { return i * 7919 % (kRows * 10); });
  CHECK(cells->memory_bytes() < kRows * 10 * (kCellBytes + 12));
  std::string image, key;
  BTree loaded;
  BTreeBulkLoader loader(&loaded);
  for (BTreeCursor cursor = (cells->Validate(), BTreeCursor(*cells));
       cursor.Seek(key), cursor.valid(); key = std::string(cursor.key()) + '\0')
    REQUIRE(loader.Add(cursor.key(), cursor.value()).ok());
  REQUIRE(loader.Finish().ok());
  loaded.Validate();
  CHECK(loaded.entries() == kRows * 10);
  CHECK(loaded.memory_bytes() < kRows * 10 * (kCellBytes + 7));
  // What is written over with other names pays for them, and no more.
  for (uint64_t i = 0; i < kRows * 10; ++i) {
    std::string other = cell(i);
    REQUIRE(loaded.Delete(other).existed);
    other.replace(other.find('\1') + 2, 3, "another");
    loaded.Put(other, "8 bytes.");
  }
  loaded.Validate();
  CHECK(loaded.memory_bytes() < kRows * 10 * (kCellBytes + 24));
}

// Rows of one column give their leaves words like "7\0\1\1miles"; their versions have no use for
// them.
TEST_CASE("words go where few entries are left that have one", "[btree]") {
  constexpr uint64_t kRows{20'000};
  const auto cell = [](uint64_t row, uint64_t version) {
    char text[64];
    (void)std::snprintf(text, sizeof(text), "plane#%012u", static_cast<unsigned>(row));
    std::string key(text);
    key += std::string_view("\0\1\1miles\0\1\x99\x9f", 12);
    Random random(row * 100 + version);
    key += "\x1b\x4d";
    for (int i = 0; i < 3; ++i) key += static_cast<char>(random.Below(256));
    return key;
  };
  BTree tree;
  for (uint64_t row = 0; row < kRows; ++row) tree.Put(cell(row, 0), "12 bytes...!");
  tree.Validate();
  TreeModel::Leaves leaves = TreeModel::CountLeaves(tree);
  CHECK(leaves.with_dictionary * 10 > leaves.all * 9);
  for (uint64_t i = 0; i < kRows * 10; ++i)
    tree.Put(cell(i * 7919 % kRows, 1 + i / kRows), "12 bytes...!");
  tree.Validate();
  leaves = TreeModel::CountLeaves(tree);
  CHECK(leaves.with_dictionary * 10 < leaves.all);
  // 2 of lengths, 3 or 4 of timestamp, 12 of value; the rest is the tree's.
  CHECK(tree.memory_bytes() < tree.entries() * (18 + 7));
}

// Keys as tables have them: leaves with long prefixes, split by copying their groups.
TEST_CASE("the cells of rows that arrive in any order are all there", "[btree]") {
  const uint64_t seed = Seed(160);
  CAPTURE(seed);
  Random random(seed);
  constexpr uint64_t kCells{100'000};
  const auto key = [](uint64_t cell) {
    std::string text = std::to_string(1'000'000'000'000 + cell / 10 * 7919);
    text.insert(0, "plane#");
    text += "column-" + std::to_string(cell % 10);
    return text + std::string(8, static_cast<char>(cell * 37 % 256));
  };
  std::vector<uint64_t> order(kCells);
  for (uint64_t i = 0; i < kCells; ++i) order[i] = i;
  for (uint64_t i = kCells; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  BTree tree;
  for (uint64_t n = 0; n < kCells; ++n) {
    tree.Put(key(order[n]), std::to_string(order[n]));
    if (n % 20'000 == 0) tree.Validate();
  }
  tree.Validate();
  REQUIRE(tree.entries() == kCells);
  uint64_t equal = 0;
  for (uint64_t i = 0; i < kCells; ++i) equal += tree.Get(key(i)) == std::to_string(i) ? 1 : 0;
  REQUIRE(equal == kCells);
  BTreeCursor cursor(tree);
  uint64_t seen = 0;
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next())
    if (cursor.key() == key(seen)) ++seen;
  REQUIRE(seen == kCells);
  for (uint64_t n = 0; n < kCells; ++n) tree.Delete(key(order[n]));
  REQUIRE(tree.entries() == 0);
  tree.Validate();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
TEST_CASE("compaction gives back the memory of a peak", "[btree]") {
  const uint64_t seed = Seed(170);
  CAPTURE(seed);
  Random random(seed);
  constexpr uint64_t kCells{1'200'000};
  const auto key = [](uint64_t cell) { return "row#" + std::to_string(1'000'000'000 + cell); };
  const auto value = [](uint64_t cell, uint64_t round) {
    return std::string(cell % 1000 == 0 ? 700 : 20 + cell % 50, static_cast<char>('a' + round));
  };
  NodeArena& arena = NodeArena::Global();
  BTree tree;
  std::vector<uint8_t> rounds(kCells, 0);
  for (uint64_t i = 0; i < kCells; ++i) tree.Put(key(i), value(i, 0));
  {  // both versions of half of the leaves
    const BTreeSnapshot snapshot = tree.TakeSnapshot();
    for (uint64_t i = 0; i < kCells; ++i) {
      if (i / 512 % 2 == 0) continue;
      tree.Put(key(i), value(i, 1));
      rounds[i] = 1;
    }
  }
  for (uint64_t i = 0; i < kCells; ++i)  // and holes everywhere
    if (i / 64 % 3 == 0) tree.Delete(key(i));
  while (tree.ReleaseSome(1000)) {
  }
  BTreeCursor cursor(tree);
  cursor.Seek(key(kCells / 2 + 77));
  REQUIRE(cursor.valid());
  const std::string stood(cursor.key());
  const uint64_t mapped_before = arena.stats().mapped_bytes;
  std::string position;
  int begun = 0;
  for (; begun < 10 && arena.BeginCompaction(); ++begun) {
    while (tree.Compact(&position, 64)) {  // writes go on between the slices
      const uint64_t i = random.Below(kCells);
      if (i / 64 % 3 == 0) continue;
      rounds[i] = 2;
      tree.Put(key(i), value(i, 2));
    }
    arena.EndCompaction();
    tree.Validate();
  }
  CHECK(begun > 0);
  const NodeArena::Stats stats = arena.stats();
  CHECK(stats.mapped_bytes < mapped_before);
  CHECK(stats.mapped_bytes <= stats.used_bytes * 5 / 4 + (18 << 20));
  CHECK(cursor.key() == stood);
  cursor.Next();
  CHECK(cursor.valid());
  CHECK(cursor.key() > stood);
  uint64_t equal = 0;
  for (uint64_t i = 0; i < kCells; ++i) {
    const auto found = tree.Get(key(i));
    const bool is_deleted = i / 64 % 3 == 0;
    equal += found.has_value() != is_deleted && (is_deleted || *found == value(i, rounds[i]));
  }
  CHECK(equal == kCells);
}
#endif

TEST_CASE("ten million random operations leave the tree equal to std::map", "[.][soak]") {
  for (uint64_t seed = 0; seed < 10; ++seed)
    RunModel(Seed(1000 + seed),
             {.key_variety = uint64_t{20} << seed,
              .long_key_bytes_max = seed % 3 == 0 ? 70'000u : 0u,
              .large_value_bytes_max = uint64_t{1} << (8 + seed),
              .delete_often = seed % 2 == 0},
             1'000'000, 50'000);
  SUCCEED();
}

TEST_CASE("split keys cut a tree into parts of about equal bytes", "[btree]") {
  BTree tree;
  Random random(9);
  // The second half of the keys has values that are 20 times as large, some of them out of line.
  for (uint64_t i = 0; i < 40'000; ++i) {
    const uint64_t cell = random.Below(1 << 20);
    const bool is_heavy = cell >= 1 << 19;
    tree.Put("row" + std::to_string((1 << 20) + cell),
             std::string(is_heavy ? (random.OneIn(10) ? 2000 : 100) : 10, 'v'));
  }
  const auto keys = tree.SplitKeys(8);
  REQUIRE(keys.size() == 7);
  uint64_t bytes = 0, parts_seen = 0;
  std::vector<uint64_t> parts(1);
  BTreeCursor cursor(tree);
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) {
    if (parts_seen < keys.size() && cursor.key() == keys[parts_seen]) {
      parts.push_back(0);
      ++parts_seen;
    }
    parts.back() += cursor.key().size() + cursor.value().size();
    bytes += cursor.key().size() + cursor.value().size();
  }
  REQUIRE(parts.size() == 8);
  for (const uint64_t part : parts) {
    CHECK(part > bytes / 8 * 7 / 10);
    CHECK(part < bytes / 8 * 13 / 10);
  }
  CHECK(BTree().SplitKeys(4).empty());
}

TEST_CASE("a cursor tells which part of a tree stands before it", "[btree]") {
  const uint64_t entries = GENERATE(1, 10, 1'000, 200'000);
  BTree tree;
  Random random(entries);
  const auto key = [](uint64_t n) {
    std::string text = std::to_string(n);
    return std::string(12 - text.size(), '0') + text;
  };
  std::vector<uint64_t> numbers(entries);
  for (uint64_t i = 0; i < entries; ++i) numbers[i] = i;
  for (uint64_t i = entries; i > 1; --i) std::swap(numbers[i - 1], numbers[random.Below(i)]);
  for (const uint64_t n : numbers) tree.Put(key(n), "value");
  BTreeSnapshot snapshot = tree.TakeSnapshot();
  for (const bool live : {true, false}) {
    BTreeCursor at = live ? BTreeCursor(tree) : BTreeCursor(snapshot);
    at.SeekFirst();
    REQUIRE(at.share_before() == 0);
    double last = 0;
    for (uint64_t n = 0; n < entries; n += 1 + entries / 1000) {
      at.Seek(key(n));
      const double share = at.share_before();
      REQUIRE(share >= last);
      const double wanted = static_cast<double>(n) / static_cast<double>(entries);
      REQUIRE(std::abs(share - wanted) < 0.2);  // leaves are not equally full
      last = share;
    }
  }
}

TEST_CASE("Clear and a dropped snapshot give memory back by and by", "[btree]") {
  BTree tree;
  for (int i = 0; i < 50'000; ++i) tree.Put("key" + std::to_string(i), "value");
  const uint64_t live = tree.memory_bytes();
  {
    BTreeSnapshot snapshot = tree.TakeSnapshot();
    CHECK(tree.snapshots_alive() == 1);
    tree.Clear();
    CHECK(tree.entries() == 0);
    while (tree.ReleaseSome(10)) {
    }
    CHECK(tree.memory_bytes() >= live);
    BTreeCursor cursor(snapshot);
    cursor.SeekLast();
    CHECK(cursor.key() == "key9999");
    tree.RollBackTo(snapshot);
    CHECK(tree.entries() == 50'000);
    tree.Clear();
  }
  tree.Put("a", "b");
  CHECK(tree.memory_bytes() > live / 2);
  while (tree.ReleaseSome(10)) {
  }
  CHECK(tree.memory_bytes() < 4096);
  tree.Validate();
}

TEST_CASE("a cursor over a live tree stands where it stood, whatever is written", "[btree]") {
  BTree tree;
  for (int i = 100; i < 1000; ++i) tree.Put(std::to_string(i), "v");
  BTreeCursor cursor(tree);
  cursor.Seek("500");
  tree.Delete("500");
  cursor.Next();
  CHECK(cursor.key() == "501");
  CHECK(cursor.shared_with_last() == 2);
  tree.Delete("501");
  tree.Put("5005", "between");
  cursor.Prev();
  CHECK(cursor.key() == "5005");
  tree.Clear();
  cursor.Next();
  CHECK(!cursor.valid());
}

TEST_CASE("keys of up to 256 KiB and values of up to 1 MiB are like any other", "[btree]") {
  for (uint64_t seed = 200; seed < 204; ++seed)
    RunModel(Seed(seed),
             {.key_variety = 20,
              .long_key_bytes_max = seed % 2 == 0 ? 70'000 : cellar::kTreeKeyBytesMax - 1,
              .large_value_bytes_max = 1 << 20,
              .snapshots_max = 2},
             1500, 500);
  SUCCEED();
}

}  // namespace btree_test
