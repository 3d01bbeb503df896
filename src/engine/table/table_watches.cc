// See table_watches.h.
#include "engine/table/table_watches.h"

#include <utility>

#include "base/assert.h"

namespace cellar {

void TableWatches::NoteWatchedRow(std::string_view row_key) {
  const auto row = rows_.find(row_key);
  if (row != rows_.end()) ++row->second.changes;
  for (auto& [number, record] : records_) {
    if (record.overflows || (!record.rows.empty() && record.rows.back() == row_key)) continue;
    record.overflows = record.rows.size() == kRecordedMax;
    if (record.overflows) {
      record.rows = {};
    } else {
      record.rows.emplace_back(row_key);
    }
  }
}

uint64_t TableWatches::Record() {
  records_.try_emplace(++record_last_);
  notes_rows_ = true;
  return record_last_;
}

std::optional<std::vector<std::string>> TableWatches::TakeRecord(uint64_t number) {
  const auto record = records_.find(number);
  if (record == records_.end()) return std::nullopt;
  if (std::exchange(record->second.overflows, false)) return std::nullopt;
  return std::exchange(record->second.rows, {});
}

void TableWatches::EndRecord(uint64_t number) {
  records_.erase(number);
  notes_rows_ = !rows_.empty() || !records_.empty();
}

void TableWatches::ForgetRecords() {
  records_.clear();
  notes_rows_ = !rows_.empty();
}

void TableWatches::NoteAll() {
  Note();
  for (auto& [row_key, row] : rows_) ++row.changes;
}

uint64_t TableWatches::Watch(std::string_view row_key) {
  auto row = rows_.find(row_key);
  if (row == rows_.end()) row = rows_.emplace(row_key, Row{}).first;
  notes_rows_ = true;
  ++row->second.watchers;
  return row->second.changes;
}

void TableWatches::Unwatch(std::string_view row_key) {
  const auto row = rows_.find(row_key);
  if (row == rows_.end()) return;
  CELLAR_ASSERT(row->second.watchers > 0);
  if (--row->second.watchers == 0) rows_.erase(row);
  notes_rows_ = !rows_.empty() || !records_.empty();
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
