// Sets of ranges against a plain table of which of a few keys are in.
#include "engine/keys/key_range_set.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"

namespace key_range_set_test {

using namespace cellar;

constexpr size_t kKeys{20};

std::string KeyAt(size_t i) { return std::string(1, static_cast<char>('a' + i)); }

KeyBound BoundAt(size_t i) {
  if (i == 0) return {};
  return i > kKeys ? KeyBound{{}, true} : KeyBound{KeyAt(i - 1), false};
}

void CheckShape(const KeyRangeSet& set) {
  for (size_t i = 0; i < set.ranges().size(); ++i) {
    REQUIRE_FALSE(set.ranges()[i].empty());
    if (i > 0) REQUIRE(set.ranges()[i - 1].end < set.ranges()[i].begin);
  }
}

TEST_CASE("Random unions and intersections contain what they should", "[key_range_set]") {
  const uint64_t seed = 5;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    KeyRangeSet sets[2];
    std::vector<bool> in[2] = {std::vector<bool>(kKeys), std::vector<bool>(kKeys)};
    for (int which = 0; which < 2; ++which) {
      for (uint64_t n = random.Below(5); n > 0; --n) {
        const size_t begin = random.Below(kKeys + 2);
        const size_t end = random.Below(kKeys + 2);
        sets[which].Add({BoundAt(begin), BoundAt(end)});
        for (size_t i = 0; i < kKeys; ++i) {
          if (i + 1 >= begin && i + 1 < end) in[which][i] = true;
        }
      }
      CheckShape(sets[which]);
    }
    KeyRangeSet both = sets[0];
    both.IntersectWith(sets[1]);
    CheckShape(both);
    KeyRangeSet either = sets[0];
    either.AddAll(sets[1]);
    CheckShape(either);
    KeyRangeSet coarse = sets[0];
    coarse.Coarsen(1);
    for (size_t i = 0; i < kKeys; ++i) {
      if (sets[0].Contains(KeyAt(i)) != in[0][i]) FAIL("contains");
      if (both.Contains(KeyAt(i)) != (in[0][i] && in[1][i])) FAIL("intersection");
      if (either.Contains(KeyAt(i)) != (in[0][i] || in[1][i])) FAIL("union");
      if (in[0][i] && !coarse.Contains(KeyAt(i))) FAIL("coarse");
    }
  }
}

TEST_CASE("Everything and nothing", "[key_range_set]") {
  REQUIRE(KeyRangeSet().empty());
  REQUIRE(KeyRangeSet::All().all());
  REQUIRE(KeyRangeSet::All().Contains(""));
  KeyRangeSet set;
  set.Add({{}, {"m", false}});
  REQUIRE_FALSE(set.all());
  set.Add({{"m", false}, {{}, true}});
  REQUIRE(set.all());
  REQUIRE(set.FindRange("zzz") == 0);
}

}  // namespace key_range_set_test
