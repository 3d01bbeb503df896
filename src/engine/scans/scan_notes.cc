// See scan_notes.h.
#include "engine/scans/scan_notes.h"

#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/schema/index_schema.h"
#include "engine/table/index.h"

namespace cellar {
namespace {

// A cell of another type than its ON column's has no place in the order of the index, so the scan
// does not find its row.
void NoteLeftOut(const Table& table, std::string_view name, std::vector<std::string>* notes) {
  const TableSchema& schema = table.schema();
  const IndexSchema* const index = schema.FindIndex(name);
  if (index == nullptr || !table.has_indexes()) return;
  const Index* const entries = table.indexes()->Find(index->id);
  if (entries == nullptr || entries->rows_left_out() == 0) return;
  std::string columns;
  for (const IndexColumn& column : index->on) {
    IndexColumn named = column;
    named.descending = false;
    columns += (columns.empty() ? "" : " or ") + Quote(IndexColumnText(schema, named));
  }
  const uint64_t rows = entries->rows_left_out();
  notes->push_back("index '" + index->name + "' leaves out " + FormatUint64(rows) +
                   (rows == 1 ? " row: its " : " rows: their ") + columns + " is of another type");
}

}  // namespace

void NoteScan(const Table& table, const Scan& scan, std::vector<std::string>* notes) {
  if (!scan.stats().index.empty()) NoteLeftOut(table, scan.stats().index, notes);
}

}  // namespace cellar
