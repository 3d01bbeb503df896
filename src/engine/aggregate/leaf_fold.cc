// See leaf_fold.h.
#include "engine/aggregate/leaf_fold.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// Cells of a run.
constexpr size_t kRunCells{64};
// Where a row had one cell of a family, so many of the next ones mostly do, and a run of one cell
// costs more than the cell.
constexpr uint8_t kLoneRows{31};
// Of a column with which a run begins.
constexpr size_t kUnknownBytes{SIZE_MAX};
// What is passed over in a row, where not all is wanted, or that is not taken, counts as so many
// cells.
constexpr uint64_t kPassedCells{8};
// What is known of families lies in a table by id. Only a table that has made so many has more.
constexpr uint32_t kFamilyIdMax{4'096};

bool TakesAllOf(const TableSchema& schema, size_t group,
                const std::vector<ColumnSet::Family>& chosen) {
  const auto whole = std::count_if(chosen.begin(), chosen.end(),
                                   [](const ColumnSet::Family& family) { return family.whole; });
  const auto all = std::count_if(schema.families.begin(), schema.families.end(),
                                 [&](const FamilySchema& family) { return family.group == group; });
  return whole == all;
}

}  // namespace

bool LeafFold::CanFold(const ScanShape& shape, const TableSchema& schema) {
  if (!shape.takes_all_rows && shape.where == nullptr) return false;
  if (shape.plan == nullptr) return false;
  const CellPlan& plan = *shape.plan;
  if (plan.filter != nullptr || plan.columns_skip != 0 || plan.columns_max != kUnlimited ||
      plan.super_columns_max != kUnlimited) {
    return false;
  }
  // All in one group: then one cursor meets every cell of a row.
  const auto& families = plan.choice.columns.families();
  return std::all_of(families.begin(), families.end(), [&](const ColumnSet::Family& columns) {
    const FamilySchema& family = schema.families[columns.index];
    return family.group == schema.families[families[0].index].group && family.id < kFamilyIdMax;
  });
}

// The chosen columns become ranges of what stands behind a row key, in the order of the tree: that
// of families' ids and not of their names.
LeafFold::LeafFold(const ReadView& view, const CellPlan& cells, std::vector<KeyRange> ranges,
                   std::span<const Condition> where, AggregateFold* fold)
    : view_(&view), choice_(cells.choice), ranges_(std::move(ranges)), fold_(fold) {
  const auto& families = choice_.columns.families();
  ended_ = families.empty() || ranges_.empty();
  if (ended_) return;
  group_ = view.schema().families[families[0].index].group;
  stats_.groups = 1;
  plain_.SetWanted(fold_->WantsValues());
  for (const ColumnSet::Family& family : families) {
    const FamilySchema& schema = view.schema().families[family.index];
    if (family.whole) AddWanted(schema, family.index, KeyRange{});
    for (const KeyRange& range : family.ranges) AddWanted(schema, family.index, range);
  }
  std::sort(wanted_.begin(), wanted_.end(),
            [](const Wanted& a, const Wanted& b) { return a.range.begin < b.range.begin; });
  if (MakeColumnFold(where)) return;
  wants_all_ = TakesAllOf(view.schema(), group_, families);
  PrepareFamilies();
  if (!where.empty()) where_.emplace(view, where);
  Reattach(view);
}

void LeafFold::AddWanted(const FamilySchema& family, size_t index, const KeyRange& range) {
  Wanted& wanted = wanted_.emplace_back();
  std::string id;
  PutFamilyId(&id, family.id);
  wanted.range = RangeBehind(id, range);
  const std::string& qualifier = range.begin.bytes;
  if (qualifier.empty() || family.order.EncodedSize(qualifier) != qualifier.size() ||
      range.end != Successor(qualifier))
    return;
  wanted.is_column = true;
  wanted.family = index;
  wanted.qualifier = qualifier;
  wanted.family_id = family.id;
  fold_->FindTakers(index, qualifier, &wanted.takers);
  wanted.text_counts = fold_->TextCounts(index, qualifier);
}

// Single columns are folded by somebody else, if he can.
bool LeafFold::MakeColumnFold(std::span<const Condition> where) {
  if (!ColumnFold::CanFold(choice_, *fold_)) return false;
  std::vector<ColumnFold::Column> columns;
  bool taken = false;
  for (const Wanted& wanted : wanted_) {
    if (!wanted.is_column) return false;
    columns.push_back({wanted.family, wanted.qualifier});
    taken |= !wanted.takers.empty();
  }
  if (!taken) return false;
  columns_ = std::make_unique<ColumnFold>(*view_, columns, std::move(ranges_), where, fold_);
  return true;
}

