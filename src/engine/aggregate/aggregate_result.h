// What a CAGG answers: groups in their order, their values, and what the functions came to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/aggregate/aggregate_groups.h"
#include "engine/aggregate/aggregate_plan.h"

namespace cellar {

// A value of a reply.
struct AggregateValue {
  enum class Kind : uint8_t {
    kNull,
    kText,     // text
    kInteger,  // number
    kDouble,   // number, or nan
    kFloat32,  // number, shown with the digits of an f32
    kBool,     // number
    kCell,     // type, text: a stored value
    kDoubles,  // doubles
    kCounts,   // counts
  };
  Kind kind{Kind::kNull};
  std::string text;
  int128_t integer{0};
  double floating{0};
  ValueType type{ValueType::kBytes};
  std::vector<double> doubles;
  std::vector<uint64_t> counts;
};

// One for each term.
std::vector<AggregateValue> GroupValues(const AggregatePlan& plan, const AggregateGroup& group);
AggregateValue ReduceValue(const AggregatePlan& plan, const PlannedReduce& reduce,
                           const AggregateGroup& group);
// That of a function that gives a cell's value, which points into the group; false if it is null.
// REQUIRES: GivesCell(reduce.function), or the group is filled by a value.
[[nodiscard]] bool CellOf(const AggregatePlan& plan, const PlannedReduce& reduce,
                          const AggregateGroup& group, SeenValue* cell);

// Where in a group's key a term stands.
struct StepPlace {
  uint32_t at{0};
  uint32_t bytes{0};
};
StepPlace FindStep(const AggregatePlan& plan, size_t index, const AggregateGroup& group);

}  // namespace cellar
