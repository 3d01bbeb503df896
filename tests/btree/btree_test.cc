// BTree against std::map, under random operations; see tree_model.h.
#include "btree/btree.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/random.h"
#include "tests/btree/tree_model.h"

namespace btree_test {

using cellar::BTree;
using cellar::BTreeCursor;
using cellar::BTreeSnapshot;
using cellar::Random;
using tree_model::TreeModel;

uint64_t Seed(uint64_t seed) {
  if (const char* text = std::getenv("CELLAR_SEED")) return std::strtoull(text, nullptr, 10);
  return seed;
}

void RunModel(uint64_t seed, const TreeModel::Options& options, uint64_t steps,
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
  model.Finish();
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
