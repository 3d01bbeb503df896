// ColumnFold: the newest cells of single columns into groups, in one pass over the rows of one
// locality group's tree.
//
//   row    | a:x | b:count | b:y | b:z |      sought: a:x   taken by SUM
//                                                     b:y   asked by WHERE, taken by AVG
//
// Columns are sought in the order of the tree (BTreeCursor::WalkFronts), those of conditions too:
// they are asked of the cell where the pass has come by. What it takes of a row is held until the
// row's last condition holds, and then until there is enough to be added at once, or another group
// begins.
//
// Conditions are asked one after the other, as far as they hold, since they count what they meet.
// Those that would be met in another order, or elsewhere, are asked ahead, with cursors of their
// own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_buffer.h"
#include "btree/btree.h"
#include "engine/aggregate/aggregate_fold.h"
#include "engine/aggregate/row_ranges.h"
#include "engine/rows/cell_stream.h"
#include "engine/rows/conditions_ahead.h"
#include "engine/rows/scan.h"
#include "engine/table/read_view.h"
#include "engine/table/version_walk.h"

namespace cellar {

class ColumnFold final : private FrontVisitor {
 public:
  // A column that the cells are chosen from.
  struct Column {
    size_t family{0};  // in TableSchema::families
    std::string_view qualifier;
  };

  // May it fold cells that are chosen so: the newest of each column, whenever it was written?
  static bool CanFold(const CellChoice& choice, const AggregateFold& fold) {
    return choice.time.all() && choice.versions_max == 1 && fold.TakesRuns();
  }
  // `view`, `where` and `fold` outlive it. The columns are all of one group, and one at least is
  // taken. REQUIRES: CanFold of how they are chosen.
  ColumnFold(const ReadView& view, std::span<const Column> columns, RowRanges ranges,
             std::span<const Condition> where, AggregateFold* fold);

  // Looks at rows for about so many cells; true at the end.
  bool Pull(uint64_t cells);
  // The view has been detached: goes on at the same place.
  void Reattach(const ReadView& view);
  const ScanStats& stats() const { return stats_; }
  // After Pull said false: the key of an entry where it goes on.
  std::string_view place() const { return at_->key(); }

 private:
  // A column, in the order of the tree.
  struct Sought {
    std::string tail;  // family id, qualifier
    size_t family{0};
    VersionWalk walk;
    std::vector<const Condition*> conditions;  // that are asked of it
    std::vector<uint32_t> takers;              // none: it is sought for conditions
    bool text_counts{false};
    std::vector<std::string_view> held;  // values, those of the row at hand behind the others
    size_t taken{0};                     // so many of other rows
  };
  Sought* Seek(size_t family, std::string_view qualifier);
  void SeekConditions(std::span<const Condition> where);
  void BindWalks();

  FrontStep BeginFront(std::string_view key, size_t shared, size_t* front_bytes) override;
  FrontStep Found(std::string_view value, size_t key_bytes) override;
  FrontStep Missed() override { return Meet(nullptr); }
  // The newest live cell of the column at hand, as it is stored; null: there is none.
  FrontStep Meet(const std::string_view* value);
  bool ConditionsHold(const Sought& sought, const std::string_view* value);
  // Looks for it among the versions at the cursor, the first of which does not tell.
  FrontStep MeetVersions();
  // A version of a column that is taken.
  void Examine(size_t bytes) {
    ++row_cells_;
    row_bytes_ += bytes;
  }
  void TakeRow();
  // Adds what is held of rows that are taken.
  void Flush();

  const ReadView* view_;
  RowRanges ranges_;
  std::optional<ConditionsAhead> ahead_;  // if there are any to be asked so
  AggregateFold* fold_;
  size_t group_{0};
  std::unique_ptr<BTreeCursor> at_;
  std::vector<Sought> sought_;
  bool flushes_rows_{false};  // it matters of which row cells are
  bool rows_differ_{false};   // ... but each is of another one
  ScanStats stats_;

  bool started_{false};
  bool ended_{false};
  bool in_row_{false};         // row_ is the one before the cursor, or at it
  bool asks_versions_{false};  // it has stopped at a column, for MeetVersions
  KeyBuffer row_;
  KeyBuffer column_;
  size_t sought_at_{0};
  uint64_t row_cells_{0};  // examined, of what may be taken of it
  uint64_t row_bytes_{0};
  size_t row_held_{0};
  uint64_t cells_left_{0};
  PlainValue plain_;        // for the fold
  PlainValue plain_asked_;  // for conditions
};

}  // namespace cellar
