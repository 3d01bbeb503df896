// Sets that have come back: the director opens them where, and only where, all is as it was.
#include "cluster/returning_sets.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/lost_rows.h"

namespace returning_sets_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kTable{7};

uint64_t IdOf(uint64_t number, bool is_new) { return (is_new ? 200 : 100) + number; }

// A cluster as it was at one moment, of which some sets come back.
struct World {
  std::vector<ReportedState> states;  // by number
  std::vector<MapTables::SetRow> rows;
  std::map<uint64_t, std::string> tables{{kTable, "0/t"}};
  std::map<uint64_t, TabletsByTable> lost;
  ReturningSets returning;

  explicit World(size_t sets, uint64_t catalog = 9) : states(sets) {
    for (uint64_t n = 0; n < sets; ++n) {
      ReportedState& state = states[n];
      state.state = {.cluster_id = 5, .set = n, .catalog = catalog, .opened_as = IdOf(n, false)};
      rows.push_back({.number = n, .id = IdOf(n, false)});
      const std::string begin = n == 0 ? "" : std::string(1, static_cast<char>('a' + n));
      const std::string end = n + 1 == sets ? "" : std::string(1, static_cast<char>('b' + n));
      state.tablets[kTable] = Tablets::Make({{begin, end, 1}});
      REQUIRE(state.tablets[kTable] != nullptr);
    }
  }
  void ToCut(uint64_t cut) {
    for (ReportedState& state : states) state.state.recovered_cut = cut;
  }
  void Come(uint64_t number, bool is_new = true) {
    returning.Put(IdOf(number, is_new), states[number]);
  }
  ReturnVerdict Ask(bool own_is_new, uint64_t kept_from = 0) {
    return returning.Decide({.set_id = IdOf(0, own_is_new),
                             .own = states[0],
                             .rows = rows,
                             .tables = tables,
                             .lost = lost,
                             .kept_from = kept_from});
  }
};

std::vector<ReturnVerdict::Opening> All(size_t sets) {
  std::vector<ReturnVerdict::Opening> all;
  for (uint64_t n = 0; n < sets; ++n) all.push_back({n, IdOf(n, true)});
  return all;
}

TEST_CASE("All sets of a cut are opened together, and none before", "[returns]") {
  World world(3);
  world.ToCut(9);
  REQUIRE(world.Ask(true).why ==
          std::vector<std::string>{"set 1 is not here yet", "set 2 is not here yet"});
  world.Come(1);
  REQUIRE(world.Ask(true).open.empty());
  world.Come(2);
  REQUIRE(world.Ask(true).open == All(3));
  world.returning.Lost(IdOf(1, true));
  REQUIRE(world.Ask(true).open.empty());
}

TEST_CASE("What was lost before the cut is nobody's, and no set is waited for with it",
          "[returns]") {
  World world(3);
  world.ToCut(9);
  world.states[2].tablets[kTable] = Tablets::Make({{"d", "", 2}});
  world.Come(1);
  world.Come(2);
  REQUIRE(world.Ask(true).faults.size() == 1);
  // A part of it somebody has by the cut, though the map did not know yet.
  world.lost[LostWith(4)][kTable] = Tablets::Make({{"b", "f", 7}});
  REQUIRE(world.Ask(true).open == All(3));
  world.lost[LostWith(4)][kTable] = Tablets::Make({{"ca", "f", 7}});
  REQUIRE(world.Ask(true).faults.size() == 1);
}