// Only where the newest version of each column is kept, and nobody asks when it was written, do its
// cells come by runs: then they live unless they expire by themselves.
void LeafFold::PrepareFamilies() {
  reads_timestamps_ = !choice_.time.all() || !fold_->TakesRuns();
  for (const ColumnSet::Family& columns : choice_.columns.families()) {
    const FamilySchema& schema = view_->schema().families[columns.index];
    if (families_.size() <= schema.id) families_.resize(schema.id + size_t{1});
    FamilyOfId& family = families_[schema.id];
    family.selected = true;
    family.index = columns.index;
    family.columns = &columns;
    family.schema = &schema;
    family.walk = {schema.policy, view_->all_live(schema), view_->now_micros()};
    family.alike = fold_->ColumnsAreAlike(columns.index);
    if (!family.alike) continue;
    fold_->FindTakers(columns.index, {}, &family.takers);
    family.text_counts = fold_->TextCounts(columns.index, {});
    family.by_runs =
        columns.whole && !family.takers.empty() && !reads_timestamps_ && family.walk.keeps_newest();
  }
}

// Families are copied when a view is detached; walks may be in the midst of a column.
void LeafFold::Reattach(const ReadView& view) {
  if (ended_) return;
  view_ = &view;
  if (columns_ != nullptr) return columns_->Reattach(view);
  for (FamilyOfId& family : families_) {
    if (!family.selected) continue;
    family.schema = &view.schema().families[family.index];
    family.walk.Rebind(family.schema->policy);
  }
  if (where_) where_->Reattach(view);
  std::string key;
  if (started_) key = at_->key();
  at_.reset();
  at_ = std::make_unique<BTreeCursor>(view.MakeCursor(group_));
  if (!started_) return;
  at_->Seek(key);
  CELLAR_ASSERT(at_->valid() && at_->key() == key);
}

// A row begins at the cursor. False if it lies outside the ranges: then the cursor has moved to
// where the next range begins, or nothing is left.
bool LeafFold::BeginRow() {
  if (const RowRanges::Place place = ranges_.Reach(at_.get()); place != RowRanges::Place::kInside) {
    ended_ = place == RowRanges::Place::kEnd;
    in_row_ = false;
    return false;
  }
  const std::string_view key = at_->key();
  row_bytes_ = view_->schema().key.EncodedSizeBehind(in_row_ ? row_bytes_ : 0, shared_, key);
  CELLAR_ASSERT(row_bytes_ > 0);
  in_row_ = true;
  column_bytes_ = SIZE_MAX;
  family_ = nullptr;
  wanted_at_ = 0;
  wanted_reached_ = false;
  ++stats_.rows;
  if (where_ && !where_->Hold(key.substr(0, row_bytes_))) {
    LeaveRow();
    return false;
  }
  fold_->BeginRow();
  return true;
}

// What the key has in common with the entry before is not decoded again: family and qualifier are
// read only as far as they are new. A family that is not selected is passed over as one column.
void LeafFold::BeginColumn(size_t shared_bytes) {
  const std::string_view key = at_->key();
  FamilyOfId* family = family_;
  const size_t family_bytes_before = family_bytes_;
  if (family == nullptr || shared_bytes < family_bytes_) {
    uint32_t id = 0;
    const size_t id_bytes = DecodeFamilyId(key.substr(row_bytes_), &id);
    CELLAR_ASSERT(id_bytes > 0);
    family_bytes_ = row_bytes_ + id_bytes;
    if (id >= families_.size() || !families_[id].selected) {
      family_ = nullptr;
      column_bytes_ = family_bytes_;
      column_taken_ = false;
      return;
    }
    family = &families_[id];
  }
  const bool is_first = family_ == nullptr;  // that is taken of the row
  if (family->by_runs && is_first && lone_rows_ > 0) {
    --lone_rows_;
  } else if (family->by_runs) {
    column_bytes_ = kUnknownBytes;
    text_bytes_ = Order::kNoText;
    return EnterColumn(family, family->takers, family->text_counts);
  }
  // What is inside of the text that it shares with the column before need not be looked at again.
  const bool shares = family == family_ && family_bytes_before == family_bytes_ &&
                      shared_bytes > family_bytes_ && text_bytes_ != Order::kNoText;
  const std::string_view rest = key.substr(family_bytes_);
  const size_t qualifier_bytes = family->schema->order.EncodedSize(
      rest, shares ? std::min(shared_bytes - family_bytes_, text_bytes_) : 0, &text_bytes_);
  CELLAR_ASSERT(qualifier_bytes > 0);
  column_bytes_ = family_bytes_ + qualifier_bytes;
  if (family->alike) return EnterColumn(family, family->takers, family->text_counts);
  const std::string_view qualifier = rest.substr(0, qualifier_bytes);
  fold_->FindTakers(family->index, qualifier, &own_takers_);
  EnterColumn(family, own_takers_, fold_->TextCounts(family->index, qualifier));
}

