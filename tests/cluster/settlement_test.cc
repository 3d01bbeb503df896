// What a set that has come back is to have, case by case; all of them together are in a simulation
// (return_simulation.h).
#include "cluster/settlement.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace settlement_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kTable{7};
constexpr uint64_t kOther{8};

// Set 2 has come back; set 0 and 1 are there.
struct World {
  ReportedState back{.state = {.cluster_id = 5, .set = 2, .catalog = 9}, .tablets = {}};
  std::map<uint64_t, ReportedState> there{
      {0, {.state = {.cluster_id = 5, .set = 0, .catalog = 9}, .tablets = {}}},
      {1, {.state = {.cluster_id = 5, .set = 1, .catalog = 9}, .tablets = {}}}};
  std::set<uint64_t> closed{2};
  std::set<uint64_t> tables{kTable};
  std::map<uint64_t, MoveJob> jobs;
  uint64_t floor{0};
  MapCache map;

  static void Own(ReportedState* of, std::vector<Tablet> tablets, uint64_t table = kTable) {
    of->tablets[table] = Tablets::Make(std::move(tablets));
    REQUIRE(of->tablets[table] != nullptr);
  }
  void Map(std::vector<MapEntry> entries) {
    map.Begin(1, 0, 100);
    for (MapEntry& entry : entries) map.Add(kTable, "0/t", std::move(entry));
    map.Sort();
  }
  void Job(uint64_t number, uint64_t from, uint64_t to, const Tablet& tablet,
           MoveJob::State state) {
    jobs[number] = {.number = number,
                    .table_id = kTable,
                    .table = "0/t",
                    .tablet = tablet,
                    .from = from,
                    .to = to,
                    .state = state,
                    .why = {},
                    .error = {}};
  }
  static void Out(ReportedState* of, uint64_t job, const MoveOut& move, bool given) {
    REQUIRE(of->state.moves.Begin(job, move));
    if (given) REQUIRE(of->state.moves.Give(job));
  }
  template <typename Do>
  auto With(Do what) {
    std::map<uint64_t, const ReportedState*> others;
    for (const auto& [number, report] : there) others[number] = &report;
    return what(ReturnedSet{.number = 2,
                            .report = back,
                            .others = others,
                            .closed = closed,
                            .map = map,
                            .tables = tables,
                            .jobs = jobs,
                            .floor = floor});
  }
  Settlement Ask() {
    Settlement settlement = With([](const ReturnedSet& returned) { return Settle(returned); });
    REQUIRE(settlement.fits);
    REQUIRE(IsWithin(settlement, back));
    return settlement;
  }
  // As the set is once it has taken it.
  void Take(const Settlement& settlement) {
    back.state.moves = settlement.state.moves;
    for (const auto& [id, tablets] : settlement.tablets) {
      if (tablets->list().empty())
        back.tablets.erase(id);
      else
        back.tablets[id] = tablets;
    }
  }
  TabletsByTable Unowned() {
    return With([this](const ReturnedSet& returned) { return UnownedRows(returned, tables); });
  }
};

std::vector<Tablet> OwnOf(const Settlement& settlement) {
  return settlement.tablets.at(kTable)->list();
}

TEST_CASE("where nothing differs nothing changes", "[returns]") {
  World world;
  World::Own(&world.back, {{"m", "", 1}});
  World::Own(&world.there[1], {{"", "m", 1}});
  world.Map({{"", "m", 1, 1, 1, 1}, {"m", "", 2, 1, 2, 1}});
  REQUIRE_FALSE(world.Ask().changes);
  REQUIRE(world.Unowned().empty());
}

TEST_CASE("what others have it sets aside, and what nobody has is lost", "[returns]") {
  World world;
  World::Own(&world.back, {{"m", "", 1}});
  World::Own(&world.there[1], {{"", "m", 1}, {"p", "r", 2}});
  world.Map({{"", "f", 1, 1, 1, 1}, {"f", "m", 2, 2, 3, 1}, {"m", "", 2, 1, 2, 1}});
  World::Own(&world.there[1], {{"", "f", 1}, {"p", "r", 2}});
  const Settlement settlement = world.Ask();
  REQUIRE(settlement.changes);
  REQUIRE(OwnOf(settlement) == std::vector<Tablet>{{"m", "p", 1}, {"r", "", 1}});
  REQUIRE(settlement.aside == std::vector<Settlement::Aside>{{kTable, {"p", "r", 1}}});
  world.Take(settlement);
  REQUIRE_FALSE(world.Ask().changes);
  REQUIRE(world.Unowned().at(kTable)->list() == std::vector<Tablet>{{"f", "m", 2}});
}

