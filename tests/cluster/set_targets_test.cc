// Which member of another set is called.
#include "cluster/set_targets.h"

#include <catch2/catch.hpp>

namespace set_targets_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

ClusterSet Three(uint64_t leader) {
  ClusterSet set;
  set.number = 2;
  set.leader = leader;
  for (const uint64_t node : {11, 12, 13})
    set.members.push_back({node, "h", 1, "voter", "online", ""});
  set.members.push_back({14, "h", 1, "witness", "online", ""});
  return set;
}

TEST_CASE("Who is said to lead is called first, then the others in turn", "[route]") {
  SetTargets targets;
  ClusterSet set = Three(12);
  REQUIRE(targets.Pick(set, 0)->node == 12);
  REQUIRE(targets.Pick(set, 1'000'000)->node == 12);
  targets.Failed(11, 2'000'000);  // it is not called
  REQUIRE(targets.Pick(set, 2'000'000)->node == 12);
  targets.Failed(12, 2'000'000);
  targets.Failed(12, 2'015'000);  // once is enough
  REQUIRE(targets.Pick(set, 2'019'999) == nullptr);
  REQUIRE(targets.Pick(set, 2'020'000)->node == 13);
  REQUIRE(targets.Pick(set, 2'020'001)->node == 13);
  targets.Failed(13, 2'030'000);
  REQUIRE(targets.Pick(set, 2'050'000)->node == 11);  // no witness
  targets.Failed(11, 2'060'000);
  REQUIRE(targets.Pick(set, 2'080'000)->node == 12);
}

TEST_CASE("Another leader is called at once", "[route]") {
  SetTargets targets;
  ClusterSet set = Three(12);
  REQUIRE(targets.Pick(set, 0)->node == 12);
  targets.Failed(12, 0);
  set.leader = 11;
  REQUIRE(targets.Pick(set, 1)->node == 11);
  // Nobody is known to lead any more: who did is asked on.
  set.leader = 0;
  REQUIRE(targets.Pick(set, 2)->node == 11);
  set.members.erase(set.members.begin());
  REQUIRE(targets.Pick(set, 3)->node == 12);
  set.members.clear();
  REQUIRE(targets.Pick(set, 4) == nullptr);
}

}  // namespace set_targets_test
