// See column_fold.h.
#include "engine/aggregate/column_fold.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// Values that are added at once.
constexpr size_t kHeldMax{64};
// A row counts as so many cells.
constexpr uint64_t kRowCells{9};

}  // namespace

ColumnFold::ColumnFold(const ReadView& view, std::span<const Column> columns, RowRanges ranges,
                       std::span<const Condition> where, AggregateFold* fold)
    : view_(&view), ranges_(std::move(ranges)), fold_(fold) {
  stats_.groups = 1;
  plain_.SetWanted(fold_->WantsValues());
  size_t taken = 0;
  for (const Column& column : columns) {
    group_ = view.schema().families[column.family].group;
    std::vector<uint32_t> takers;
    fold_->FindTakers(column.family, column.qualifier, &takers);
    if (takers.empty()) continue;
    ++taken;
    Sought* const sought = Seek(column.family, column.qualifier);
    sought->takers = std::move(takers);
    sought->text_counts = fold_->TextCounts(column.family, column.qualifier);
    sought->held.reserve(kHeldMax);
  }
  CELLAR_ASSERT(taken > 0);
  SeekConditions(where);
  rows_differ_ = taken == 1;
  flushes_rows_ = fold_->CountsRows() && !rows_differ_;
  Reattach(view);
}

// The one of that column, which may be new.
ColumnFold::Sought* ColumnFold::Seek(size_t family, std::string_view qualifier) {
  std::string tail;
  PutFamilyId(&tail, view_->schema().families[family].id);
  tail.append(qualifier);
  const auto at = std::lower_bound(
      sought_.begin(), sought_.end(), tail,
      [](const Sought& sought, const std::string& wanted) { return sought.tail < wanted; });
  if (at != sought_.end() && at->tail == tail) return &*at;
  Sought& made = *sought_.emplace(at);
  made.tail = std::move(tail);
  made.family = family;
  return &made;
}

// The last ones of `where` whose columns are of the group and ascend.
void ColumnFold::SeekConditions(std::span<const Condition> where) {
  const TableSchema& schema = view_->schema();
  const auto place = [&](const Condition::Column& column) {
    return std::pair(schema.families[column.family].id, column.qualifier);
  };
  size_t first = where.size();
  for (; first > 0; --first) {
    const auto column = where[first - 1].column();
    if (!column || schema.families[column->family].group != group_) break;
    if (first < where.size() && place(*where[first].column()) < place(*column)) break;
  }
  for (const Condition& condition : where.subspan(first)) {
    const Condition::Column column = *condition.column();
    Seek(column.family, column.qualifier)->conditions.push_back(&condition);
  }
  if (first > 0) ahead_.emplace(*view_, where.first(first));
}

void ColumnFold::Reattach(const ReadView& view) {
  view_ = &view;
  for (Sought& sought : sought_) {
    const FamilySchema& family = view.schema().families[sought.family];
    sought.walk = {family.policy, view.all_live(family), view.now_micros()};
  }
  if (ahead_) ahead_->Reattach(view);
  std::string key;
  const bool stands = started_ && !ended_;
  if (stands) key = at_->key();
  at_.reset();
  at_ = std::make_unique<BTreeCursor>(view.MakeCursor(group_));
  if (!stands) return;
  at_->Seek(key);
  CELLAR_ASSERT(at_->valid() && at_->key() == key);
}

// --- in a row

FrontStep ColumnFold::BeginFront(std::string_view key, size_t shared, size_t* front_bytes) {
  if (cells_left_ == 0 || ranges_.EndsBefore(key)) return {FrontStep::What::kStop, {}};
  cells_left_ -= std::min(cells_left_, kRowCells);
  *front_bytes = view_->schema().key.EncodedSizeBehind(in_row_ ? row_.size() : 0, shared, key);
  CELLAR_ASSERT(*front_bytes > 0);
  in_row_ = true;
  row_.Assign(key.substr(0, *front_bytes));
  ++stats_.rows;
  fold_->BeginRow();
  if (ahead_ && !ahead_->Hold(row_.view())) return {};
  sought_at_ = 0;
  row_cells_ = 0;
  row_bytes_ = 0;
  row_held_ = 0;
  return {FrontStep::What::kSeek, sought_[0].tail};
}

