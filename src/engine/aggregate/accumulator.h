// Accumulators: what each function of a CAGG keeps for a group. They lie one behind the other in
// the group's memory (aggregate_groups.h), 8-byte aligned, and are begun and ended by these
// functions; what needs more room than their fixed size stands on the heap and is counted.
//
// Adding does not depend on the order of the cells, but for the last digit of a Spread, and two
// accumulators can be made one, so that parts of a table may be folded apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/aggregate/aggregate_value.h"
#include "engine/aggregate/cell_place.h"
#include "engine/aggregate/exact_sum.h"
#include "engine/aggregate/growth.h"
#include "engine/aggregate/spread.h"
#include "engine/aggregate/timed_value.h"
#include "engine/keys/cell.h"
#include "engine/keys/hyperloglog.h"
#include "engine/request/aggregate_request.h"

namespace cellar {

struct PlannedReduce;

// Counts by key; open addressing.
class KeyCounts {
 public:
  void Add(int64_t key, uint64_t count);
  uint64_t total() const { return total_; }
  size_t size() const { return used_; }  // keys
  // All of them, by key.
  std::vector<std::pair<int64_t, uint64_t>> Sorted() const;
  size_t heap_bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    int64_t key{0};
    uint64_t count{0};  // 0: free
  };
  void Grow();
  std::vector<Slot> slots_;
  size_t used_{0};
  uint64_t total_{0};
};

