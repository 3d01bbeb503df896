// Parts of one leaf that the tests of whole trees reach by chance only.
#include "btree/nodes/leaf.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace cellar::btree_internal {
namespace leaf_test {

// An empty leaf with room for as much as a leaf may have, and this dictionary.
class OneLeaf {
 public:
  explicit OneLeaf(std::string_view words) : memory_((kLeafBytesMax + 128) / 8 + 1) {
    leaf()->granules = static_cast<uint16_t>(kLeafBytesMax / NodeArena::kGranuleBytes);
    leaf()->group_capacity = kLeafGroupsMax;
    leaf()->dictionary_bytes = static_cast<uint16_t>(words.size());
    leaf()->used = static_cast<uint32_t>(LeafHeaderBytes(kLeafGroupsMax) + words.size());
    std::copy(words.begin(), words.end(), leaf()->prefix());
  }
  Leaf* leaf() { return reinterpret_cast<Leaf*>(memory_.data()); }

 private:
  std::vector<uint64_t> memory_;
};

TEST_CASE("a key of a group is the same whether rebuilt from the front or alone", "[leaf]") {
  using namespace std::string_view_literals;
  const uint64_t seed = 20261122;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    // "\x03row" and "\x02aa" as words, or none.
    OneLeaf one(round % 2 == 0 ? ""sv
                               : "\0\0\x02"
                                 "aa\0\x03row"sv);
    Leaf* const leaf = one.leaf();
    std::set<std::string> keys;
    while (keys.size() < kGroupEntriesMax) {
      // Long runs of the same letter, so that keys share up to 120 bytes.
      std::string key = random.OneIn(2) ? "row" : "";
      key += std::string(random.OneIn(4) ? random.Below(120) : random.Below(4), 'a');
      keys.insert(key + static_cast<char>('a' + random.Below(4)) + (random.OneIn(3) ? "z" : ""));
    }
    std::vector<std::string> order(keys.begin(), keys.end());
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    for (const std::string& key : order) {
      const ValueRef value{reinterpret_cast<const uint8_t*>("v"), 1, nullptr};
      const LeafPlace place = leaf->count == 0 ? LeafPlace{.found = false,
                                                           .has_prefix = true,
                                                           .group = 0,
                                                           .index = 0,
                                                           .at = 0,
                                                           .shared_before = 0,
                                                           .shared_after = 0}
                                               : FindInLeaf(leaf, key);
      if (leaf->count == 0 || !InsertShort(leaf, place, key, value))
        ApplyInsert(leaf, place, PlanInsert(leaf, place, key, value), key, value);
    }
    std::string first, last;
    (void)ValidateLeaf(leaf, &first, &last);

    RebuiltKey alone;
    RebuiltKey in_order;
    WalkLeaf(leaf, &in_order, [&](uint32_t i, std::string_view key, const Entry& entry) {
      const uint8_t* const at = alone.TakeInGroup(leaf, 0, i);
      REQUIRE(alone.view() == key);
      Entry found;
      ParseEntry(at, &found);
      REQUIRE(found.end == entry.end);
      return true;
    });

    const auto first_index = static_cast<uint32_t>(1 + random.Below(kGroupEntriesMax - 1));
    const GroupSplit split = PlanSplitGroup(leaf, 0, first_index, &alone);
    const uint32_t used = leaf->used;
    ApplySplitGroup(leaf, split, alone.view());
    REQUIRE(leaf->used == used + split.edit.growth());
    (void)ValidateLeaf(leaf, &first, &last);
    REQUIRE(leaf->counts()[0] == first_index);
    auto expected = keys.begin();
    WalkLeaf(leaf, &in_order, [&](uint32_t, std::string_view key, const Entry&) {
      REQUIRE(key == *expected++);
      return true;
    });
  }
}

}  // namespace leaf_test
}  // namespace cellar::btree_internal
