// LeafFold: the cells of a range of rows into groups, straight from the leaves of one locality
// group's tree: no row is put together, and no cell is a reply's.
//
// It takes what a TableScan with the same plan would give out. That it may be used, where rows and
// cells are chosen by ranges, time and number of versions alone, is for CanFold to say. It walks
// entry by entry; where it meets more than a few in a row that nobody takes it seeks to the next
// one that somebody may take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/aggregate/aggregate_fold.h"
#include "engine/rows/cell_stream.h"
#include "engine/rows/row_reader.h"
#include "engine/rows/scan.h"
#include "engine/table/read_view.h"

namespace cellar {

class LeafFold {
 public:
  // Does the scan choose so that a LeafFold can take its place?
  static bool CanFold(const ScanShape& shape, const TableSchema& schema);

  // `view`, `cells` and `fold` outlive it. REQUIRES: CanFold of such a scan.
  LeafFold(const ReadView& view, const CellPlan& cells, std::vector<KeyRange> ranges,
           AggregateFold* fold);

  // Looks at `cells` entries at most; true at the end.
  bool Pull(uint64_t cells);
  // The view has been detached: goes on at the same place.
  void Reattach(const ReadView& view);
  const ScanStats& stats() const { return stats_; }

 private:
  // What is known of a family, by its id.
  struct FamilyOfId {
    bool selected{false};
    size_t index{0};                            // in TableSchema::families
    const ColumnSet::Family* columns{nullptr};  // of the plan
    const FamilySchema* schema{nullptr};
    bool all_live{true};
  };
  void PrepareFamilies();
  // The entry at hand begins a row, a column. False: nothing more is there to be read, or the
  // cursor has moved and is to be looked at again.
  bool BeginRow();
  void BeginColumn(size_t shared_bytes);
  bool EnterRange();
  void FoldCell();
  // Does nobody want the column at hand? Then goes on behind it, or behind the whole row, without a
  // look at its name.
  bool PassUnwanted();
  // To the next entry, or further where nothing in between is wanted.
  void Advance();
  void SeekWanted();

  const ReadView* view_;
  const CellChoice& choice_;
  std::vector<KeyRange> ranges_;
  AggregateFold* fold_;
  size_t group_{0};
  std::unique_ptr<BTreeCursor> at_;
  std::vector<FamilyOfId> families_;  // by id
  std::vector<KeyRange> wanted_;      // of what stands behind the row key, ascending
  bool wants_all_{false};             // ... that is all there is
  bool reads_timestamps_{false};
  ScanStats stats_;

  size_t range_at_{0};
  bool started_{false};
  bool ended_{false};
  size_t shared_{0};     // of the entry at hand and the one before it
  size_t row_bytes_{0};  // of the row before it
  bool in_row_{false};   // ... there is one
  size_t wanted_at_{0};  // what is wanted before it ends before the column at hand
  size_t column_bytes_{0};
  size_t family_bytes_{0};
  size_t text_bytes_{0};
  const FamilyOfId* family_{nullptr};
  bool column_taken_{false};
  bool column_done_{false};
  uint64_t rank_{0};
  uint64_t versions_{0};
  uint32_t misses_{0};  // entries in a row that nobody took
  std::vector<uint32_t> takers_;
  PlainValue plain_;
  std::string seek_key_;
};

}  // namespace cellar
