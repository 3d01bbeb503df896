// Rows that were lost with a set stay in the map as nobody's, until a set has them.
#include "cluster/lost_rows.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/map_cache.h"

namespace lost_rows_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kTable{7};

Tablets::Pointer Made(std::vector<Tablet> tablets) {
  Tablets::Pointer made = Tablets::Make(std::move(tablets));
  REQUIRE(made != nullptr);
  return made;
}

MapCache MapOf(std::vector<MapEntry> entries) {
  MapCache map;
  map.Begin(1, 0, 100);
  for (MapEntry& entry : entries) map.Add(kTable, "0/t", std::move(entry));
  map.Sort();
  return map;
}

MapEntry Entry(const std::string& begin, const std::string& end, uint64_t set, uint64_t epoch) {
  MapEntry entry;
  entry.begin = begin;
  entry.end = end;
  entry.set = set;
  entry.epoch = epoch;
  entry.number = static_cast<uint64_t>(begin.empty() ? 1 : begin[0]);
  entry.version = 1;
  return entry;
}

std::string Shown(const Tablets& tablets) {
  std::string text;
  for (const Tablet& tablet : tablets.list())
    text += tablet.begin + ".." + tablet.end + "/" + std::to_string(tablet.epoch) + " ";
  return text;
}

TEST_CASE("numbers of lost sets are no numbers of sets, and theirs can be told", "[lost]") {
  for (const uint64_t set : {uint64_t{0}, uint64_t{1}, kClusterSetsMax - 1}) {
    CHECK_FALSE(IsLost(set));
    CHECK(SetNumber(set) == set);
    CHECK(IsLost(LostWith(set)));
    CHECK(SetNumber(LostWith(set)) == set);
    CHECK(LostWith(set) >= kClusterSetsMax);
  }
  CHECK_FALSE(IsLost(UINT64_MAX));
  CHECK(SetNumber(UINT64_MAX) == UINT64_MAX);
}

TEST_CASE("what a set has is not lost, whatever the map says", "[lost]") {
  const MapCache map = MapOf(
      {Entry("", "c", 0, 1), Entry("c", "m", LostWith(2), 5), Entry("m", "", LostWith(3), 2)});
  REQUIRE(map.has_lost());
  Claims claims{{kTable, {.name = "0/t", .sets = {{0, Made({{"", "c", 1}})}}}}};
  const auto lost_with = [&claims](uint64_t set) {
    for (const SetClaim& claim : claims.at(kTable).sets)
      if (claim.set == LostWith(set)) return Shown(*claim.tablets);
    return std::string();
  };
  SECTION("all of it") {
    AddLost(LostOf(map), &claims);
    CHECK(lost_with(2) == "c..m/5 ");
    CHECK(lost_with(3) == "m../2 ");
    const auto faults = FindFaults(map, claims);
    REQUIRE(faults.size() == 2);
    CHECK(faults[0].kind == MapFault::Kind::kLost);
    CHECK(faults[0].owner == MapFault::Said{LostWith(2), 5, "m"});
    CHECK(PlanMap(map, claims, {kTable}).empty());
  }
  SECTION("a part in the middle of one, and over an end") {
    claims.at(kTable).sets.push_back({1, Made({{"d", "e", 6}, {"k", "q", 6}})});
    AddLost(LostOf(map), &claims);
    CHECK(lost_with(2) == "c..d/5 e..k/5 ");
    CHECK(lost_with(3) == "q../2 ");
  }
  SECTION("all of one, by an older epoch") {
    claims.at(kTable).sets.push_back({1, Made({{"c", "", 1}})});
    AddLost(LostOf(map), &claims);
    CHECK(lost_with(2).empty());
    CHECK(lost_with(3).empty());
    MapCache after = map;
    after.Apply(PlanMap(map, claims, {kTable}));
    CHECK_FALSE(after.has_lost());
    CHECK(FindFaults(after, claims).empty());
  }
  SECTION("a table that is gone") {
    claims.clear();
    AddLost(LostOf(map), &claims);
    CHECK(claims.empty());
    MapCache after = map;
    after.Apply(PlanMap(map, claims, {kTable}));
    CHECK_FALSE(after.has_lost());
  }
}

TEST_CASE("each row is somebody's or lost, by any claims and any map", "[lost]") {
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    Random random(seed);
    const auto cut = [&random] {
      std::vector<Tablet> tablets;
      std::string begin;
      for (uint64_t at = 'b'; at <= 'z'; at += 1 + random.Below(6)) {
        const std::string end(1, static_cast<char>(at));
        if (random.Below(2) == 0) tablets.push_back({begin, end, 1 + random.Below(5)});
        begin = end;
      }
      if (random.Below(2) == 0) tablets.push_back({begin, "", 1 + random.Below(5)});
      return tablets;
    };
    std::map<uint64_t, TabletsByTable> lost;
    const std::vector<Tablet> of_two = cut();
    const std::vector<Tablet> of_three = cut();
    if (!of_two.empty()) lost[LostWith(2)][kTable] = Made(of_two);
    if (!of_three.empty()) lost[LostWith(3)][kTable] = Made(of_three);
    Claims claims{{kTable, {.name = "0/t", .sets = {{0, Made(cut())}}}}};
    const Tablets::Pointer owned = claims.at(kTable).sets[0].tablets;
    AddLost(lost, &claims);
    for (char at = 'a'; at <= 'z'; ++at) {
      const std::string row(1, at);
      size_t claimed = 0;
      for (const SetClaim& claim : claims.at(kTable).sets)
        if (claim.tablets->Owns(row)) ++claimed;
      bool is_lost = false;
      for (const auto& [set, tables] : lost) is_lost = is_lost || tables.at(kTable)->Owns(row);
      INFO("seed " << seed << ", row " << row);
      REQUIRE(claimed == (owned->Owns(row) || is_lost ? 1 : 0));
    }
  }
}

}  // namespace lost_rows_test
