// FilterRun: one reading of a table through a filter, row by row, cell by cell, with an early end.
//
// Cells are never collected. A filter without conditions needs one reading of a row; each `if`
// whose condition depends on another one's outcome costs one reading more, before the one that
// gives cells (Filter::stages()). The loop over one row, with the row's cells in order (families by
// name, qualifiers in order, versions newest first):
//
//   run.BeginRow(row);
//   while (run.NeedsDecision()) {
//     for (each cell of the row) if (run.Decide(cell) == FilterNext::kRowDone) break;
//     run.EndDecision();
//   }
//   for (each cell of the row) {
//     FilterNext next = run.Feed(cell);
//     for (const FilterOutput& output : run.outputs()) ...give the cell out, perhaps several times
//     if (next == FilterNext::kRowDone) break;
//     if (next == FilterNext::kColumnDone) ...the rest of the column may be left out
//   }
//
// To go on in the middle of a row, feed it from its beginning and drop what was given out before:
// all decisions are the same again, those of sample() too, which depend only on the seed and the
// row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/filter/filter.h"
#include "engine/keys/order.h"

namespace cellar {

// What a filter must know of a table's family. The order must outlive the run.
struct FilterFamily {
  std::string_view name;
  const Order* order{nullptr};
};

// The qualifiers (or row keys) that satisfy one step, in terms of encoded keys.
struct FilterKeyTest {
  KeyRange range;
  bool inside{true};  // passes if in the range; false: if not
  bool never{false};  // the literal does not fit the order: nothing passes
  bool Passes(std::string_view encoded) const {
    return !never && range.contains(encoded) == inside;
  }
};
// REQUIRES: `node` is a kCompare or kIn step on row or qualifier.
FilterKeyTest MakeFilterKeyTest(const FilterNode& node, const Order& order);

// The timestamps that satisfy a step: [min, max], or all others.
struct FilterTimestampTest {
  int64_t min{0};
  int64_t max{INT64_MAX};
  bool inside{true};
  bool Passes(int64_t timestamp) const { return (timestamp >= min && timestamp <= max) == inside; }
};
// REQUIRES: `node` is a kCompare or kIn step on ts.
FilterTimestampTest MakeFilterTimestampTest(const FilterNode& node);

// Does a family of this name satisfy the step? REQUIRES: `node` is a step on family.
bool FilterFamilyPasses(const FilterNode& node, std::string_view name);

struct FilterCell {
  uint32_t family{0};          // index into the run's families
  std::string_view qualifier;  // encoded
  int64_t timestamp_micros{0};
  ValueType type{ValueType::kBytes};
  std::string_view stored;
};

// The cell fed last, as it leaves the filter.
struct FilterOutput {
  bool stripped{false};  // the value is empty: type string stays string, any other becomes bytes
  std::vector<std::string> labels;
};

// What can still come of the row.
enum class FilterNext : uint8_t {
  kMore,
  kColumnDone,  // no further version of this column gives anything
  kRowDone,     // no further cell of this row gives anything
};

class FilterRun {
 public:
  // `filter`, `key_order` and the orders of `families` must outlive the run.
  FilterRun(const Filter& filter, const Order& key_order, std::span<const FilterFamily> families,
            uint64_t seed);
  ~FilterRun();
  FilterRun(const FilterRun&) = delete;
  FilterRun& operator=(const FilterRun&) = delete;

  void BeginRow(std::string_view row_encoded);

  // True while a reading of the row is needed that only decides conditions.
  bool NeedsDecision() const;
  FilterNext Decide(const FilterCell& cell);
  void EndDecision();

  // REQUIRES: !NeedsDecision(). Cost: one pass over the steps, times the copies.
  FilterNext Feed(const FilterCell& cell);
  // Cells fed so far that are text and were compared with a number, which lets none of them pass.
  uint64_t text_met() const;
  // What the cell fed last has become: none, one or more copies.
  std::span<const FilterOutput> outputs() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cellar
