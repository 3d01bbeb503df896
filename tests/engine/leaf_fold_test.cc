// Folding leaf by leaf against folding what a scan gives out.
#include "engine/aggregate/leaf_fold.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/engine/aggregate_rig.h"

namespace leaf_fold_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using aggregate_rig::Function;
using aggregate_rig::kNow;
using aggregate_rig::Rig;
using aggregate_rig::Term;
using Kind = ColumnSelector::Kind;

AggregateRequest RandomRequest(Random& random) {
  AggregateRequest request;
  const GroupTerm::Kind terms[] = {GroupTerm::Kind::kKey, GroupTerm::Kind::kColumn,
                                   GroupTerm::Kind::kTime, GroupTerm::Kind::kFamily};
  for (uint64_t i = random.Below(3); i > 0; --i) {
    request.terms.push_back(Term(terms[random.Below(4)], 1));
    request.terms.back().duration_micros = 3'000'000;
  }
  const std::string_view targets[] = {"*", "f", "g", "f:q1", "g:q2#1"};
  const auto target = [&] { return targets[random.Below(5)]; };
  request.reduces = {Function(Reduce::Function::kCount, target())};
  if (random.OneIn(2)) request.reduces.push_back(Function(Reduce::Function::kSum, target()));
  if (random.OneIn(2)) request.reduces.push_back(Function(Reduce::Function::kRows, target()));
  return request;
}

CellOptions RandomCells(Random& random) {
  CellOptions cells;
  const std::vector<ColumnSelector> columns{
      {.kind = Kind::kFamily, .family = "f", .first = {}, .second = {}},
      {.kind = Kind::kFamily, .family = "g", .first = {}, .second = {}},
      {.kind = Kind::kColumn, .family = "f", .first = "q2", .second = {}},
      {.kind = Kind::kPrefix, .family = "g", .first = "q1#", .second = {}},
      {.kind = Kind::kRange, .family = "f", .first = "[q1", .second = "(q3"}};
  for (uint64_t i = random.Below(3); i > 0; --i) cells.columns.push_back(columns[random.Below(5)]);
  if (random.OneIn(2)) cells.versions_max = random.OneIn(3) ? kUnlimited : 1 + random.Below(3);
  if (random.OneIn(3)) cells.time.min_micros = kNow - 12'000'000;
  if (random.OneIn(3)) cells.time.max_micros = kNow - 3'000'000;
  return cells;
}

RowOptions RandomRows(Random& random) {
  RowOptions rows;
  const std::vector<RowSelector> selectors{
      {RowSelector::Kind::kPrefix, "d2#", {}},    {RowSelector::Kind::kRange, "[d1#4", "(d3#20"},
      {RowSelector::Kind::kRow, "d5#7", {}},      {RowSelector::Kind::kRange, "-", "[d0#9"},
      {RowSelector::Kind::kRange, "(d5#28", "+"}, {RowSelector::Kind::kRow, "d9#0", {}}};
  for (uint64_t i = random.Below(4); i > 0; --i) rows.rows.push_back(selectors[random.Below(6)]);
  return rows;
}

TEST_CASE("A leaf fold takes what a scan gives out, in slices, detached or not", "[aggregate]") {
  const std::vector<std::string> policies{"", "maxversions=2", "maxage=10s",
                                          "maxversions=1 || maxage=15s"};
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    Rig rig("utf8#u64", {{.name = "f", .policy = policies[random.Below(4)]},
                         {.name = "g", .order = "utf8#u64", .policy = policies[random.Below(4)]}});
    FillAtRandom(&rig, random, 1 + random.Below(2000));
    for (int turn = 0; turn < 60; ++turn) {
      const AggregateRequest request = RandomRequest(random);
      const CellOptions cells = RandomCells(random);
      const RowOptions rows = RandomRows(random);
      const AggregatePlan plan =
          *AggregatePlan::Compile(rig.schema(), request, cells.columns, false);
      ReadView view(rig.table(), kNow);
      auto scan = OpenScan(&view, rows, cells, nullptr, 1);
      REQUIRE(scan.ok());
      const ScanShape shape = (*scan)->shape();
      REQUIRE(LeafFold::CanFold(shape, rig.schema()));
      AggregateGroups groups(plan);
      if (plan.terms.empty()) (void)groups.Find({}, 0);
      AggregateFold fold(plan, view, &groups);
      LeafFold leaves(view, *shape.plan, *shape.ranges, &fold);
      const uint64_t slice = random.OneIn(4) ? kUnlimited : 1 + random.Below(40);
      while (!leaves.Pull(slice)) {
        if (view.detached() || !random.OneIn(3)) continue;
        view.Detach();
        fold.Reattach(view);
        leaves.Reattach(view);
      }
      INFO("seed " << seed << ", turn " << turn);
      REQUIRE(aggregate_rig::Show(plan, groups) == FoldRows(rig, request, rows, cells));
      compared += groups.size();
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("What is chosen in other ways is left to the scan", "[aggregate]") {
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64", .group = 1}});
  rig.Put({"d1#1", "f", "q", 1, ValueType::kI64, "1"});
  const auto can_fold = [&](const RowOptions& rows, const CellOptions& cells) {
    ReadView view(rig.table(), kNow);
    auto scan = OpenScan(&view, rows, cells, nullptr, 1);
    REQUIRE(scan.ok());
    return LeafFold::CanFold((*scan)->shape(), rig.schema());
  };
  CellOptions one_family;
  one_family.columns = {{.kind = Kind::kFamily, .family = "f", .first = {}, .second = {}}};
  CHECK(can_fold({}, one_family));
  CHECK_FALSE(can_fold({}, {}));  // of two groups
  CellOptions limited = one_family;
  limited.columns_max = 1;
  CHECK_FALSE(can_fold({}, limited));
  CellOptions filtered = one_family;
  filtered.filter = "value = 1";
  CHECK_FALSE(can_fold({}, filtered));
  RowOptions sampled;
  sampled.sample = 0.5;
  CHECK_FALSE(can_fold(sampled, one_family));
  RowOptions each;
  each.each = EachOptions{.components = 1, .rows = 1};
  CHECK_FALSE(can_fold(each, one_family));
}

}  // namespace leaf_fold_test