TEST_CASE("What is not of the cut is named, and opens nothing", "[returns]") {
  World world(3);
  world.ToCut(9);
  world.Come(1);
  SECTION("another cut") {
    world.states[2].state.recovered_cut = 8;
    world.Come(2);
    REQUIRE(world.Ask(true).why ==
            std::vector<std::string>{"set 2 was recovered to cut 8, set 0 to cut 9"});
  }
  SECTION("none") {
    world.states[2].state.recovered_cut = 0;
    world.Come(2);
    REQUIRE(world.Ask(true).why ==
            std::vector<std::string>{"set 2 was recovered by itself, set 0 to cut 9"});
  }
  SECTION("it goes on as it was") {
    world.states[2].state.recovered_cut = 0;
    world.Come(2, false);
    REQUIRE(world.Ask(true).why ==
            std::vector<std::string>{"set 2 goes on, and set 0 was recovered to cut 9"});
  }
  SECTION("more than the cut") {
    world.states[2].state.catalog = 10;
    world.Come(2);
    REQUIRE(world.Ask(true).why ==
            std::vector<std::string>{"set 2 has change 10 of the schema, set 0 9"});
  }
  SECTION("a set twice") {
    world.Come(2);
    world.returning.Put(300, world.states[2]);
    REQUIRE(world.Ask(true).why.size() == 1);
  }
  SECTION("a row that two sets own") {
    world.states[2].tablets[kTable] = Tablets::Make({{"b", "", 2}});
    world.Come(2);
    const ReturnVerdict verdict = world.Ask(true);
    REQUIRE(verdict.faults.size() == 1);
    REQUIRE(verdict.faults[0].kind == MapFault::Kind::kOverlap);
  }
  SECTION("a row that nobody owns") {
    world.states[2].tablets[kTable] = Tablets::Make({{"d", "", 2}});
    world.Come(2);
    const ReturnVerdict verdict = world.Ask(true);
    REQUIRE(verdict.faults.size() == 1);
    REQUIRE(verdict.faults[0].kind == MapFault::Kind::kHole);
  }
  REQUIRE(world.Ask(true).open.empty());
}

TEST_CASE("A tablet between two sets at the cut belongs to one of them", "[returns]") {
  World world(3);
  world.ToCut(9);
  const Tablet tablet{"b", "c", 1};
  MoveOut move{.table_id = kTable, .tablet = tablet, .to = 2, .given = false};
  REQUIRE(world.states[1].state.moves.Begin(4, move));
  REQUIRE(world.states[1].state.moves.Give(4));
  world.Come(1);
  world.Come(2);
  REQUIRE(world.Ask(true).open == All(3));  // the recipient has it not yet
  world.states[2].tablets[kTable] = Tablets::Make({{"b", "c", 2}, {"c", "", 1}});
  world.Come(2);
  REQUIRE(world.Ask(true).open == All(3));  // it has, and the donor has not heard of it
}

TEST_CASE("One set by itself is settled where nothing speaks against it", "[returns]") {
  World world(3);
  world.Come(1, false);
  REQUIRE(world.Ask(false).settle.empty());
  REQUIRE(world.Ask(false).why.empty());
  const std::vector<ReturnVerdict::Opening> its{{2, IdOf(2, true)}};
  SECTION("whatever it owns") {
    world.Come(2);
    REQUIRE(world.Ask(false).settle == its);
    world.states[2].tablets.clear();
    world.states[2].tablets[8] = Tablets::Whole();
    world.Come(2);
    REQUIRE(world.Ask(false).settle == its);
    REQUIRE(world.Ask(false).open.empty());
  }
  SECTION("two of them") {
    world.returning.Lost(IdOf(1, false));
    world.Come(2);
    world.Come(1);
    REQUIRE(world.Ask(false).settle ==
            std::vector<ReturnVerdict::Opening>{{1, IdOf(1, true)}, {2, IdOf(2, true)}});
  }
  SECTION("changes of the schema that it can be told") {
    world.states[2].state.catalog = 7;
    world.Come(2);
    REQUIRE(world.Ask(false, 8).settle == its);
    REQUIRE(world.Ask(false, 9).settle.empty());
    REQUIRE(world.Ask(false).why.size() == 1);
  }
  SECTION("the other one is still there") {
    world.Come(2, false);
    world.Come(2);
    REQUIRE(world.Ask(false).settle.empty());
    REQUIRE(world.Ask(false).why.size() == 1);
  }
  SECTION("a later schema, a cut, a set that is not missing") {
    const ReportedState good = world.states[2];
    const auto refused = [&world](const ReportedState& state) {
      world.states[2] = state;
      world.Come(2);
      return world.Ask(false).settle.empty() && world.Ask(false).why.size() == 1;
    };
    ReportedState bad = good;
    bad.state.catalog = 10;
    REQUIRE(refused(bad));
    bad = good;
    bad.state.recovered_cut = 9;
    REQUIRE(refused(bad));
    bad = good;
    bad.state.set = 5;
    REQUIRE(refused(bad));
    bad.state.set = 0;
    REQUIRE(refused(bad));
  }
}