// DISTINCT: hashes of 128 bits of up to kDistinctExactMax values, which no two values have in
// common in practice; beyond it an HLL sketch of them. The states of hll cells are a sketch of
// their own.
inline constexpr size_t kDistinctExactMax{1'024};
class DistinctValues {
 public:
  void AddValue(ValueType type, std::string_view stored);
  void AddState(std::string_view state);
  void Add(const DistinctValues& other);
  uint64_t Count() const;
  size_t heap_bytes() const;
  // For another node, which takes it for the same.
  void Encode(std::string* to) const;
  // REQUIRES: nothing has been added. False: these are not the bytes of one.
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  struct Hash {
    uint64_t low{0};
    uint64_t high{0};
    bool operator==(const Hash&) const = default;
    bool operator<(const Hash& other) const {
      return low != other.low ? low < other.low : high < other.high;
    }
  };
  void AddHash(const Hash& hash);
  void GoOver();  // to the sketch

  std::vector<Hash> slots_;  // open addressing; all zero: free
  size_t used_{0};
  std::unique_ptr<HllSketch> sketch_;
  std::unique_ptr<HllSketch> states_;
};

// QUANTILE, beyond kQuantileExactMax different numbers: counts by the first 7 bits of their binary
// fraction, so that the lower end of a bucket is within 1/128 of all in it; whole numbers below 128
// have one each.
int64_t QuantileKey(double value);
double QuantileValue(int64_t key);

// QUANTILE: how many there are of each number, or of each bucket.
inline constexpr size_t kQuantileExactMax{1'024};
class QuantileCounts {
 public:
  void Add(double number);
  void Add(const QuantileCounts& other);
  uint64_t total() const { return counts_.total(); }
  // Numbers, or lower ends of buckets, ascending, and how many there are of each.
  std::vector<std::pair<double, uint64_t>> Sorted() const;
  size_t heap_bytes() const { return counts_.heap_bytes(); }
  // For another node, which takes it for the same.
  void Encode(std::string* to) const;
  // REQUIRES: nothing has been added. False: these are not the bytes of one.
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  void AddKey(int64_t key, uint64_t count);  // of a number
  void GoOver();                             // to buckets

  KeyCounts counts_;
  bool exact_{true};  // keys are of numbers, in their order
};

// A value of its own.
class HeldValue {
 public:
  bool empty() const { return !held_; }
  ValueType type() const { return type_; }
  std::string_view stored() const { return {bytes_ <= sizeof(inline_) ? inline_ : heap_, bytes_}; }
  void Set(ValueType type, std::string_view stored);
  void Free();
  size_t heap_bytes() const { return bytes_ <= sizeof(inline_) ? 0 : bytes_; }

 private:
  bool held_{false};
  ValueType type_{ValueType::kBytes};
  size_t bytes_{0};
  // NOLINTBEGIN(readability-identifier-naming): private, though members of a union say otherwise
  union {
    char inline_[16];
    char* heap_;
  };
  // NOLINTEND(readability-identifier-naming)
};

struct RowsAccumulator {
  uint64_t rows{0};
  uint64_t last_row{0};  // serial of the row counted last
};
struct CountAccumulator {
  uint64_t cells{0};
};
struct SumAccumulator {
  ExactSum sum;
};
struct AvgAccumulator {
  ExactSum sum;
  uint64_t cells{0};
};
struct ExtremeAccumulator {  // MIN, MAX
  HeldValue value;
};
struct TimedAccumulator {  // FIRST, LAST
  TimedValue* value;
};
struct SpreadAccumulator {  // STDDEV, VARIANCE
  Spread* spread;
};
struct GrowthAccumulator {  // DELTA, RATE
  Growth* growth;
};
struct DistinctAccumulator {
  DistinctValues* values;
};
struct QuantileAccumulator {
  QuantileCounts* counts;
};
struct HistogramAccumulator {
  uint64_t* counts;  // one more than there are bounds
};

size_t AccumulatorBytes(Reduce::Function function);
// What one may come to take with what it holds beside itself; SIZE_MAX: that depends on the cells.
size_t AccumulatorBytesMax(const PlannedReduce& reduce);

// A cell as accumulators take it.
struct FoldCell {
  ValueType type{ValueType::kBytes};
  std::string_view stored;
  bool text_counts{false};          // text that is a number is one
  uint64_t row{0};                  // serial of its row, not 0
  const CellPlace* place{nullptr};  // where WantsPlace(function)
};

// Live cells as a tree holds them.
struct FoldRun {
  std::span<const std::string_view> values;
  bool text_counts{false};     // of all
  uint64_t row{0};             // of all, as in FoldCell; 0: each is of another one
  PlainValue* plain{nullptr};  // for those that are packed
};

constexpr bool WantsPlace(Reduce::Function function) {
  return function == Reduce::Function::kFirst || function == Reduce::Function::kLast ||
         function == Reduce::Function::kDelta || function == Reduce::Function::kRate;
}
// Does it ask of which column, in CellPlace?
constexpr bool WantsColumn(Reduce::Function function) {
  return function == Reduce::Function::kDelta || function == Reduce::Function::kRate;
}
// Is its result the value of a cell, as it is?
constexpr bool GivesCell(Reduce::Function function) {
  return function >= Reduce::Function::kMin && function <= Reduce::Function::kLast;
}

// All take the accumulator of `reduce`. Those that change return by how much the heap's part grew.
size_t BeginAccumulator(const PlannedReduce& reduce, char* accumulator);
size_t AddToAccumulator(const PlannedReduce& reduce, const FoldCell& cell, char* accumulator,
                        uint64_t* skipped);
// The same of several. REQUIRES: !WantsPlace(reduce.function).
size_t AddToAccumulator(const PlannedReduce& reduce, const FoldRun& run, char* accumulator,
                        uint64_t* skipped);
size_t MergeAccumulator(const PlannedReduce& reduce, const char* from, char* accumulator);
void EndAccumulator(const PlannedReduce& reduce, char* accumulator);

// For another node, which takes the same plan's for it (accumulator_bytes.cc).
void EncodeAccumulator(const PlannedReduce& reduce, const char* accumulator, std::string* to);
// Of one that was begun and nothing has been added to; it is to be ended in any case. False: these
// are not the bytes of one.
[[nodiscard]] bool DecodeAccumulator(const PlannedReduce& reduce, std::string_view* from,
                                     char* accumulator);

}  // namespace cellar
