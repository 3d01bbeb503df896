// Folding leaf by leaf against folding what a scan gives out.
#include "engine/aggregate/leaf_fold.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/rows/conditions_ahead.h"
#include "tests/engine/aggregate_rig.h"

namespace leaf_fold_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using aggregate_rig::Cell;
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

Predicate RandomCondition(Random& random) {
  using P = Predicate::Kind;
  constexpr P kKinds[]{P::kColumnExists, P::kColumnMissing, P::kCompare,   P::kCompare,
                       P::kMatch,        P::kRowExists,     P::kRowMissing};
  static const std::vector<std::pair<std::string_view, std::string_view>> kColumns{
      {"f", "q1"}, {"f", "q3"}, {"f", "q2"}, {"f", "none"}, {"g", "q1#1"}, {"g", "q2#0"}};
  const auto& [family, qualifier] = kColumns[random.Below(kColumns.size())];
  const P kind = kKinds[random.Below(std::size(kKinds))];
  return {.kind = kind,
          .family = family,
          .qualifier = qualifier,
          .op = static_cast<CompareOp>(random.Below(6)),
          .literal = kind == P::kMatch ? "*1*"
                     : random.OneIn(2) ? "5"
                                       : "1000"};
}

RowOptions RandomRows(Random& random) {
  RowOptions rows;
  const std::vector<RowSelector> selectors{
      {RowSelector::Kind::kPrefix, "d2#", {}},    {RowSelector::Kind::kRange, "[d1#4", "(d3#20"},
      {RowSelector::Kind::kRow, "d5#7", {}},      {RowSelector::Kind::kRange, "-", "[d0#9"},
      {RowSelector::Kind::kRange, "(d5#28", "+"}, {RowSelector::Kind::kRow, "d9#0", {}}};
  for (uint64_t i = random.Below(4); i > 0; --i) rows.rows.push_back(selectors[random.Below(6)]);
  if (random.OneIn(2)) {
    for (uint64_t i = random.Below(3); i > 0; --i) rows.where.push_back(RandomCondition(random));
  }
  return rows;
}

// In slices, and detached between two of them, or neither.
std::map<std::string, std::string> FoldLeaves(Rig& rig, const AggregateRequest& request,
                                              const RowOptions& rows, const CellOptions& cells,
                                              Random& random) {
  const AggregatePlan plan = *AggregatePlan::Compile(rig.schema(), request, cells.columns, false);
  ReadView view(rig.table(), kNow);
  auto scan = OpenScan(&view, rows, cells, nullptr, 1);
  REQUIRE(scan.ok());
  const ScanShape shape = (*scan)->shape();
  REQUIRE(LeafFold::CanFold(shape, rig.schema()));
  AggregateGroups groups(plan);
  if (plan.terms.empty()) (void)groups.Find({}, 0);
  AggregateFold fold(plan, view, &groups);
  LeafFold leaves(view, *shape.plan, *shape.ranges, *shape.where, &fold);
  const uint64_t slice = random.OneIn(4) ? kUnlimited : 1 + random.Below(40);
  while (!leaves.Pull(slice)) {
    if (view.detached() || !random.OneIn(3)) continue;
    view.Detach();
    fold.Reattach(view);
    leaves.Reattach(view);
  }
  return aggregate_rig::Show(plan, groups);
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
      const std::map<std::string, std::string> answers =
          FoldLeaves(rig, request, rows, cells, random);
      INFO("seed " << seed << ", turn " << turn);
      REQUIRE(answers == FoldRows(rig, request, rows, cells));
      compared += answers.size();
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("Conditions say of rows in any order what they say of one", "[aggregate]") {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    Rig rig("utf8#u64", {{.name = "f", .policy = random.OneIn(2) ? "maxage=10s" : ""},
                         {.name = "g", .order = "utf8#u64", .group = random.OneIn(2) ? 1U : 0U}});
    FillAtRandom(&rig, random, 1 + random.Below(2000));
    for (int turn = 0; turn < 40; ++turn) {
      std::vector<Condition> conditions;
      for (uint64_t i = 1 + random.Below(2); i > 0; --i) {
        auto condition = Condition::Compile(rig.schema(), RandomCondition(random));
        if (condition.ok()) conditions.push_back(*std::move(condition));
      }
      ReadView view(rig.table(), kNow);
      ConditionsAhead ahead(view, conditions);
      uint64_t row = 0;
      for (int i = 0; i < 120; ++i) {
        row = random.OneIn(6) ? random.Below(300) : row + random.Below(4);
        if (random.OneIn(60)) {
          view.Detach();
          ahead.Reattach(view);
        }
        std::string key;
        const std::string text = "d" + FormatUint64(row / 30) + "#" + FormatUint64(row % 30);
        REQUIRE(EncodeRowKey(rig.schema(), text, &key).ok());
        INFO("seed " << seed << ", turn " << turn << ", row " << text);
        REQUIRE(ahead.Hold(key) == AllHold(conditions, view, key));
      }
    }
  }
}

