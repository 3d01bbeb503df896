// Walking over ranges of rows, forwards and backwards.
#include "engine/scans/table_scan.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/scans/scan_ranges.h"
#include "engine/schema/column_set.h"

namespace cellar {

namespace {

// A closed scan with more of them is not kept: it was a large request.
constexpr size_t kRangesKeptMax{16};

Status CompileRow(const TableSchema& schema, const RowSelector& row, KeyRange* range) {
  switch (row.kind) {
    case RowSelector::Kind::kPrefix: {
      ASSIGN_OR_RETURN(*range, schema.key.EncodePrefix(row.first));
      break;
    }
    case RowSelector::Kind::kRange: {
      ASSIGN_OR_RETURN(*range, EncodeRange(schema.key, row.first, row.second));
      break;
    }
    case RowSelector::Kind::kRow: {
      range->begin.bytes.clear();
      range->begin.at_end = false;
      RETURN_IF_ERROR(EncodeRowKey(schema, row.first, &range->begin.bytes));
      AssignSuccessor(range->begin.bytes, &range->end);
      break;
    }
  }
  return Status::Ok();
}

}  // namespace

// PREFIX, RANGE and single rows all become ranges of encoded keys, in order and without overlap: a
// row that two of them name is read once.
Status CompileRows(const TableSchema& schema, const Tablets* clamp,
                   const std::vector<RowSelector>& rows, std::vector<KeyRange>* ranges) {
  ranges->resize(std::max<size_t>(1, rows.size()));
  if (rows.empty()) ranges->front() = KeyRange{};
  for (size_t i = 0; i < rows.size(); ++i) {
    RETURN_IF_ERROR(CompileRow(schema, rows[i], &(*ranges)[i]));
  }
  MergeRanges(ranges);
  if (clamp != nullptr) [[unlikely]]
    KeepCommon(clamp->owned(), ranges);
  return Status::Ok();
}

Status CheckEach(const TableSchema& schema, const RowOptions& rows) {
  const size_t components = schema.key.components().size();
  if (!rows.each || rows.each->components <= components) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "EACH " + FormatUint64(rows.each->components) +
                                            " is out of range: the key " +
                                            Quote(schema.key.spec()) + " has " +
                                            FormatUint64(components) +
                                            (components == 1 ? " component" : " components"));
}

Status TableScan::Open(std::unique_ptr<ReadView> view, const RowOptions& rows,
                       const CellOptions& cells, const ScanPosition* from, uint64_t seed) {
  owned_view_ = std::move(view);
  return Open(owned_view_.get(), rows, cells, from, seed);
}

Status TableScan::Open(ReadView* view, const RowOptions& rows, const CellOptions& cells,
                       const ScanPosition* from, uint64_t seed) {
  CELLAR_ASSERT(view_ == nullptr);
  view_ = view;
  seed_ = seed;
  return Compile(rows, cells, from);
}

TableScan* TableScan::Close() {
  reader_.Unbind();
  const bool keeps = owned_view_ != nullptr && !owned_view_->detached() && where_.empty() &&
                     plan_.filter == nullptr && ranges_.capacity() <= kRangesKeptMax;
  view_ = nullptr;
  return keeps ? this : nullptr;
}

// Whatever can be refused is refused here: Next() has no errors. The scan may be one that was used
// before, so the state that it was left in is set anew. What a filter says of row keys narrows the
// ranges.
Status TableScan::Compile(const RowOptions& rows, const CellOptions& cells,
                          const ScanPosition* from) {
  const TableSchema& schema = view_->schema();
  RETURN_IF_ERROR(CompileRows(schema, view_->clamp(), rows.rows, &ranges_));
  RETURN_IF_ERROR(CheckEach(schema, rows));
  // Single rows: there are no more of them than are named.
  const bool all_single =
      !rows.rows.empty() && std::all_of(rows.rows.begin(), rows.rows.end(), [](const auto& row) {
        return row.kind == RowSelector::Kind::kRow;
      });
  rows_left_ = all_single ? rows.rows.size() : kUnlimited;
  for (const Predicate& predicate : rows.where) {
    ASSIGN_OR_RETURN(Condition condition, Condition::Compile(schema, predicate));
    if (!rows.where_elsewhere) where_.push_back(std::move(condition));
  }
  RETURN_IF_ERROR(plan_.Compile(schema, cells));
  for (Condition& condition : where_) RETURN_IF_ERROR(condition.CompileFilter(schema));
  reverse_ = rows.reverse;
  sample_ = rows.sample;
  if (plan_.rows && !plan_.rows->all()) KeepCommon(*plan_.rows, &ranges_);
  resume_.reset();
  each_.Begin(rows.each);
  if (from != nullptr) StartFrom(*from);
  budget_ = kUnlimited;
  stats_ = {};
  reader_.Bind(*view_, plan_, &budget_, &stats_, seed_);
  if (!where_.empty() && !all_single) where_ahead_.emplace(*view_, where_);
  if (!where_.empty()) {
    const std::vector<bool> groups = Groups();
    stats_.groups = static_cast<uint64_t>(std::count(groups.begin(), groups.end(), true));
  }
  range_at_ = reverse_ && !ranges_.empty() ? ranges_.size() - 1 : 0;
  started_ = false;
  ended_ = ranges_.empty();
  in_row_ = false;
  row_reported_ = false;
  cell_pending_ = false;
  return Status::Ok();
}

void TableScan::StartFrom(const ScanPosition& from) {
  if (from.seed != 0) seed_ = from.seed;
  ClipRanges(from, reverse_, &ranges_);
  if (from.inside_row) resume_ = from;
  each_.Resume(from, GroupFrontOf(from.row_key));
}