TEST_CASE("a live set has what it says, whatever the epochs; of the map the greater one counts",
          "[returns]") {
  World world;
  World::Own(&world.back, {{"", "", 5}});
  World::Own(&world.there[1], {{"", "c", 3}});
  world.Map({{"", "c", 1, 3, 1, 1},
             {"c", "f", LostWith(9), 4, 2, 1},
             {"f", "h", LostWith(9), 6, 3, 1},
             {"h", "k", 1, 6, 4, 1},
             {"k", "", 2, 5, 5, 1}});
  const Settlement settlement = world.Ask();
  REQUIRE(OwnOf(settlement) == std::vector<Tablet>{{"c", "f", 5}, {"k", "", 5}});
}

TEST_CASE("what it has had again since it has as it was, with an epoch above", "[returns]") {
  World world;
  World::Own(&world.back, {{"", "", 3}});
  world.Map({{"", "", 2, 5, 1, 1}});
  const Settlement settlement = world.Ask();
  REQUIRE(OwnOf(settlement) == std::vector<Tablet>{{"", "", 6}});
  REQUIRE(settlement.aside.empty());
  world.Take(settlement);
  REQUIRE_FALSE(world.Ask().changes);
}

TEST_CASE("of snapshots, and of tables that were dropped since, nothing is said", "[returns]") {
  World world;
  World::Own(&world.back, {{"", "", 1}});
  World::Own(&world.back, {{"", "", 1}}, kOther);
  World::Own(&world.there[1], {{"", "", 2}}, kOther);
  world.Map({{"", "", 2, 1, 1, 1}});
  const Settlement settlement = world.Ask();
  REQUIRE_FALSE(settlement.changes);
  REQUIRE_FALSE(settlement.tablets.contains(kOther));
}

TEST_CASE("what it had given away comes back to it where nobody else can have it", "[returns]") {
  World world;
  const Tablet tablet{"m", "", 1};
  World::Own(&world.back, {tablet});
  World::Out(&world.back, 4, {.table_id = kTable, .tablet = tablet, .to = 1}, true);
  World::Own(&world.there[1], {{"", "m", 1}});
  world.Map({{"", "m", 1, 1, 1, 1}, {"m", "", 2, 1, 2, 1}});
  world.Job(4, 2, 1, tablet, MoveJob::State::kCancelled);
  SECTION("the recipient has said that nothing comes of it") {
    const Settlement settlement = world.Ask();
    REQUIRE(OwnOf(settlement) == std::vector<Tablet>{{"m", "", 3}});
    REQUIRE(settlement.state.moves.HasEnded(4));
    world.Take(settlement);
    REQUIRE_FALSE(world.Ask().changes);
  }
  SECTION("the recipient has it") {
    World::Own(&world.there[1], {{"", "m", 1}, {"m", "", 2}});
    const Settlement settlement = world.Ask();
    REQUIRE(OwnOf(settlement).empty());
    REQUIRE(settlement.aside.empty());
    REQUIRE(settlement.state.moves.ended().at(4) == MoveEnd::kMoved);
  }
  SECTION("the map says that it had come, and the recipient is older, too") {
    world.Map({{"", "m", 1, 1, 1, 1}, {"m", "", 1, 2, 2, 1}});
    world.closed.insert(1);
    world.Job(4, 2, 1, tablet, MoveJob::State::kDone);
    const Settlement settlement = world.Ask();
    REQUIRE(OwnOf(settlement).empty());
    REQUIRE(settlement.aside == std::vector<Settlement::Aside>{{kTable, tablet}});
  }
  SECTION("the recipient is no more") {
    world.there.erase(1);
    REQUIRE(OwnOf(world.Ask()) == std::vector<Tablet>{{"m", "", 3}});
  }
}

