// GroupFill: FILL of a CAGG. Where a series of groups, which differ by the step of one term alone,
// leaves steps out between its first and its last one, groups are added for them. Null, and values
// that have no steps (text, infinities), are neither.
//
// It works in slices: the groups are sorted by series and step, then walked. What is added counts
// for agg-max-memory as groups do, so that whoever steps it has to look at that in between.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/aggregate/aggregate_groups.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/aggregate/group_sorter.h"

namespace cellar {

class GroupFill {
 public:
  // Both outlive it. REQUIRES: plan.fill.
  GroupFill(const AggregatePlan& plan, AggregateGroups* groups);

  // Adds, or looks at, about so many groups; true at the end.
  bool Step(size_t groups);

 private:
  // The value of a group's step.
  struct StepValue {
    bool is_step{false};
    int64_t micros{0};  // TIME
    Number number;      // else
  };
  StepValue ValueOf(std::string_view step) const;
  // The one behind it; not above it if it cannot be told.
  StepValue NextOf(const StepValue& value) const;
  bool IsBefore(const StepValue& a, const StepValue& b) const;
  std::string_view StepOf(size_t i) const;
  void AddGroup(const StepValue& value);

  const AggregatePlan& plan_;
  const PlannedTerm& term_;
  AggregateGroups* groups_;
  GroupSorter sorter_;
  bool sorted_{false};
  size_t at_{0};     // the group whose successors are being added
  StepValue value_;  // the last one that is there, of its series
  std::string key_;
};

}  // namespace cellar
