// The map and what the director decides by: plans follow what the sets say, faults are named.
#include "cluster/map_check.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/map_cache.h"

namespace map_check_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using Kind = MapFault::Kind;

Tablets::Pointer Made(std::vector<Tablet> tablets) {
  Tablets::Pointer made = Tablets::Make(std::move(tablets));
  REQUIRE(made != nullptr);
  return made;
}

Claims One(const std::string& name, const Tablets::Pointer& tablets) {
  return {{7, {.name = name, .sets = {{0, tablets}}}}};
}

// begin..end:set/epoch#number@version
std::string Shown(const MapCache& map, uint64_t id = 7) {
  const MapTable* const table = map.Find(id);
  if (table == nullptr) return "none";
  std::string text = table->name;
  for (const MapEntry& entry : table->tablets) {
    text += " " + entry.begin + ".." + entry.end + ":" + std::to_string(entry.set) + "/" +
            std::to_string(entry.epoch) + "#" + std::to_string(entry.number) + "@" +
            std::to_string(entry.version);
  }
  return text;
}

void Follow(MapCache* map, const Claims& claims) {
  MapChange change = PlanMap(*map, claims, {7});
  if (!change.empty()) map->Apply(std::move(change));
  REQUIRE(PlanMap(*map, claims, {7}).empty());
  REQUIRE(FindFaults(*map, claims).empty());
}

TEST_CASE("A map follows its table through splits, merges, a new name and its end", "[map]") {
  MapCache map;
  Follow(&map, One("0/t", Tablets::Whole()));
  REQUIRE(Shown(map) == "0/t ..:0/1#1@1");
  Follow(&map, One("0/t", Tablets::Whole()->Split("m")));
  REQUIRE(Shown(map) == "0/t ..m:0/1#1@2 m..:0/1#2@2");
  const Tablets::Pointer three = Tablets::Whole()->Split("m")->Split("p");
  Follow(&map, One("0/t", three));
  REQUIRE(Shown(map) == "0/t ..m:0/1#1@2 m..p:0/1#2@3 p..:0/1#3@3");
  REQUIRE(map.floor() == 0);
  Follow(&map, One("0/t", three->Merge("a")));
  REQUIRE(Shown(map) == "0/t ..p:0/1#1@4 p..:0/1#3@3");
  REQUIRE(map.floor() == 0);  // what is gone is covered by what has come
  Follow(&map, One("0/u", three->Merge("a")));
  REQUIRE(Shown(map) == "0/u ..p:0/1#1@5 p..:0/1#3@5");
  REQUIRE(map.size() == 2);
  map.Apply(PlanMap(map, {}, {7}));
  REQUIRE(Shown(map) == "none");
  REQUIRE(map.version() == 6);
  REQUIRE(map.floor() == 6);
  REQUIRE(map.number_next() == 4);
}

TEST_CASE("Rows that nobody owns any more are told by asking for all", "[map]") {
  MapCache map;
  Follow(&map, One("0/t", Tablets::Whole()->Split("m")));
  const Claims hole = One("0/t", Made({{"", "c", 3}, {"x", "", 2}}));
  MapChange change = PlanMap(map, hole, {7});
  REQUIRE(change.floor == change.version);
  map.Apply(std::move(change));
  REQUIRE(Shown(map) == "0/t ..c:0/3#1@2 x..:0/2#3@2");
}

TEST_CASE("A row is found by the map as its tablets say", "[map]") {
  MapCache map;
  REQUIRE(map.FindTablet(7, "a") == nullptr);
  map.Apply(PlanMap(map, One("0/t", Made({{"", "c", 3}, {"c", "m", 4}, {"x", "", 2}})), {7}));
  REQUIRE(map.FindTablet(7, "")->epoch == 3);
  REQUIRE(map.FindTablet(7, "c")->epoch == 4);
  REQUIRE(map.FindTablet(7, "m") == nullptr);
  REQUIRE(map.FindTablet(7, "z")->epoch == 2);
  REQUIRE(map.FindTablet(8, "a") == nullptr);
}

