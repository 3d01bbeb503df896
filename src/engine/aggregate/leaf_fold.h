// LeafFold: the cells of a range of rows into groups, straight from the leaves of one locality
// group's tree: no row is put together, and no cell is a reply's.
//
// It takes what a TableScan with the same plan would give out. That it may be used, where rows are
// chosen by ranges and conditions, and cells by ranges, time and number of versions alone, is for
// CanFold to say.
//
//   in a row    the cursor goes forward to the first column that is wanted, and leaves the row
//               behind the last one; keys of what it passes are not put together
//   a column    what is known of it before it is met, of a single one or of all in a family (who
//               takes it, whether text counts), is not asked again
//   columns     where only single ones are wanted, and of each the newest cell: column_fold.h
//   its cells   where neither the fold nor retention asks for timestamps, the cells of a family are
//               taken by runs, of which nothing but the values is looked at
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_buffer.h"
#include "engine/aggregate/aggregate_fold.h"
#include "engine/aggregate/column_fold.h"
#include "engine/aggregate/row_ranges.h"
#include "engine/rows/cell_stream.h"
#include "engine/rows/conditions_ahead.h"
#include "engine/rows/row_reader.h"
#include "engine/rows/scan.h"
#include "engine/table/read_view.h"
#include "engine/table/version_walk.h"

namespace cellar {

class LeafFold {
 public:
  // Does the scan choose so that a LeafFold can take its place?
  static bool CanFold(const ScanShape& shape, const TableSchema& schema);

  // `view`, `cells`, `where` and `fold` outlive it; rows are taken for which all of `where` hold.
  // REQUIRES: CanFold of such a scan.
  LeafFold(const ReadView& view, const CellPlan& cells, std::vector<KeyRange> ranges,
           std::span<const Condition> where, AggregateFold* fold);

  // Looks at `cells` entries at most; true at the end.
  bool Pull(uint64_t cells);
  // The view has been detached: goes on at the same place.
  void Reattach(const ReadView& view);
  // After Pull said false: the key of an entry where it goes on.
  std::string_view place() const { return columns_ != nullptr ? columns_->place() : at_->key(); }
  const ScanStats& stats() const { return columns_ != nullptr ? columns_->stats() : stats_; }

 private:
  // What is known of a family, by its id.
  struct FamilyOfId {
    bool selected{false};
    size_t index{0};                            // in TableSchema::families
    const ColumnSet::Family* columns{nullptr};  // of the plan
    const FamilySchema* schema{nullptr};
    VersionWalk walk;
    bool alike{false};  // its columns are: then of each
    std::vector<uint32_t> takers;
    bool text_counts{false};
    bool by_runs{false};
  };
  // What is wanted of a row, by what stands behind its key.
  struct Wanted {
    KeyRange range;
    // It is a single column: then of that
    bool is_column{false};
    size_t family{0};  // in TableSchema::families
    std::string_view qualifier;
    uint32_t family_id{0};
    std::vector<uint32_t> takers;
    bool text_counts{false};
  };
  void AddWanted(const FamilySchema& family, size_t index, const KeyRange& range);
  bool MakeColumnFold(std::span<const Condition> where);
  void PrepareFamilies();
  // The entry at hand begins a row, a column. False: nothing more is there to be read, or the
  // cursor has moved, also behind a row that is not taken, and is to be looked at again.
  bool BeginRow();
  void BeginColumn(size_t shared_bytes);
  void EnterColumn(FamilyOfId* family, const std::vector<uint32_t>& takers, bool text_counts);
  // Goes on to the first column at or behind the one at hand that is wanted. False: it is of
  // another row, or has been begun.
  bool ReachWanted();
  void LeaveRow();
  bool Lives(std::string_view value) const;
  void FoldCell();
  // Folds the cell at hand, which begins a column, and those behind it that each begin one, as far
  // as they come by runs; counts *cells down for these, and stays on the last of them.
  void FoldRun(uint64_t* cells);
  // To the next entry, or behind the column or row at hand where nobody takes more of it.
  void Advance();

  const ReadView* view_;
  const CellChoice& choice_;
  RowRanges ranges_;
  std::optional<ConditionsAhead> where_;  // if there are any
  AggregateFold* fold_;
  std::unique_ptr<ColumnFold> columns_;  // it does all
  size_t group_{0};
  std::unique_ptr<BTreeCursor> at_;
  std::vector<FamilyOfId> families_;  // by id
  std::vector<Wanted> wanted_;        // ascending
  bool wants_all_{false};             // ... that is all there is
  bool reads_timestamps_{false};
  ScanStats stats_;

  bool started_{false};
  bool ended_{false};
  size_t shared_{0};            // of the entry at hand and the one before it
  size_t row_bytes_{0};         // of the row before it
  bool in_row_{false};          // ... there is one
  size_t wanted_at_{0};         // what is wanted before it ends before the column at hand
  bool wanted_reached_{false};  // ... and it has been looked for
  size_t column_bytes_{0};
  size_t family_bytes_{0};
  size_t text_bytes_{0};
  FamilyOfId* family_{nullptr};
  bool column_taken_{false};
  bool column_done_{false};
  uint64_t versions_{0};
  const std::vector<uint32_t>* takers_{nullptr};
  uint8_t lone_rows_{0};  // so many rows are expected to hold one cell of a family: no run begins
  std::vector<uint32_t> own_takers_;  // of a column that is not known before it is met
  bool text_counts_{false};           // of the column, if cells come by AddRun
  PlainValue plain_;
  KeyBuffer target_;
};

}  // namespace cellar