void LeafFold::EnterColumn(FamilyOfId* family, const std::vector<uint32_t>& takers,
                           bool text_counts) {
  family_ = family;
  family->walk.BeginColumn();
  takers_ = &takers;
  text_counts_ = text_counts;
  column_taken_ = !takers.empty();
  column_done_ = false;
  versions_ = 0;
}

// As CellStream does: what is live, then TIME and the number of versions choose. column_done_ means
// that no older version of the column can pass.
void LeafFold::FoldCell() {
  CELLAR_ASSERT(family_ != nullptr);  // its column is taken
  const std::string_view key = at_->key();
  const std::string_view value = at_->value();
  family_->walk.Count();
  ++stats_.cells;
  stats_.bytes += key.size() + value.size();
  if (!reads_timestamps_ && family_->walk.ignores_timestamp()) {
    (void)StoredTimestamp(key.substr(column_bytes_));  // what is none ends the process
    if (!Lives(value)) return;
    if (++versions_ >= choice_.versions_max) column_done_ = true;
    fold_->SetRowKey(key.substr(0, row_bytes_));
    fold_->AddRun(*takers_, text_counts_, {&value, 1}, &plain_);
    return;
  }
  CellValue cell;
  ReadStoredCell(value, &plain_, &cell);
  const int64_t timestamp = StoredTimestamp(key.substr(column_bytes_));
  if (timestamp < choice_.time.min_micros) {
    column_done_ = true;
    return;
  }
  if (const Fate fate = family_->walk.FateOf(timestamp, cell.expiry_micros); fate != Fate::kLive) {
    column_done_ = fate == Fate::kAllDropped;
    return;
  }
  if (timestamp > choice_.time.max_micros) return;
  if (++versions_ >= choice_.versions_max) column_done_ = true;
  fold_->SetRowKey(key.substr(0, row_bytes_));
  fold_->AddTo(*takers_, family_->index, key.substr(family_bytes_, column_bytes_ - family_bytes_),
               timestamp, cell.type, cell.stored);
}

// Of the version at hand, whose timestamp does not matter.
bool LeafFold::Lives(std::string_view value) const {
  if (!CellHasFlags(value, kCellHasExpiry)) [[likely]]
    return true;
  CellValue head;
  ReadStoredHead(value, &head);
  return family_->walk.FateOf(0, head.expiry_micros) == Fate::kLive;
}