// Rows of many columns in families whose names are texts, numbers, or both; some with old versions,
// some that expire, some packed.
void FillLongRows(Rig* rig, Random& random) {
  std::set<std::string> stored;  // no cell twice
  for (uint64_t left = 200 + random.Below(1500); left > 0; --left) {
    Cell cell;
    cell.row = "d" + FormatUint64(random.Below(3)) + "#" + FormatUint64(random.Below(4));
    cell.family = std::string(1, static_cast<char>('f' + random.Below(3)));
    cell.qualifier = FormatUint64(random.Below(60));
    if (cell.family == "f" && random.OneIn(3)) cell.qualifier.insert(0, "q");
    if (cell.family == "h") cell.qualifier += "#" + FormatUint64(random.Below(3));
    cell.timestamp = random.OneIn(3) ? kNow - static_cast<int64_t>(random.Below(20)) * 1'000'000
                                     : kNow - 1'000'000;
    if (random.OneIn(20)) cell.timestamp = static_cast<int64_t>(random.Below(5000));
    cell.type = random.OneIn(5) ? ValueType::kF64 : ValueType::kI64;
    cell.text = FormatInt64(static_cast<int64_t>(random.Below(200'000)) - 100'000);
    if (random.OneIn(8)) {
      cell.type = ValueType::kString;
      if (random.OneIn(2)) cell.text += "." + std::string(300, '0');
      if (random.OneIn(3)) cell.text += " and more";
    }
    if (random.OneIn(6)) cell.expiry = kNow + static_cast<int64_t>(random.Below(3)) - 1;
    if (stored.insert(cell.row + cell.family + cell.qualifier + FormatInt64(cell.timestamp)).second)
      rig->Put(cell);
  }
}

AggregateRequest RequestOfNumbers(Random& random) {
  using F = Reduce::Function;
  constexpr F kFunctions[]{F::kRows, F::kCount,  F::kSum,      F::kAvg,      F::kMin,  F::kMax,
                           F::kLast, F::kStddev, F::kDistinct, F::kQuantile, F::kDelta};
  static const std::vector<std::string_view> kTargets{"*", "f", "g", "h", "f:7", "g:30", "h:4#1"};
  AggregateRequest request;
  if (random.OneIn(2)) request.terms = {Term(GroupTerm::Kind::kKey, 1 + random.Below(2))};
  if (random.OneIn(8)) request.terms.push_back(Term(GroupTerm::Kind::kFamily));
  const size_t functions = random.OneIn(8) ? std::size(kFunctions) : std::size(kFunctions) - 1;
  for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
    F function = kFunctions[random.Below(functions)];
    if (function == F::kLast && !random.OneIn(4)) function = F::kSum;
    request.reduces.push_back(Function(function, kTargets[random.Below(kTargets.size())]));
    if (function == F::kQuantile) request.reduces.back().numbers = {"0.5"};
  }
  return request;
}

CellOptions CellsOfLongRows(Random& random) {
  CellOptions cells;
  const std::vector<ColumnSelector> columns{
      {.kind = Kind::kFamily, .family = "f", .first = {}, .second = {}},
      {.kind = Kind::kFamily, .family = "g", .first = {}, .second = {}},
      {.kind = Kind::kFamily, .family = "h", .first = {}, .second = {}},
      {.kind = Kind::kColumn, .family = "f", .first = "7", .second = {}},
      {.kind = Kind::kColumn, .family = "g", .first = "30", .second = {}},
      {.kind = Kind::kColumn, .family = "h", .first = "4#1", .second = {}},
      {.kind = Kind::kRange, .family = "g", .first = "[10", .second = "(20"}};
  for (uint64_t i = random.Below(4); i > 0; --i)
    cells.columns.push_back(columns[random.Below(columns.size())]);
  if (random.OneIn(3)) cells.versions_max = random.OneIn(2) ? kUnlimited : 1 + random.Below(3);
  if (random.OneIn(6)) cells.time.min_micros = kNow - 12'000'000;
  return cells;
}

TEST_CASE("Cells that come by runs are what a scan gives out", "[aggregate]") {
  const std::vector<std::string> policies{"", "maxversions=1", "maxversions=2", "maxage=10s"};
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    Rig rig("utf8#u64",
            {{.name = "f", .policy = policies[random.Below(4)], .packs = random.OneIn(2)},
             {.name = "g", .order = "u8", .policy = policies[random.Below(4)]},
             {.name = "h",
              .order = "utf8#u64",
              .policy = policies[random.Below(4)],
              .numbers =
                  random.OneIn(2) ? std::vector<std::string>{"4#1"} : std::vector<std::string>{}}});
    FillLongRows(&rig, random);
    for (int turn = 0; turn < 80; ++turn) {
      const AggregateRequest request = RequestOfNumbers(random);
      const CellOptions cells = CellsOfLongRows(random);
      RowOptions rows;
      if (random.OneIn(3)) {
        rows.where.push_back({.kind = Predicate::Kind::kColumnExists,
                              .family = "f",
                              .qualifier = "7",
                              .literal = {}});
      }
      // The same function twice is refused.
      if (!AggregatePlan::Compile(rig.schema(), request, cells.columns, false).ok()) continue;
      ++compared;
      INFO("seed " << seed << ", turn " << turn);
      REQUIRE(FoldLeaves(rig, request, rows, cells, random) == FoldRows(rig, request, rows, cells));
    }
  }
  CHECK(compared > 600);
}