// The newest version mostly lives, whatever its timestamp is.
FrontStep ColumnFold::Found(std::string_view value, size_t key_bytes) {
  const Sought& sought = sought_[sought_at_];
  if (!sought.walk.keeps_newest() || CellHasFlags(value, kCellHasExpiry)) [[unlikely]] {
    asks_versions_ = true;
    return {FrontStep::What::kStop, {}};
  }
  if (!sought.takers.empty()) Examine(key_bytes + value.size());
  return Meet(&value);
}

FrontStep ColumnFold::MeetVersions() {
  const Sought& sought = sought_[sought_at_];
  column_.Assign(row_.view());
  column_.Append(sought.tail);
  ColumnWalk versions(*at_, column_.view(), sought.walk);
  while (versions.Next()) {
    if (!sought.takers.empty()) Examine(at_->key().size() + at_->value().size());
    const Fate fate = versions.fate();
    if (fate == Fate::kAllDropped) break;
    if (fate == Fate::kDropped) continue;
    const std::string_view value = at_->value();
    return Meet(&value);
  }
  return Meet(nullptr);
}

bool ColumnFold::ConditionsHold(const Sought& sought, const std::string_view* value) {
  CellValue cell;
  if (value != nullptr) ReadStoredCell(*value, &plain_asked_, &cell);
  for (const Condition* const condition : sought.conditions) {
    if (!condition->HoldsOf(value != nullptr ? &cell : nullptr)) return false;
  }
  return true;
}

FrontStep ColumnFold::Meet(const std::string_view* value) {
  Sought& sought = sought_[sought_at_];
  if (!sought.conditions.empty() && !ConditionsHold(sought, value)) {
    for (size_t i = 0; i < sought_at_; ++i) sought_[i].held.resize(sought_[i].taken);
    return {};
  }
  if (value != nullptr && !sought.takers.empty()) {
    sought.held.push_back(*value);
    ++row_held_;
  }
  if (++sought_at_ < sought_.size()) return {FrontStep::What::kSeek, sought_[sought_at_].tail};
  TakeRow();
  return {};
}

// --- rows

// A group is made when a row of it has a cell, and no row has more than one of a column.
void ColumnFold::TakeRow() {
  stats_.cells += row_cells_;
  stats_.bytes += row_bytes_;
  if (row_held_ == 0) return;
  fold_->SetRowKey(row_.view());
  if (!fold_->RowIsOfGroup()) {
    Flush();
    fold_->EnterGroup();
  }
  bool is_full = flushes_rows_;
  for (Sought& sought : sought_) {
    sought.taken = sought.held.size();
    is_full |= sought.taken == kHeldMax;
  }
  if (is_full) Flush();
}

void ColumnFold::Flush() {
  for (Sought& sought : sought_) {
    if (sought.taken == 0) continue;
    fold_->AddHeld(sought.takers, sought.text_counts, std::span(sought.held).first(sought.taken),
                   rows_differ_ ? AggregateFold::Rows::kEach : AggregateFold::Rows::kOne, &plain_);
    sought.held.erase(sought.held.begin(),
                      sought.held.begin() + static_cast<std::ptrdiff_t>(sought.taken));
    sought.taken = 0;
  }
}

// The cursor stands where a row begins, or where the pass has stopped inside of one.
bool ColumnFold::Pull(uint64_t cells) {
  if (ended_) return true;
  if (!std::exchange(started_, true)) ended_ = !ranges_.Enter(at_.get());
  cells_left_ = cells;
  while (!ended_) {
    FrontStep step;
    size_t row_bytes = 0;
    if (std::exchange(asks_versions_, false)) {
      step = MeetVersions();
      if (at_->valid() && at_->key().starts_with(row_.view())) {
        row_bytes = row_.size();
      } else {
        while (step.what == FrontStep::What::kSeek) step = Missed();
        in_row_ = false;
      }
    }
    if (at_->valid() && row_bytes == 0) {
      const RowRanges::Place place = ranges_.Reach(at_.get());
      ended_ = place == RowRanges::Place::kEnd;
      if (place != RowRanges::Place::kInside) in_row_ = false;
      if (ended_) break;
      if (cells_left_ == 0) {
        Flush();
        return false;
      }
    }
    if (at_->valid()) at_->WalkFronts(row_bytes, step, this);
    ended_ = !at_->valid();
  }
  Flush();
  return true;
}

}  // namespace cellar