std::string_view TableScan::GroupFrontOf(std::string_view row_key) const {
  if (!each_.active()) return {};
  return row_key.substr(0, view_->schema().key.ComponentsSize(row_key, each_.components()));
}

// The next row in a range. Ranges and rows both ascend, so whichever is behind moves: the range's
// number, or the cursors to the range's begin.
bool TableScan::FindRowForward() {
  CellStream& stream = reader_.stream();
  bool found = false;
  if (each_.full() && !resume_) [[unlikely]] {
    const KeyBound behind = std::max(Successor(each_.Leave()), ranges_[0].begin);
    found = !behind.at_end && stream.SeekRowForward(behind.bytes, &row_key_);
  } else if (!started_) {
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

// The same backwards.
bool TableScan::FindRowReverse() {
  CellStream& stream = reader_.stream();
  KeyBound before = ranges_[range_at_].end;
  if (each_.full() && !resume_) {
    before = std::min(before, KeyBound{each_.Leave(), false});
  } else if (started_) {
    before = std::min(before, KeyBound{std::string(row_key_.view()), false});
  }
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
  const bool found = rows_left_ > 0 && (reverse_ ? FindRowReverse() : FindRowForward());
  started_ = true;
  if (!found) {
    ended_ = true;
    return false;
  }
  if (rows_left_ != kUnlimited) --rows_left_;
  ++stats_.rows;
  if (budget_ > 0) --budget_;
  return true;
}

bool TableScan::Passes() {
  if (where_ahead_) return where_ahead_->Hold(row_key_.view());
  return AllHold(where_, *view_, row_key_.view());
}

bool TableScan::Sampled() const { return RowIsDrawn(row_key_.view(), seed_, sample_); }

// A row is given out when its first cell has been found, which waits in cell_pending_: one without
// a cell that passes is none. The reader begins rows that WHERE or SAMPLE turn down as well, since
// its stream goes to the next row from the one begun last.
ScanStep TableScan::Next() {
  if (std::exchange(cell_pending_, false)) return ScanStep::kCell;
  for (;;) {
    if (in_row_) {
      const StreamStep step = reader_.Next(&cell_);
      if (step == StreamStep::kPause) return ScanStep::kPause;
      if (step == StreamStep::kCell) {
        if (row_reported_) return ScanStep::kCell;
        row_reported_ = true;
        cell_pending_ = true;
        if (each_.active() && !resumed_) [[unlikely]]
          each_.Count(GroupFrontOf(row_key_.view()));
        return ScanStep::kRow;
      }
      in_row_ = false;
    }
    if (ended_) return ScanStep::kEnd;
    if (budget_ == 0) return ScanStep::kPause;
    if (!FindRow()) return ScanStep::kEnd;
    CELLAR_DEBUG_ASSERT(view_->Owns(row_key_.view()));
    resumed_ = resume_ && resume_->row_key == row_key_.view();
    if (resume_ && !resumed_ && each_.full()) [[unlikely]] {
      resume_.reset();  // that row has gone, and no other one of its group is wanted
      continue;
    }
    if (!Sampled() || !Passes()) {
      resume_.reset();
      reader_.BeginRow(row_key_.view());
      continue;
    }
    reader_.BeginRow(row_key_.view());
    if (resumed_) reader_.Resume(*resume_);
    resume_.reset();
    in_row_ = true;
    row_reported_ = false;
  }
}

void TableScan::SkipRow() {
  cell_pending_ = false;
  in_row_ = false;
}

ScanPosition TableScan::PositionAtRow() const {
  ScanPosition position;
  position.seed = seed_;
  position.row_key = row_key_.view();
  position.group_rows = each_.rows_before();
  return position;
}

ScanPosition TableScan::PositionAfterRow() const {
  ScanPosition position;
  position.seed = seed_;
  if (ended_ && !in_row_) return position;
  position.row_key = row_key_.view();
  position.row_done = true;
  position.group_rows = each_.rows();
  return position;
}

ScanPosition TableScan::PositionAfterCell() const {
  ScanPosition position;
  position.row_key = row_key_.view();
  position.seed = seed_;
  position.group_rows = each_.rows();
  reader_.SavePosition(&position);
  return position;
}

ScanPosition TableScan::PositionInGroup() const {
  ScanPosition position;
  position.seed = seed_;
  position.row_key = each_.last();
  position.group_rows = each_.last_rows();
  return position;
}

std::vector<bool> TableScan::Groups() const {
  const TableSchema& schema = view_->schema();
  std::vector<bool> groups(schema.groups.size(), false);
  MarkGroupsOf(plan_.choice.columns, schema, &groups);
  for (const Condition& condition : where_) condition.MarkGroups(schema, &groups);
  return groups;
}

ScanShape TableScan::shape() const {
  return {.index_order = nullptr,
          .cells_from = "rows",
          .ranges = &ranges_,
          .plan = &plan_,
          .groups = Groups(),
          .conditions_checked = where_.size(),
          .takes_all_rows = where_.empty() && !sample_ && !each_.active(),
          .where = sample_ || each_.active() ? nullptr : &where_};
}

void TableScan::Detach() {
  if (view_->detached()) return;
  view_->Detach();
  if (where_ahead_) where_ahead_->Reattach(*view_);
  reader_.Reattach(cell_pending_ ? &cell_ : nullptr);
}

void TableScan::AddNotes(std::vector<std::string>* notes) const {
  for (const Condition& condition : where_) condition.AddNote(view_->schema(), notes);
  if (reader_.filter_text_met() > 0) notes->push_back(FilterTextNote(reader_.filter_text_met()));
}

}  // namespace cellar
