// What of a read the entries of an index can answer, so that the table need not be read: the cells
// that are asked for, and conditions.
//
// Both stand on what an entry holds at the moment of the view. It is there while its ON values are
// the newest live versions of their columns; and with INCLUDE it holds the newest live version of
// each included column and of each ON column, or none where there is none. A condition asks for
// just that version, so it may be asked of the entry.
#pragma once

#include <string>
#include <vector>

#include "engine/request/read_options.h"
#include "engine/rows/condition.h"
#include "engine/schema/column_set.h"
#include "engine/schema/index_schema.h"
#include "engine/table/read_view.h"

namespace cellar {

// The columns whose newest versions an entry tells, in table order: those that it holds with
// INCLUDE; without, the ON columns, whose values are its key. None for an index of qualifiers.
std::vector<IndexColumn> EntryColumns(const TableSchema& schema, const IndexSchema& index);

// Are all of these columns, as far as they go, among `held`?
bool HoldsAll(const TableSchema& schema, const std::vector<IndexColumn>& held,
              const ColumnSet& columns);

// Is the condition one that an entry answers, which tells of the columns `held`?
bool AnswersCondition(const TableSchema& schema, const IndexSchema& index,
                      const std::vector<IndexColumn>& held, const Condition& condition);

// Is an entry enough to know that its row has a live cell among `columns` that may be read?
bool TellsOfRow(const ReadView& view, const IndexSchema& index, const ColumnSet& columns);

// The index of rows that gives what a scan without INDEX asks for, and is smaller than the groups
// of the table that would be read; the smallest one. Null if there is none.
const IndexSchema* ChooseGroup(const ReadView& view, const RowOptions& rows,
                               const CellOptions& cells);

// Would entries of the index give the cells that are asked for, so that the table is not read?
bool CoversCells(const ReadView& view, const IndexSchema& index, const ColumnSet& columns,
                 const RowOptions& rows, const CellOptions& cells);

}  // namespace cellar
