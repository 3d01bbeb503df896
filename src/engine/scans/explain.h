// Explanation: what a read is going to do, in words (CEXPLAIN). It is read off the opened scan, so
// it cannot tell anything else than what happens.
//
// The estimate walks the first few entries of the ranges; where there are more, it takes the tree's
// split keys, which stand about equally far apart, and counts those inside.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/request/read_options.h"
#include "engine/rows/scan.h"
#include "engine/table/table.h"

namespace cellar {

struct Explanation {
  std::string index;       // empty: the table is walked
  std::string cells_from;  // rows, entries, keys, nothing
  bool reverse{false};
  std::vector<std::string> groups;  // locality groups that are opened, bytewise
  // Of the keys in the tree that is walked, as RANGE takes them; values of an index between spaces,
  // the row key behind them. None: nothing is read.
  std::vector<std::pair<std::string, std::string>> bounds;
  std::vector<std::string> columns;  // "family", "family:qualifier", "family [a (b"
  std::vector<std::string> pushed;   // what became bounds of rows, columns, versions or time
  std::vector<std::string> checked;  // what is asked of every row, cell or entry instead
  // Each index that may be seen, and why it was taken or not; and which one would help.
  std::vector<std::string> considered;
  uint64_t rows_estimated{0};
  uint64_t cells_estimated{0};
};

// `scan` has been opened over `table` for `rows` and `cells`, with the families that `schema`
// shows. O(log n), about.
Explanation Explain(const Table& table, const TableSchema& schema, const Scan& scan,
                    const RowOptions& rows, const CellOptions& cells);

}  // namespace cellar
