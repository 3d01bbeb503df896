// Scan: a read of any number of rows, pulled cell by cell.
//
//   Scan scan(...);                       over the live tables
//   for (;;) switch (scan.Next()) {
//     case kRow:   scan.row_text()        a row with at least one surviving cell begins
//     case kCell:  scan.cell()            one surviving cell of it, in the order of replies
//     case kPause: the budget is used up  Detach(), go back to the loop, SetBudget(), go on
//     case kEnd:   nothing is left
//   }
//
// Rows come in key order (or reversed, or in an index's order), cells with families by name,
// qualifiers in their order, versions newest first. A scan that pauses is detached: from then on it
// reads O(1) snapshots of the trees, taken at a moment when nothing had changed since its first
// step, so that the whole read is consistent while writers go on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/order.h"
#include "engine/request/read_options.h"

namespace cellar {

class ReadView;
class TableScan;
struct RawCell;

struct ScanCell {
  std::string_view family;          // name
  std::string_view qualifier_text;  // canonical text; lives until the next Next()
  bool column_begins{false};        // the first cell of its column in this row and this call
  int64_t timestamp_micros{0};
  ValueType type{ValueType::kBytes};
  std::string_view stored;  // value in stored form; lives until the next Next()
  const std::vector<std::string>* labels{nullptr};  // null or empty: none
};

struct ScanStats {
  uint64_t rows{0};    // examined
  uint64_t cells{0};   // examined, whether they survived or not
  uint64_t bytes{0};   // of keys and values of these cells
  uint64_t groups{0};  // locality groups opened
  std::string index;   // walked instead of the table; empty: none
};

// Where a scan stands, so that another one with the same options can go on from there: what a
// cursor holds. An empty `row_key` in a started position means the end.
struct ScanPosition {
  std::string row_key;   // encoded; the next row is the first one at or behind it
  bool row_done{false};  // the row `row_key` itself has been read whole
  // Inside a row (CELLS): the last cell given out, and what the limits have counted.
  bool inside_row{false};
  std::string cell_key;  // family id, qualifier, timestamp of that cell (encoded as in the tree)
  uint64_t cells_before{0};  // survivors given out of this row so far
  uint64_t columns_before{0};
  uint64_t super_columns_before{0};
  // The index that the scan named; 0 if none: row_key is the key of an entry of just this index.
  uint64_t index_table_id{0};
  uint64_t index_id{0};
  uint64_t seed{0};  // SAMPLE and sample(): each row is drawn once in a scan; 0: not drawn yet
  // EACH: rows given out of the group that row_key is in; that row counts if it is done, or its
  // cells have been begun.
  uint64_t group_rows{0};
};

struct CellPlan;
class Condition;
class IndexOrder;

// What a scan is going to do, for CEXPLAIN. Borrows from the scan.
struct ScanShape {
  const IndexOrder* index_order{nullptr};        // null: the table is walked
  std::string_view cells_from;                   // rows, entries, keys, nothing (index_scan.h)
  const std::vector<KeyRange>* ranges{nullptr};  // of the tree that is walked
  const CellPlan* plan{nullptr};
  std::vector<bool> groups;         // locality groups that are opened, by number
  size_t conditions_of_entries{0};  // so many of WHERE are asked of entries, the others of rows
  // Of WHERE, those that are asked at all: the others hold for all that is walked.
  size_t conditions_checked{0};
  bool by_where{false};        // the index was taken for what WHERE binds
  bool reordered{false};       // and rows come in another order than that of their keys
  bool takes_all_rows{false};  // of the ranges: none is asked, drawn or counted
  // Where rows of the ranges are taken if all of these hold, and not for anything else.
  const std::vector<Condition>* where{nullptr};
};

enum class ScanStep : uint8_t { kRow, kCell, kPause, kEnd };

class Scan {
 public:
  virtual ~Scan() = default;

  virtual ScanStep Next() = 0;

  // REQUIRES: the last Next() said kRow or kCell. Canonical text of the current row's key.
  virtual std::string_view row_text() const = 0;
  // REQUIRES: the last Next() said kCell.
  const ScanCell& cell() const { return cell_; }
  // When that cell expires by itself, kNoExpiry if never. REQUIRES: CellOptions::expiries.
  virtual int64_t expiry_micros() const = 0;
  // Row and cell as they are stored, for those who fold cells: the key of the row, and of the cell
  // its family and qualifier. Each lives as long as its text (row_text, cell).
  virtual std::string_view row_key() const = 0;
  virtual const RawCell& raw_cell() const = 0;
  // What is read. Its schema is a copy once the scan is detached.
  virtual const ReadView& view() const = 0;

  // Leaves the rest of the current row: the next Next() looks for the next row.
  virtual void SkipRow() = 0;

  // Where a later scan begins with the row given out last, as if it had not been given out.
  virtual ScanPosition PositionAtRow() const = 0;
  // Where it goes on after the row (or, `inside_row`, after the cell) given out last.
  virtual ScanPosition PositionAfterRow() const = 0;
  virtual ScanPosition PositionAfterCell() const = 0;
  // Where a scan of rows behind those of this one goes on in the same group of EACH.
  virtual ScanPosition PositionInGroup() const = 0;

  // Number of cells that may be examined before Next() says kPause; kUnlimited inside EXEC.
  virtual void SetBudget(uint64_t cells) = 0;
  // Goes over to snapshots of the trees. Must be called before writers run after a kPause.
  virtual void Detach() = 0;

  // Lets go of tables and views, as if the scan were destroyed. What it returns, if anything, is
  // the scan itself, whose memory is worth keeping: it may be opened anew.
  virtual TableScan* Close() { return nullptr; }

  // Held for the request, beside views of the trees.
  virtual size_t memory_bytes() const { return 0; }
  virtual const ScanStats& stats() const = 0;
  virtual ScanShape shape() const = 0;
  // Adds what it has met so far that is most likely a surprise, one sentence each.
  virtual void AddNotes(std::vector<std::string>* notes) const = 0;

 protected:
  ScanCell cell_;
};

}  // namespace cellar
