// Groups by their keys: found again, merged from parts, and counted to the byte.
#include "engine/aggregate/aggregate_groups.h"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/aggregate/group_sorter.h"
#include "tests/engine/aggregate_rig.h"

namespace aggregate_groups_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using aggregate_rig::Function;
using aggregate_rig::Rig;

AggregatePlan Plan(Rig& rig, const std::vector<Reduce>& reduces) {
  AggregateRequest request;
  request.terms = {aggregate_rig::Term(GroupTerm::Kind::kKey, 1)};
  request.reduces = reduces;
  return *AggregatePlan::Compile(rig.schema(), request, {}, false);
}

void Add(AggregateGroups* groups, const AggregatePlan& plan, AggregateGroup* group, int64_t number,
         uint64_t row) {
  std::string stored;
  REQUIRE(ParseValue(ValueType::kI64, FormatInt64(number), &stored).ok());
  FoldCell cell;
  cell.type = ValueType::kI64;
  cell.stored = stored;
  cell.row = row;
  std::vector<uint32_t> takers(plan.reduces.size());
  std::iota(takers.begin(), takers.end(), 0);
  groups->Add(group, takers, cell);
}

std::string KeyOf(uint64_t number) {
  return "k" + std::string(number % 40, 'x') + FormatUint64(number) + std::string("\0\1", 2);
}

TEST_CASE("A group is found again by its key, whatever others there are", "[aggregate]") {
  Rig rig("bytes", {{.name = "f"}});
  const AggregatePlan plan = Plan(rig, {Function(Reduce::Function::kCount, "*")});
  AggregateGroups groups(plan);
  std::vector<AggregateGroup*> made;
  constexpr size_t kGroups{20'000};
  for (size_t i = 0; i < kGroups; ++i) {
    made.push_back(&groups.Find(KeyOf(i), static_cast<uint32_t>(i)));
    if (i % 97 == 0) CHECK(&groups.Find(KeyOf(i / 2), 0) == made[i / 2]);
  }
  REQUIRE(groups.size() == kGroups);
  REQUIRE(groups.all() == made);
  for (size_t i = 0; i < kGroups; ++i) {
    REQUIRE(&groups.Find(KeyOf(i), 0) == made[i]);
    REQUIRE(made[i]->key(plan) == KeyOf(i));
    REQUIRE(made[i]->float32_mask() == i);
  }
  CHECK(groups.size() == kGroups);
  CHECK(&groups.Find({}, 0) == &groups.Find({}, 0));
}

TEST_CASE("Parts that are merged in steps come to the whole", "[aggregate]") {
  Rig rig("bytes", {{.name = "f"}});
  Reduce quantile = Function(Reduce::Function::kQuantile, "f");
  quantile.numbers = {"0", "0.5", "1"};
  Reduce histogram = Function(Reduce::Function::kHistogram, "f");
  histogram.numbers = {"-10", "0", "100"};
  const AggregatePlan plan =
      Plan(rig, {Function(Reduce::Function::kRows, "*"), Function(Reduce::Function::kCount, "*"),
                 Function(Reduce::Function::kSum, "f"), Function(Reduce::Function::kMin, "f"),
                 Function(Reduce::Function::kMax, "f"), Function(Reduce::Function::kAvg, "f"),
                 Function(Reduce::Function::kDistinct, "f"), quantile, histogram});
  Random random(7);
  AggregateGroups whole(plan);
  AggregateGroups parts[3] = {AggregateGroups(plan), AggregateGroups(plan), AggregateGroups(plan)};
  for (uint64_t row = 1; row <= 6000; ++row) {  // rows are never cut
    AggregateGroups& part = parts[random.Below(3)];
    for (uint64_t cells = 1 + random.Below(3); cells > 0; --cells) {
      const std::string key = KeyOf(random.Below(200));
      const int64_t number = static_cast<int64_t>(random.Below(300)) - 150;
      Add(&whole, plan, &whole.Find(key, 0), number, row);
      Add(&part, plan, &part.Find(key, 0), number, row);
    }
  }
  for (size_t i = 1; i < 3; ++i) {
    size_t at = 0;
    while (!parts[0].Merge(parts[i], &at, 1 + random.Below(20))) {
    }
  }
  CHECK(aggregate_rig::Show(plan, parts[0]) == aggregate_rig::Show(plan, whole));
  CHECK(parts[0].skipped() == whole.skipped());
}

TEST_CASE("A group with a plain function takes no more than 200 bytes", "[aggregate]") {
  Rig rig("bytes", {{.name = "f"}});
  for (const Reduce::Function function :
       {Reduce::Function::kRows, Reduce::Function::kCount, Reduce::Function::kMin,
        Reduce::Function::kMax, Reduce::Function::kSum, Reduce::Function::kAvg}) {
    const AggregatePlan plan = Plan(rig, {Function(function, "f")});
    AggregateGroups groups(plan);
    for (const size_t count : {1000, 10'000, 100'000}) {
      for (size_t i = groups.size(); i < count; ++i) {
        const std::string key = "key of 16 b " + FormatUint64(100'000 + i);
        Add(&groups, plan, &groups.Find(key, 0), static_cast<int64_t>(i), i);
      }
      INFO("function " << static_cast<int>(function) << ", " << count << " groups");
      CHECK(groups.memory_bytes() / count + GroupSorter::kBytesPerGroup <= 200);
    }
  }
}

TEST_CASE("What large accumulators take is counted too", "[aggregate]") {
  Rig rig("bytes", {{.name = "f"}});
  const AggregatePlan plan = Plan(rig, {Function(Reduce::Function::kDistinct, "f")});
  AggregateGroups groups(plan);
  AggregateGroup& group = groups.Find("k", 0);
  const size_t before = groups.memory_bytes();
  for (int64_t i = 0; i < 500; ++i) Add(&groups, plan, &group, i, 1);
  CHECK(groups.memory_bytes() >= before + 500 * sizeof(uint64_t));
}

}  // namespace aggregate_groups_test