TEST_CASE("what is given to it is waited for, at the schema of who gives it", "[returns]") {
  World world;
  const Tablet tablet{"", "m", 1};
  World::Own(&world.there[1], {tablet});
  World::Out(&world.there[1], 4, {.table_id = kTable, .tablet = tablet, .to = 2}, true);
  world.Job(4, 1, 2, tablet, MoveJob::State::kOrdered);
  SECTION("it is behind") {
    world.back.state.catalog = 8;
    const Settlement settlement = world.Ask();
    REQUIRE_FALSE(settlement.changes);
    REQUIRE(settlement.catalog_max == 9);
  }
  SECTION("it is there") {
    const Settlement settlement = world.Ask();
    REQUIRE(settlement.changes);
    REQUIRE(settlement.state.moves.FindIn(4) != nullptr);
    REQUIRE(settlement.state.moves.FindIn(4)->binds);
    world.Take(settlement);
    REQUIRE_FALSE(world.Ask().changes);
    REQUIRE(world.Unowned().at(kTable)->list() == std::vector<Tablet>{{"m", "", 1}});
  }
  SECTION("it came, and went on to set 0") {
    World::Own(&world.there[0], {{"", "m", 3}});
    const Settlement settlement = world.Ask();
    REQUIRE(settlement.state.moves.ended().at(4) == MoveEnd::kMoved);
  }
}

TEST_CASE("jobs that have ended do not begin again, and copies of them go", "[returns]") {
  World world;
  world.floor = 5;
  const Tablet tablet{"", "m", 2};
  MoveIn in{.table_id = kTable, .tablet = tablet, .from = 1, .attempt = 3};
  REQUIRE(world.back.state.moves.Stage(4, in));
  REQUIRE(world.back.state.moves.Clear(4, 3));
  REQUIRE(world.back.state.moves.Fill(4, 3, 1, {{1, 9}, 1}));
  world.Job(7, 0, 2, {"p", "", 1}, MoveJob::State::kDone);
  const Settlement settlement = world.Ask();
  REQUIRE(settlement.state.moves.in().empty());
  REQUIRE(settlement.state.moves.floor() == 5);
  REQUIRE(settlement.state.moves.ended().at(7) == MoveEnd::kMoved);
  // Nobody has it: what there is of it may be all that there is.
  REQUIRE(settlement.aside == std::vector<Settlement::Aside>{{kTable, tablet}});
}

TEST_CASE("a set takes no settlement that gives it something", "[returns]") {
  World world;
  World::Own(&world.back, {{"m", "", 1}});
  world.Map({{"m", "", 2, 1, 2, 1}});
  const Settlement good = world.Ask();
  REQUIRE(IsWithin(good, world.back));
  Settlement bad = good;
  bad.tablets[kTable] = Tablets::Make({{"l", "", 1}});
  REQUIRE_FALSE(IsWithin(bad, world.back));
  bad = good;
  bad.tablets[kOther] = Tablets::Whole();
  REQUIRE_FALSE(IsWithin(bad, world.back));
  bad = good;
  bad.state.set = 1;
  REQUIRE_FALSE(IsWithin(bad, world.back));
  bad = good;
  REQUIRE(bad.state.moves.Begin(9, {.table_id = kTable, .tablet = {"m", "", 1}, .to = 1}));
  REQUIRE_FALSE(IsWithin(bad, world.back));
  bad = good;
  REQUIRE(bad.state.moves.Stage(
      9, {.table_id = kTable, .tablet = {"", "m", 1}, .from = 1, .attempt = 1}));
  REQUIRE(IsWithin(bad, world.back));
  REQUIRE(bad.state.moves.Clear(9, 1));
  REQUIRE_FALSE(IsWithin(bad, world.back));
}

TEST_CASE("a settlement is told as it is, and nothing else is one", "[returns]") {
  World world;
  World::Own(&world.back, {{"a", "", 1}});
  World::Own(&world.there[1], {{"m", "p", 2}});
  world.Map({{"a", "", 2, 1, 2, 1}});
  const Settlement settlement = world.Ask();
  std::string bytes;
  EncodeSettlement({.of = HashOf(world.back), .settlement = settlement}, &bytes);
  SettlementOrder order;
  REQUIRE(DecodeSettlement(bytes, &order));
  REQUIRE(order.of == HashOf(world.back));
  REQUIRE(order.settlement.aside == settlement.aside);
  REQUIRE(OwnOf(order.settlement) == OwnOf(settlement));
  for (size_t size = 0; size < bytes.size(); ++size)
    REQUIRE_FALSE(DecodeSettlement(bytes.substr(0, size), &order));
  REQUIRE_FALSE(DecodeSettlement(bytes + "x", &order));
}

}  // namespace settlement_test
