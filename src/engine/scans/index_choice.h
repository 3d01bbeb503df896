// IndexChoice: which index a scan takes by itself, because its WHERE binds the columns of one.
//
//   WHERE p:email EQ x                          ON 1 p:email     entries  x | rows in key order
//   WHERE a:x EQ 1  WHERE a:y EQ 2              ON 2 a:x a:y              1 2 | rows in key order
//   WHERE a:x EQ 1  WHERE a:y GT 2              ON 2 a:x a:y              1 | (2 ..| rows
//
// Where EQ binds all ON columns the entries come in the order of the rows, so nothing else of the
// scan changes: not its ranges, nor its cursors. With a range behind, or fewer columns bound, they
// come in another order: for those who do not look at it (RowOptions::reordered_max).
//
// What makes an index fit:
//   every ON column  is asked for by a condition that holds for no row without it, so that no row
//                    that the scan wants lacks an entry because it lacks a column
//   rows left out    there are none: a literal is compared with a cell of whatever type it has,
//                    and an index holds cells of one (engine/table/index.h)
//   its entries      are at most a tenth of the rows in the scan's own ranges
// Of several the one is taken that costs least: entries to be read, where each row that must be
// read besides, since the index does not cover what is asked for, counts as four.
//
// Planning descends each tree twice: a microsecond or two. Counts are exact up to some dozens, and
// else estimated from where the bounds stand in the trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/keys/order.h"
#include "engine/request/read_options.h"
#include "engine/schema/index_schema.h"
#include "engine/table/read_view.h"

namespace cellar {

struct IndexChoice {
  const IndexSchema* index{nullptr};  // null: the table is walked
  // Not for WHERE, but an index of rows in place of the table (ChooseGroup).
  bool of_rows{false};
  std::string values;  // with which each entry begins: those that EQ binds, encoded
  KeyRange entries;    // that can hold; empty: none can
  bool in_row_order{true};
  std::vector<bool> answered;  // for each of RowOptions::where: it holds for all these entries
};

// If `considered` is not null it gets a text for each index that may be seen: what speaks for or
// against it.
IndexChoice ChooseIndex(const ReadView& view, const RowOptions& rows, const CellOptions& cells,
                        std::vector<std::string>* considered);

}  // namespace cellar
