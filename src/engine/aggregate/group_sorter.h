// GroupSorter: puts groups in order in bounded steps: pieces are sorted, then merged, each time
// twice as long.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/aggregate/aggregate_groups.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/aggregate/aggregate_result.h"

namespace cellar {

enum class GroupOrder : uint8_t {
  kAnswer,  // as SORT and REVERSE say; groups that HAVING does not keep are left out
  kSteps,   // those that differ by FILL's term alone side by side, the lowest step first
};

class GroupSorter {
 public:
  GroupSorter(const AggregatePlan& plan, GroupOrder order)
      : plan_(plan), order_(order) {}          // the plan outlives it
  static constexpr size_t kBytesPerGroup{64};  // that it takes

  void Begin(const std::vector<AggregateGroup*>& groups);
  // Does the work of about `groups` comparisons; true when all is sorted.
  bool Step(size_t groups);
  // REQUIRES: sorted.
  const AggregateGroup& at(size_t i) const { return *entries_[i].group; }
  size_t size() const { return entries_.size(); }
  // Of kSteps: are both of one series, which all groups are that differ by their steps alone?
  bool SameSeries(size_t a, size_t b) const { return CompareSeries(entries_[a], entries_[b]) == 0; }
  // Of kSteps.
  StepPlace step_place(size_t i) const { return StepOf(entries_[i]); }

 private:
  struct Entry {
    const AggregateGroup* group{nullptr};
    double floor{0};
    uint64_t rest{0};  // of kSteps where the step stands in the key
    uint8_t kind{0};   // 0 null, 1 nan, 2 number that is one as a whole, 3 integer, 4 float
  };
  static StepPlace StepOf(const Entry& entry) {
    return {static_cast<uint32_t>(entry.rest >> 32), static_cast<uint32_t>(entry.rest)};
  }
  bool Prepares() const;
  bool PrepareAll(size_t* left);
  void Prepare(Entry* entry) const;
  bool Before(const Entry& a, const Entry& b) const;
  int CompareSorted(const Entry& a, const Entry& b) const;
  int CompareSeries(const Entry& a, const Entry& b) const;

  const AggregatePlan& plan_;
  const GroupOrder order_;
  std::vector<Entry> entries_;
  std::vector<Entry> merged_;
  size_t prepared_{0};
  size_t kept_{0};
  size_t piece_{0};  // length of sorted pieces; 0: not sorted at all
  size_t left_{0};   // where the pieces that are being merged stand
  size_t right_{0};
  size_t pair_{0};  // where their first one begins
};

}  // namespace cellar