TEST_CASE("Of two owners the greater epoch is in the map, and both are named", "[map]") {
  const Claims claims{
      {7,
       {.name = "0/t",
        .sets = {
            {0, Made({{"", "p", 7}})}, {3, Made({{"m", "", 6}})}, {4, Made({{"c", "d", 9}})}}}}};
  MapCache map;
  map.Apply(PlanMap(map, claims, {7}));
  // What the beaten ones had beside is not theirs either until that is decided.
  REQUIRE(Shown(map) == "0/t c..d:4/9#1@1 m..:3/6#2@1");
  const std::vector<MapFault> faults = FindFaults(map, claims);
  REQUIRE(faults.size() == 2);
  REQUIRE(faults[0] == MapFault{Kind::kOverlap, 7, "c", "d", {0, 7, "p"}, {4, 9, "d"}});
  REQUIRE(faults[1] == MapFault{Kind::kOverlap, 7, "m", "p", {0, 7, "p"}, {3, 6, ""}});
}

TEST_CASE("Holes and differences are named by their place", "[map]") {
  MapCache map;
  map.Begin(5, 0, 10);
  map.Add(7, "0/t", {.begin = "p", .end = "", .set = 0, .epoch = 1, .number = 2});
  map.Add(7, "0/t", {.begin = "", .end = "m", .set = 1, .epoch = 1, .number = 1});
  map.Add(7, "0/t", {.begin = "m", .end = "p", .set = 0, .epoch = 1, .number = 3});
  map.Add(9, "0/gone", {.begin = "", .end = "", .set = 0, .epoch = 1, .number = 4});
  map.Sort();
  const Claims claims = One("0/t", Made({{"", "m", 1}, {"n", "p", 2}, {"p", "q", 1}}));
  const std::vector<MapFault> faults = FindFaults(map, claims);
  const std::vector<MapFault> expected{
      {Kind::kHole, 7, "m", "n", {}, {}},
      {Kind::kHole, 7, "q", "", {}, {}},
      {Kind::kDiffers, 7, "", "m", {0, 1, "m"}, {1, 1, "m"}},
      {Kind::kLeft, 7, "m", "p", {}, {0, 1, "p"}},
      {Kind::kMissing, 7, "n", "p", {0, 2, "p"}, {}},
      {Kind::kDiffers, 7, "p", "q", {0, 1, "q"}, {0, 1, ""}},
      {Kind::kLeft, 9, "", "", {}, {0, 1, ""}},
  };
  REQUIRE(faults == expected);
  REQUIRE(FindFaults(map, One("0/x", Tablets::None()))[0].kind == Kind::kHole);
  REQUIRE(FindFaults(map, One("0/x", Tablets::None()))[1].kind == Kind::kName);
  // Made anew it says what the sets say, and everybody asks for all of it that is new.
  map.Apply(PlanAnew(map, claims));
  REQUIRE(Shown(map) == "0/t ..m:0/1#1@6 n..p:0/2#10@6 p..q:0/1#2@6");
  REQUIRE(map.floor() == 6);
}

TEST_CASE("Random splits and merges: a map that follows each is one that is made at the end",
          "[map]") {
  const uint64_t seed = 20'001;
  INFO("seed " << seed);
  Random random(seed);
  Tablets::Pointer tablets = Tablets::Whole();
  MapCache map;
  std::set<uint64_t> numbers;
  for (int round = 0; round < 400; ++round) {
    const std::string key = std::to_string(100 + random.Below(200));
    const Tablets::Pointer next = random.Below(5) < 3 ? tablets->Split(key) : tablets->Merge(key);
    if (next == nullptr) continue;
    tablets = next;
    const MapCache before = map;
    const Claims claims = One("0/t", tablets);
    MapChange change = PlanMap(map, claims, {7});
    // What has the new version, laid over what stood there before, is the map.
    std::vector<MapEntry> news;
    for (const MapEntry& entry : change.tables.at(7).tablets)
      if (entry.version == change.version) news.push_back(entry);
    REQUIRE(news.size() <= 2);
    map.Apply(std::move(change));
    REQUIRE(map.floor() == 0);
    REQUIRE(FindFaults(map, claims).empty());
    REQUIRE(map.size() == tablets->list().size());
    for (const MapEntry& entry : map.Find(7)->tablets) numbers.insert(entry.number);
    REQUIRE(*numbers.rbegin() < map.number_next());
  }
  MapCache made;
  made.Apply(PlanMap(made, One("0/t", tablets), {7}));
  REQUIRE(made.size() == map.size());
  for (size_t i = 0; i < map.size(); ++i) {
    REQUIRE(made.Find(7)->tablets[i].begin == map.Find(7)->tablets[i].begin);
    REQUIRE(made.Find(7)->tablets[i].end == map.Find(7)->tablets[i].end);
  }
}

}  // namespace map_check_test
