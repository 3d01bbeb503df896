// See table_watches.h.
#include "engine/table/table_watches.h"

#include "base/assert.h"

namespace cellar {

void TableWatches::NoteWatchedRow(std::string_view row_key) {
  const auto row = rows_.find(row_key);
  if (row != rows_.end()) ++row->second.changes;
}

void TableWatches::NoteAll() {
  Note();
  for (auto& [row_key, row] : rows_) ++row.changes;
}

uint64_t TableWatches::Watch(std::string_view row_key) {
  auto row = rows_.find(row_key);
  if (row == rows_.end()) row = rows_.emplace(row_key, Row{}).first;
  ++row->second.watchers;
  return row->second.changes;
}

void TableWatches::Unwatch(std::string_view row_key) {
  const auto row = rows_.find(row_key);
  if (row == rows_.end()) return;
  CELLAR_ASSERT(row->second.watchers > 0);
  if (--row->second.watchers == 0) rows_.erase(row);
}

std::optional<uint64_t> TableWatches::RowChanges(std::string_view row_key) const {
  const auto row = rows_.find(row_key);
  if (row == rows_.end()) return std::nullopt;
  return row->second.changes;
}

std::vector<std::string> TableWatches::RowsIn(std::string_view begin, std::string_view end) const {
  std::vector<std::string> rows;
  for (auto row = rows_.lower_bound(begin); row != rows_.end(); ++row) {
    if (!end.empty() && row->first >= end) break;
    rows.push_back(row->first);
  }
  return rows;
}

TableWatches::Mark TableWatches::TakeMark(const std::vector<std::string>& rows) const {
  Mark mark{.changes = changes_};
  for (const std::string& row_key : rows) {
    const auto row = rows_.find(row_key);
    if (row != rows_.end()) mark.rows.emplace_back(row_key, row->second.changes);
  }
  return mark;
}

void TableWatches::ReturnTo(const Mark& mark) {
  changes_ = mark.changes;
  for (const auto& [row_key, changes] : mark.rows) {
    const auto row = rows_.find(row_key);
    CELLAR_ASSERT(row != rows_.end());
    row->second.changes = changes;
  }
}

}  // namespace cellar
