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
AggregateValue ReduceValue(const PlannedReduce& reduce, const AggregateGroup& group);

// Puts groups in order in bounded steps: pieces are sorted, then merged, each time twice as long.
class GroupSorter {
 public:
  explicit GroupSorter(const AggregatePlan& plan) : plan_(plan) {}  // outlives it
  static constexpr size_t kBytesPerGroup{64};                       // that it takes

  void Begin(const std::vector<AggregateGroup*>& groups);
  // Does the work of about `groups` comparisons; true when all is sorted.
  bool Step(size_t groups);
  // REQUIRES: sorted.
  const AggregateGroup& at(size_t i) const { return *entries_[i].group; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    const AggregateGroup* group{nullptr};
    double floor{0};
    uint64_t rest{0};
    uint8_t kind{0};  // 0 null, 1 nan, 2 number that is one as a whole, 3 integer, 4 float
  };
  void Prepare(Entry* entry) const;
  bool Before(const Entry& a, const Entry& b) const;
  int CompareSorted(const Entry& a, const Entry& b) const;

  const AggregatePlan& plan_;
  std::vector<Entry> entries_;
  std::vector<Entry> merged_;
  size_t prepared_{0};
  size_t piece_{0};  // length of sorted pieces; 0: not sorted at all
  size_t left_{0};   // where the pieces that are being merged stand
  size_t right_{0};
  size_t pair_{0};  // where their first one begins
};

}  // namespace cellar