TEST_CASE("Set 0 goes on by itself where the others own the rest, and know no later schema",
          "[returns]") {
  World world(3);
  world.Come(1, false);
  REQUIRE(world.Ask(true).why == std::vector<std::string>{"set 2 is not here yet"});
  world.Come(2, false);
  REQUIRE(world.Ask(true).open == std::vector<ReturnVerdict::Opening>{{0, IdOf(0, true)},
                                                                      {1, IdOf(1, false)},
                                                                      {2, IdOf(2, false)}});
  world.states[2].state.catalog = 10;
  world.Come(2, false);
  REQUIRE(world.Ask(true).open.empty());
}

TEST_CASE("Sets of random moments: opened only if they own each row once", "[returns]") {
  const uint64_t seed = 3;
  CAPTURE(seed);
  Random random(seed);
  size_t opened = 0;
  for (int round = 0; round < 2000; ++round) {
    World world(3);
    world.ToCut(9);
    std::vector<int> owners(10, 0);
    for (uint64_t n = 0; n < 3; ++n) {
      std::vector<Tablet> tablets;
      for (int at = 0; at < 10; ++at) {
        const bool is_its = static_cast<uint64_t>(at / 4) == n;
        if (random.Below(40) == 0 ? is_its : !is_its) continue;
        const std::string begin = at == 0 ? "" : std::string(1, static_cast<char>('a' + at));
        const std::string end = at == 9 ? "" : std::string(1, static_cast<char>('b' + at));
        tablets.push_back({begin, end, 1 + random.Below(2)});
        ++owners[static_cast<size_t>(at)];
      }
      world.states[n].tablets[kTable] = Tablets::Make(std::move(tablets));
      if (n > 0) world.Come(n);
    }
    const bool is_whole =
        std::all_of(owners.begin(), owners.end(), [](int count) { return count == 1; });
    REQUIRE(world.Ask(true).open.empty() == !is_whole);
    opened += is_whole ? 1 : 0;
  }
  REQUIRE(opened > 100);
}

TEST_CASE("The standing of a set is part of its state, in the least format", "[returns]") {
  const auto bytes = [](const ClusterState& state) {
    std::string text;
    EncodeClusterState(state, {{kTable, Tablets::Whole()}}, &text);
    return text;
  };
  ClusterState state{.cluster_id = 5, .set = 1, .catalog = 9};
  REQUIRE(bytes(state)[0] == 1);
  REQUIRE(state.IsOpenAs(77));
  state.opened_as = 77;
  REQUIRE(bytes(state)[0] == 3);
  REQUIRE(state.IsOpenAs(77));
  REQUIRE_FALSE(state.IsOpenAs(78));
  state.recovered_cut = 9;
  REQUIRE_FALSE(state.IsOpenAs(77));
  const std::string whole = bytes(state);
  ClusterState read;
  TabletsByTable tablets;
  REQUIRE(DecodeClusterState(whole, &read, &tablets));
  REQUIRE(read.opened_as == 77);
  REQUIRE(read.recovered_cut == 9);
  REQUIRE(tablets.size() == 1);
  for (size_t size = 0; size < whole.size(); ++size)
    REQUIRE_FALSE(DecodeClusterState(whole.substr(0, size), &read, &tablets));
  state.recovered_cut = 10;  // behind its schema
  REQUIRE_FALSE(DecodeClusterState(bytes(state), &read, &tablets));
}

}  // namespace returning_sets_test