// Rows of up to eight columns in two families, numbers and texts, some of several versions, some
// that expire, some packed.
void FillColumns(Rig* rig, Random& random) {
  std::set<std::string> stored;  // no cell twice
  const uint64_t rows = 1 + random.Below(random.OneIn(3) ? 8 : 150);
  for (uint64_t left = random.Below(1500); left > 0; --left) {
    Cell cell;
    const uint64_t row = random.Below(rows);
    cell.row = "d" + FormatUint64(row / 20) + "#" + FormatUint64(row % 20);
    cell.family = random.OneIn(2) ? "f" : "g";
    cell.qualifier = "q" + FormatUint64(random.Below(4));
    // One row is wide.
    if (row == 0 && !random.OneIn(4)) cell.qualifier = "p" + FormatUint64(random.Below(400));
    cell.timestamp = kNow - static_cast<int64_t>(random.Below(20)) * 1'000'000;
    cell.type = random.OneIn(5) ? ValueType::kF64 : ValueType::kI64;
    cell.text = FormatInt64(static_cast<int64_t>(random.Below(200)) - 100);
    if (random.OneIn(6)) {
      cell.type = ValueType::kString;
      if (random.OneIn(3)) cell.text += "." + std::string(300, '0');
      if (random.OneIn(3)) cell.text += " and more";
    }
    if (random.OneIn(10)) cell.expiry = kNow + static_cast<int64_t>(random.Below(3)) - 1;
    if (stored.insert(cell.row + cell.family + cell.qualifier + FormatInt64(cell.timestamp)).second)
      rig->Put(cell);
  }
}

AggregateRequest RequestOfColumns(Random& random) {
  using F = Reduce::Function;
  constexpr F kFunctions[]{F::kRows, F::kCount, F::kSum, F::kAvg, F::kMin, F::kDistinct, F::kLast};
  static const std::vector<std::string_view> kTargets{"*",    "f",    "f:q0", "f:q1",
                                                      "f:q2", "g:q1", "g:q3"};
  AggregateRequest request;
  if (random.OneIn(2)) request.terms = {Term(GroupTerm::Kind::kKey, 1 + random.Below(2))};
  if (random.OneIn(8)) {
    request.terms.push_back(Term(GroupTerm::Kind::kValue));
    request.terms.back().family = "f";
    request.terms.back().qualifier = "q1";
    request.terms.back().step = "10";
  }
  for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
    const size_t functions = random.OneIn(6) ? std::size(kFunctions) : std::size(kFunctions) - 1;
    request.reduces.push_back(
        Function(kFunctions[random.Below(functions)], kTargets[random.Below(kTargets.size())]));
  }
  return request;
}

Predicate ConditionOfColumns(Random& random) {
  using P = Predicate::Kind;
  constexpr P kKinds[]{P::kColumnExists, P::kColumnMissing, P::kCompare,   P::kCompare,
                       P::kCompare,      P::kMatch,         P::kRowExists, P::kRowMissing};
  static const std::vector<std::string_view> kQualifiers{"q0", "q1", "q2", "q3", "none"};
  const P kind = kKinds[random.Below(std::size(kKinds) - (random.OneIn(3) ? 0 : 2))];
  return {.kind = kind,
          .family = random.OneIn(2) ? "f" : "g",
          .qualifier = kQualifiers[random.Below(kQualifiers.size())],
          .op = static_cast<CompareOp>(random.Below(6)),
          .literal = kind == P::kMatch ? "*1*"
                     : random.OneIn(2) ? "5"
                                       : "and"};
}

