// BY, REDUCE and SORT against a schema: what is refused, and what it comes to.
#include "engine/aggregate/aggregate_plan.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/engine/aggregate_rig.h"

namespace aggregate_plan_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using aggregate_rig::Function;
using aggregate_rig::Rig;
using aggregate_rig::Term;
using Kind = GroupTerm::Kind;

Result<AggregatePlan> Plan(Rig& rig, const AggregateRequest& request) {
  return AggregatePlan::Compile(rig.schema(), request, {}, false);
}

// The refusal of one term beside a COUNT, "" if there is none.
std::string Refusal(Rig& rig, const GroupTerm& term) {
  AggregateRequest request;
  request.terms = {term};
  request.reduces = {Function(Reduce::Function::kCount, "*")};
  const Result<AggregatePlan> plan = Plan(rig, request);
  return plan.ok() ? "" : plan.status().text();
}

std::string Refusal(Rig& rig, const std::vector<Reduce>& reduces, std::string_view sort = {}) {
  AggregateRequest request;
  request.reduces = reduces;
  if (!sort.empty()) request.sort = sort;
  const Result<AggregatePlan> plan = Plan(rig, request);
  return plan.ok() ? "" : plan.status().text();
}

TEST_CASE("A term that the keys do not have is refused by its number", "[aggregate]") {
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#i64"}});
  CHECK(Refusal(rig, Term(Kind::kKey, 2)).empty());
  CHECK(Refusal(rig, Term(Kind::kKey, 3)).find("KEY 3") != std::string::npos);
  CHECK(Refusal(rig, Term(Kind::kPart, 2)).empty());
  CHECK(Refusal(rig, Term(Kind::kPart, 3)).find("PART 3") != std::string::npos);
  CHECK(Refusal(rig, Term(Kind::kBytes, 2)).find("BYTES") == 0);
  CHECK(Refusal(rig, Term(Kind::kQualifier, 2)).empty());
  CHECK(Refusal(rig, Term(Kind::kQualifier, 3)).find("QUALIFIER 3") == 0);
  GroupTerm step = Term(Kind::kPart, 1);
  step.step = "10";
  CHECK(Refusal(rig, step).find("STEP") != std::string::npos);  // of text
  step.count = 2;
  CHECK(Refusal(rig, step).empty());
  for (const std::string_view wrong : {"0", "-1", "x", "inf", ""}) {
    step.step = wrong;
    CHECK_FALSE(Refusal(rig, step).empty());
  }
  GroupTerm value = Term(Kind::kValue);
  value.family = "nix";
  CHECK(Refusal(rig, value).find("nix") != std::string::npos);
}

TEST_CASE("What a REDUCE says is checked before a cell is read", "[aggregate]") {
  Rig rig("bytes", {{.name = "f"}});
  const Reduce count = Function(Reduce::Function::kCount, "*");
  const Reduce sum = Function(Reduce::Function::kSum, "f:a");
  CHECK(Refusal(rig, {count, sum}).empty());
  CHECK(Refusal(rig, {sum, count, sum}) == "two REDUCEs have the name 'sum(f:a)'");
  CHECK(Refusal(rig, {count, Function(Reduce::Function::kMax, "nix:a")}).find("nix") !=
        std::string::npos);
  Reduce quantile = Function(Reduce::Function::kQuantile, "f");
  for (const std::string_view wrong : {"-0.1", "1.1", "x", "nan"}) {
    quantile.numbers = {"0.5", wrong};
    CHECK(Refusal(rig, {quantile}).find(wrong) != std::string::npos);
  }
  quantile.numbers = {"0", "0.5", "1"};
  CHECK(Refusal(rig, {quantile}).empty());
  Reduce histogram = Function(Reduce::Function::kHistogram, "f");
  histogram.numbers = {"1", "2.5", "2.5"};
  CHECK(Refusal(rig, {histogram}).find("2.5") != std::string::npos);
  histogram.numbers = {"-1", "2.5", "18446744073709551615"};
  CHECK(Refusal(rig, {histogram}).empty());
  CHECK(Refusal(rig, {count}, "nix") == "SORT 'nix' is the name of no REDUCE");
  CHECK(Refusal(rig, {quantile}, "quantile(f)") == "SORT 'quantile(f)' is not one number");
  CHECK(Refusal(rig, {count, sum}, "sum(f:a)").empty());
}