// A timestamp is at the end of a key, so two keys that differ ahead of the longest one are of two
// columns, and the names need not be looked at.
void LeafFold::FoldRun(uint64_t* cells) {
  CELLAR_ASSERT(family_ != nullptr);  // its column is taken
  std::array<std::string_view, kRunCells> values;
  values[0] = at_->value();
  const size_t key_bytes = at_->key().size();
  const BTreeCursor::Run run = at_->NextRun(
      family_bytes_, family_bytes_ + family_->schema->order.fixed_bytes(), kTimestampBytesMax,
      std::span(values).subspan(1, std::min<uint64_t>(kRunCells, *cells) - 1));
  *cells -= run.entries;
  if (run.entries == 0) lone_rows_ = kLoneRows;
  const std::span<std::string_view> all = std::span(values).first(1 + run.entries);
  uint8_t heads = 0;
  size_t bytes = key_bytes + run.key_bytes;
  for (const std::string_view value : all) {
    CELLAR_DEBUG_ASSERT(!value.empty());
    heads |= static_cast<uint8_t>(value[0]);
    bytes += value.size();
  }
  stats_.cells += all.size();
  stats_.bytes += bytes;
  // The column at hand is now that of the last one, and the one whose key is looked at.
  const std::string_view last = at_->key().substr(family_bytes_);
  const size_t qualifier_bytes = family_->schema->order.EncodedSize(last);
  CELLAR_ASSERT(qualifier_bytes > 0);
  column_bytes_ = family_bytes_ + qualifier_bytes;
  (void)StoredTimestamp(last.substr(qualifier_bytes));
  family_->walk.BeginColumn();
  family_->walk.Count();
  const bool last_lives = Lives(all.back());
  versions_ = last_lives ? 1 : 0;
  column_done_ = versions_ >= choice_.versions_max;
  shared_ = family_bytes_;
  size_t live = all.size();
  if ((heads & kCellHasExpiry) != 0) [[unlikely]] {
    const auto dead = [&](std::string_view value) { return !Lives(value); };
    live -= static_cast<size_t>(all.end() - std::remove_if(all.begin(), all.end(), dead));
  }
  if (live == 0) return;
  fold_->SetRowKey(at_->key().substr(0, row_bytes_));
  fold_->AddRun(*takers_, text_counts_, all.first(live), &plain_);
}

void LeafFold::LeaveRow() {
  at_->Leave(row_bytes_);
  shared_ = at_->shared_with_last();
}

// A column that is met as the target itself is known; any other one is read as it comes.
bool LeafFold::ReachWanted() {
  for (; wanted_at_ < wanted_.size(); ++wanted_at_, wanted_reached_ = false) {
    const Wanted& wanted = wanted_[wanted_at_];
    const KeyBound& end = wanted.range.end;
    if (!wanted_reached_) {
      wanted_reached_ = true;
      target_.Assign(at_->key().substr(0, row_bytes_));
      target_.Append(wanted.range.begin.bytes);
      const size_t shared = at_->SeekForward(target_.view());
      if (shared < row_bytes_) {
        shared_ = shared;
        return false;
      }
      shared_ = row_bytes_;
      family_ = nullptr;
      if (wanted.is_column && shared == target_.size()) {
        FamilyOfId& family = families_[wanted.family_id];
        family_bytes_ = row_bytes_ + FamilyIdBytes(wanted.family_id);
        column_bytes_ = shared;
        text_bytes_ = Order::kNoText;
        EnterColumn(&family, wanted.takers, wanted.text_counts);
        return true;
      }
    }
    if (wanted.is_column) continue;
    if (end.at_end || at_->key().substr(row_bytes_) < end.bytes) {
      BeginColumn(shared_);
      return true;
    }
  }
  LeaveRow();
  return false;
}

void LeafFold::Advance() {
  const bool done = !column_taken_ || column_done_;
  if (done && !wants_all_ && wanted_[wanted_at_].is_column && wanted_at_ + 1 == wanted_.size())
    return LeaveRow();
  if (done && shared_ >= column_bytes_)
    at_->Leave(column_bytes_);  // an older version, which others follow
  else
    at_->Next();
  shared_ = at_->shared_with_last();
}

// One entry of the tree a round. What it shares with the entry before says whether a row or a
// column begins, so most keys are not looked at.
bool LeafFold::Pull(uint64_t cells) {
  if (ended_) return true;
  if (columns_ != nullptr) return columns_->Pull(cells);
  if (!started_) {
    started_ = true;
    ended_ = !ranges_.Enter(at_.get());
  }
  for (; !ended_; --cells) {
    if (!at_->valid()) break;
    if (cells == 0) return false;
    const bool begins_row = !in_row_ || shared_ < row_bytes_;
    if (begins_row && !BeginRow()) {
      if (where_) cells -= std::min(cells - 1, kPassedCells);
      continue;
    }
    if (begins_row && !wants_all_) cells -= std::min(cells - 1, kPassedCells);
    const bool begins_column = begins_row || shared_ < column_bytes_;
    if (begins_column) {
      if (wants_all_)
        BeginColumn(begins_row ? 0 : shared_);
      else if (!ReachWanted())
        continue;
    }
    if (begins_column && column_bytes_ == kUnknownBytes)
      FoldRun(&cells);
    else if (column_taken_ && !column_done_)
      FoldCell();
    Advance();
  }
  ended_ = true;
  return true;
}

}  // namespace cellar