// All that a fold tells, of the leaves or of what a scan gives out.
struct Told {
  std::map<std::string, std::string> answers;
  uint64_t rows{0};
  uint64_t cells{0};
  uint64_t bytes{0};
  std::vector<std::string> notes;
  bool operator==(const Told&) const = default;
};

Told TellFold(Rig& rig, const AggregateRequest& request, const RowOptions& rows,
              const CellOptions& cells, Random* by_leaves) {
  const AggregatePlan plan = *AggregatePlan::Compile(rig.schema(), request, cells.columns, false);
  ReadView view(rig.table(), kNow);
  auto scan = OpenScan(&view, rows, cells, nullptr, 1);
  REQUIRE(scan.ok());
  AggregateGroups groups(plan);
  if (plan.terms.empty()) (void)groups.Find({}, 0);
  AggregateFold fold(plan, view, &groups);
  ScanStats stats;
  if (by_leaves != nullptr) {
    Random& random = *by_leaves;
    const ScanShape shape = (*scan)->shape();
    REQUIRE(LeafFold::CanFold(shape, rig.schema()));
    LeafFold leaves(view, *shape.plan, *shape.ranges, *shape.where, &fold);
    const uint64_t slice = random.OneIn(3) ? kUnlimited : 1 + random.Below(60);
    while (!leaves.Pull(slice)) {
      if (view.detached() || !random.OneIn(3)) continue;
      view.Detach();
      fold.Reattach(view);
      leaves.Reattach(view);
      if (random.OneIn(2)) FillColumns(&rig, random);  // which is not seen
    }
    stats = leaves.stats();
  } else {
    aggregate_rig::FoldScan(**scan, &fold);
    stats = (*scan)->stats();
  }
  Told told{.answers = aggregate_rig::Show(plan, groups),
            .rows = stats.rows,
            .cells = stats.cells,
            .bytes = stats.bytes,
            .notes = {}};
  (*scan)->AddNotes(&told.notes);
  return told;
}

TEST_CASE("Single columns are folded as a scan gives them out, with what it tells", "[aggregate]") {
  const std::vector<std::string> policies{"", "maxversions=1", "maxversions=2", "maxage=10s"};
  size_t compared = 0;
  size_t noted = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Rig rig(
        "utf8#u64",
        {{.name = "f", .policy = policies[random.Below(4)], .packs = random.OneIn(2)},
         {.name = "g", .policy = policies[random.Below(4)], .group = random.OneIn(4) ? 1U : 0U}});
    FillColumns(&rig, random);
    for (int turn = 0; turn < 60; ++turn) {
      const AggregateRequest request = RequestOfColumns(random);
      CellOptions cells;
      const bool of_f = random.OneIn(2) || rig.schema().families[1].group == 1;
      for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
        const std::string_view qualifiers[] = {"q0", "q1", "q2", "q3", "none"};
        cells.columns.push_back({.kind = Kind::kColumn,
                                 .family = of_f || random.OneIn(2) ? "f" : "g",
                                 .first = qualifiers[random.Below(5)],
                                 .second = {}});
      }
      RowOptions rows = RandomRows(random);
      rows.where.clear();
      for (uint64_t i = random.Below(4); i > 0; --i)
        rows.where.push_back(ConditionOfColumns(random));
      if (!AggregatePlan::Compile(rig.schema(), request, cells.columns, false).ok()) continue;
      INFO("seed " << seed << ", turn " << turn);
      const Told expected = TellFold(rig, request, rows, cells, nullptr);
      const Told told = TellFold(rig, request, rows, cells, &random);
      REQUIRE(told.answers == expected.answers);
      REQUIRE(told.notes == expected.notes);
      REQUIRE(told.rows == expected.rows);
      // Leaves tell of what somebody takes.
      const bool takes_all =
          std::any_of(request.reduces.begin(), request.reduces.end(),
                      [](const Reduce& reduce) { return reduce.target == Reduce::Target::kAll; });
      if (takes_all) REQUIRE(told.cells == expected.cells);
      if (takes_all) REQUIRE(told.bytes == expected.bytes);
      ++compared;
      noted += told.notes.size();
    }
  }
  CHECK(compared > 600);
  CHECK(noted > 100);
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