TEST_CASE("There are limits to what one may ask", "[aggregate]") {
  Rig rig("bytes", {{.name = "f"}});
  AggregateRequest request;
  request.terms.assign(kGroupTermsMax, Term(Kind::kKey, 1));
  std::vector<std::string> names;
  for (size_t i = 0; i <= kReducesMax; ++i) names.push_back("n" + FormatUint64(i));
  for (size_t i = 0; i < kReducesMax; ++i) {
    request.reduces.push_back(Function(Reduce::Function::kCount, "*"));
    request.reduces.back().name = names[i];
  }
  REQUIRE(Plan(rig, request).ok());
  request.terms.push_back(Term(Kind::kKey, 1));
  CHECK(Plan(rig, request).status().code() == ErrorCode::kTooLarge);
  request.terms.pop_back();
  request.reduces.push_back(Function(Reduce::Function::kCount, "*"));
  request.reduces.back().name = names[kReducesMax];
  CHECK(Plan(rig, request).status().code() == ErrorCode::kTooLarge);
  const std::vector<std::string_view> many(kQuantilesMax + 1, "0.5");
  Reduce quantile = Function(Reduce::Function::kQuantile, "f");
  quantile.numbers = many;
  CHECK(Refusal(rig, {quantile}).find("limit") != std::string::npos);
}

TEST_CASE("Accumulators stand one behind the other, each where it may", "[aggregate]") {
  Rig rig("bytes", {{.name = "f"}});
  AggregateRequest request;
  for (int function = 0; function <= static_cast<int>(Reduce::Function::kHistogram); ++function) {
    request.reduces.push_back(Function(static_cast<Reduce::Function>(function), "f"));
    if (function == static_cast<int>(Reduce::Function::kQuantile))
      request.reduces.back().numbers = {"0.5"};
    if (function == static_cast<int>(Reduce::Function::kHistogram))
      request.reduces.back().numbers = {"1", "2"};
  }
  const Result<AggregatePlan> plan = Plan(rig, request);
  REQUIRE(plan.ok());
  size_t end = 0;
  for (const PlannedReduce& reduce : plan->reduces) {
    CHECK(reduce.offset == end);
    CHECK(reduce.offset % 8 == 0);
    end += AccumulatorBytes(reduce.function);
  }
  CHECK(plan->accumulator_bytes == end);
}

TEST_CASE("Who looks at some columns alone reads no others", "[aggregate]") {
  AggregateRequest request;
  request.reduces = {Function(Reduce::Function::kSum, "f:a"),
                     Function(Reduce::Function::kMax, "g")};
  CellOptions cells;
  std::vector<ColumnSelector> targets;
  NarrowToTargets(request, {}, &cells, &targets);
  REQUIRE(cells.columns.size() == 2);
  CHECK(cells.columns[0].kind == ColumnSelector::Kind::kColumn);
  CHECK(cells.columns[1].kind == ColumnSelector::Kind::kFamily);
  CHECK_FALSE(cells.timestamps);

  CellOptions limited;  // cells count for the limit, whoever looks at them
  limited.columns_max = 3;
  targets.clear();
  NarrowToTargets(request, {}, &limited, &targets);
  CHECK(limited.columns.empty());

  CellOptions all;
  request.reduces.push_back(Function(Reduce::Function::kCount, "*"));
  request.terms = {Term(Kind::kTime)};
  targets.clear();
  NarrowToTargets(request, {}, &all, &targets);
  CHECK(all.columns.empty());
  CHECK(all.timestamps);
}

}  // namespace aggregate_plan_test
