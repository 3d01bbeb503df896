// Walking over ranges of rows, forwards and backwards.
#include "engine/table_scan.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/column_set.h"
#include "engine/scan_ranges.h"

namespace cellar {

Result<std::vector<KeyRange>> CompileRows(const TableSchema& schema,
                                          const std::vector<RowSelector>& rows) {
  std::vector<KeyRange> ranges;
  if (rows.empty()) ranges.emplace_back();
  for (const RowSelector& row : rows) {
    switch (row.kind) {
      case RowSelector::Kind::kPrefix: {
        ASSIGN_OR_RETURN(KeyRange range, schema.key.EncodePrefix(row.first));
        ranges.push_back(std::move(range));
        break;
      }
      case RowSelector::Kind::kRange: {
        ASSIGN_OR_RETURN(KeyRange range, EncodeRange(schema.key, row.first, row.second));
        ranges.push_back(std::move(range));
        break;
      }
      case RowSelector::Kind::kRow: {
        KeyRange& range = ranges.emplace_back();
        RETURN_IF_ERROR(EncodeRowKey(schema, row.first, &range.begin.bytes));
        range.end = Successor(range.begin.bytes);
        break;
      }
    }
  }
  MergeRanges(&ranges);
  return ranges;
}

Result<std::unique_ptr<Scan>> TableScan::Create(std::unique_ptr<ReadView> view,
                                                const RowOptions& rows, const CellOptions& cells,
                                                const ScanPosition* from, uint64_t seed) {
  ReadView* borrowed = view.get();
  std::unique_ptr<TableScan> scan(new TableScan(borrowed, seed));
  scan->owned_view_ = std::move(view);
  RETURN_IF_ERROR(scan->Compile(rows, cells, from));
  return std::unique_ptr<Scan>(std::move(scan));
}

Result<std::unique_ptr<Scan>> TableScan::Create(ReadView* view, const RowOptions& rows,
                                                const CellOptions& cells, const ScanPosition* from,
                                                uint64_t seed) {
  std::unique_ptr<TableScan> scan(new TableScan(view, seed));
  RETURN_IF_ERROR(scan->Compile(rows, cells, from));
  return std::unique_ptr<Scan>(std::move(scan));
}

Status TableScan::Compile(const RowOptions& rows, const CellOptions& cells,
                          const ScanPosition* from) {
  const TableSchema& schema = view_->schema();
  ASSIGN_OR_RETURN(ranges_, CompileRows(schema, rows.rows));
  for (const Predicate& predicate : rows.where) {
    ASSIGN_OR_RETURN(Condition condition, Condition::Compile(schema, predicate));
    where_.push_back(std::move(condition));
  }
  ASSIGN_OR_RETURN(plan_, CellPlan::Compile(schema, cells));
  for (Condition& condition : where_) RETURN_IF_ERROR(condition.CompileFilter(schema));
  reverse_ = rows.reverse;
  sample_ = rows.sample;
  if (plan_.rows && !plan_.rows->all()) {
    KeyRangeSet wanted;
    for (KeyRange& range : ranges_) wanted.Add(std::move(range));
    wanted.IntersectWith(*plan_.rows);
    ranges_ = wanted.ranges();
  }
  if (from != nullptr) StartFrom(*from);
  reader_.emplace(*view_, plan_, &budget_, &stats_, seed_);
  range_at_ = reverse_ && !ranges_.empty() ? ranges_.size() - 1 : 0;
  ended_ = ranges_.empty();
  return Status::Ok();
}

void TableScan::StartFrom(const ScanPosition& from) {
  if (from.seed != 0) seed_ = from.seed;
  ClipRanges(from, reverse_, &ranges_);
  if (from.inside_row) resume_ = from;
}

bool TableScan::FindRowForward() {
  CellStream& stream = reader_->stream();
  bool found = false;
  if (!started_) {
    found = stream.SeekRowForward(ranges_[0].begin.bytes, &row_key_);
  } else {
    found = stream.NextRow(&row_key_);
  }
  while (found) {
    while (range_at_ < ranges_.size() && !ranges_[range_at_].end.at_end &&
           row_key_.view() >= ranges_[range_at_].end.bytes) {
      ++range_at_;
    }
    if (range_at_ == ranges_.size()) return false;
    const KeyBound& begin = ranges_[range_at_].begin;
    if (row_key_.view() >= begin.bytes) return true;
    found = stream.SeekRowForward(begin.bytes, &row_key_);
  }
  return false;
}

bool TableScan::FindRowReverse() {
  CellStream& stream = reader_->stream();
  KeyBound before = ranges_[range_at_].end;
  if (started_) before = std::min(before, KeyBound{std::string(row_key_.view()), false});
  for (;;) {
    if (!stream.SeekRowBefore(before, &row_key_)) return false;
    if (row_key_.view() >= ranges_[range_at_].begin.bytes) return true;
    // Behind this range: on to the one that may hold the row found, or lies before it.
    do {
      if (range_at_ == 0) return false;
      --range_at_;
    } while (row_key_.view() < ranges_[range_at_].begin.bytes);
    const KeyBound& end = ranges_[range_at_].end;
    if (end.at_end || row_key_.view() < end.bytes) return true;
    before = end;
  }
}

bool TableScan::FindRow() {
  const bool found = reverse_ ? FindRowReverse() : FindRowForward();
  started_ = true;
  if (!found) {
    ended_ = true;
    return false;
  }
  ++stats_.rows;
  if (budget_ > 0) --budget_;
  return true;
}

bool TableScan::Sampled() const { return RowIsDrawn(row_key_.view(), seed_, sample_); }

ScanStep TableScan::Next() {
  if (std::exchange(cell_pending_, false)) return ScanStep::kCell;
  for (;;) {
    if (in_row_) {
      const StreamStep step = reader_->Next(&cell_);
      if (step == StreamStep::kPause) return ScanStep::kPause;
      if (step == StreamStep::kCell) {
        if (row_reported_) return ScanStep::kCell;
        row_reported_ = true;
        cell_pending_ = true;
        row_text_ = view_->schema().key.TextOf(row_key_.view(), &row_scratch_);
        return ScanStep::kRow;
      }
      in_row_ = false;
    }
    if (ended_) return ScanStep::kEnd;
    if (budget_ == 0) return ScanStep::kPause;
    if (!FindRow()) return ScanStep::kEnd;
    const bool resumes = resume_ && resume_->row_key == row_key_.view();
    if (!Sampled() || !AllHold(where_, *view_, row_key_.view())) {
      resume_.reset();
      reader_->BeginRow(row_key_.view());
      continue;
    }
    reader_->BeginRow(row_key_.view());
    if (resumes) reader_->Resume(*resume_);
    resume_.reset();
    in_row_ = true;
    row_reported_ = false;
  }
}

void TableScan::SkipRow() {
  cell_pending_ = false;
  in_row_ = false;
}

ScanPosition TableScan::PositionAfterRow() const {
  ScanPosition position;
  position.seed = seed_;
  if (ended_ && !in_row_) return position;
  position.row_key = row_key_.view();
  position.row_done = true;
  return position;
}

ScanPosition TableScan::PositionAfterCell() const {
  ScanPosition position;
  position.row_key = row_key_.view();
  position.seed = seed_;
  reader_->SavePosition(&position);
  return position;
}

ScanShape TableScan::shape() const {
  return {.index_order = nullptr, .cells_from = "rows", .ranges = &ranges_, .plan = &plan_};
}

void TableScan::Detach() {
  if (view_->detached()) return;
  view_->Detach();
  reader_->Reattach();
}

}  // namespace cellar
