// See leaf_fold.h.
#include "engine/aggregate/leaf_fold.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/keys/timestamp.h"

namespace cellar {
namespace {

// So many entries that nobody takes are stepped over before a seek: it costs as much as ten steps
// in a large tree, and comes back each time.
constexpr uint32_t kMissesBeforeSeek{16};
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
  if (!shape.takes_all_rows || shape.plan == nullptr) return false;
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
                   AggregateFold* fold)
    : view_(&view), choice_(cells.choice), ranges_(std::move(ranges)), fold_(fold) {
  const auto& families = choice_.columns.families();
  ended_ = families.empty() || ranges_.empty();
  if (ended_) return;
  group_ = view.schema().families[families[0].index].group;
  stats_.groups = 1;
  plain_.SetWanted(fold_->WantsValues());
  for (const ColumnSet::Family& family : families) {
    std::string id;
    PutFamilyId(&id, view.schema().families[family.index].id);
    if (family.whole) {
      wanted_.push_back(PrefixRange(id));
      continue;
    }
    for (const KeyRange& range : family.ranges) {
      KeyRange& wanted = wanted_.emplace_back();
      wanted.begin.bytes = id + range.begin.bytes;
      if (range.end.at_end)
        wanted.end = Successor(id);
      else
        wanted.end = {id + range.end.bytes, false};
    }
  }
  std::sort(wanted_.begin(), wanted_.end(),
            [](const KeyRange& a, const KeyRange& b) { return a.begin < b.begin; });
  wants_all_ = TakesAllOf(view.schema(), group_, families);
  Reattach(view);
}

void LeafFold::PrepareFamilies() {
  families_.clear();
  reads_timestamps_ = !choice_.time.all() || fold_->wants_timestamps();
  for (const ColumnSet::Family& columns : choice_.columns.families()) {
    const FamilySchema& schema = view_->schema().families[columns.index];
    if (families_.size() <= schema.id) families_.resize(schema.id + size_t{1});
    families_[schema.id] = {.selected = true,
                            .index = columns.index,
                            .columns = &columns,
                            .schema = &schema,
                            .all_live = view_->all_live(schema)};
  }
}

void LeafFold::Reattach(const ReadView& view) {
  if (ended_) return;
  view_ = &view;
  const size_t family_index = family_ == nullptr ? 0 : family_->index;
  PrepareFamilies();
  if (family_ != nullptr) family_ = &families_[view.schema().families[family_index].id];
  std::string key;
  if (started_) key = at_->key();
  at_.reset();
  at_ = std::make_unique<BTreeCursor>(view.MakeCursor(group_));
  if (!started_) return;
  at_->Seek(key);
  CELLAR_ASSERT(at_->valid() && at_->key() == key);
}

// Moves to the first entry of the range at hand or, if that has none, of a later one.
bool LeafFold::EnterRange() {
  for (; range_at_ < ranges_.size(); ++range_at_) {
    const KeyRange& range = ranges_[range_at_];
    if (range.begin.at_end) continue;
    at_->Seek(range.begin.bytes);
    shared_ = 0;
    in_row_ = false;
    if (!at_->valid()) return false;
    if (range.end.at_end || at_->key() < range.end.bytes) return true;
  }
  return false;
}

// A row begins at the cursor. False if it lies outside the ranges: then the cursor has moved to
// where the next range begins, or nothing is left.
bool LeafFold::BeginRow() {
  const std::string_view key = at_->key();
  const KeyRange* range = &ranges_[range_at_];
  if (!range->end.at_end && key >= range->end.bytes) {
    while (++range_at_ < ranges_.size()) {
      range = &ranges_[range_at_];
      if (range->end.at_end || key < range->end.bytes) break;
    }
    if (range_at_ == ranges_.size()) {
      ended_ = true;
      return false;
    }
    if (key < range->begin.bytes) {
      if (!EnterRange()) ended_ = true;
      return false;
    }
  }
  row_bytes_ = view_->schema().key.EncodedSize(key);
  CELLAR_ASSERT(row_bytes_ > 0);
  in_row_ = true;
  column_bytes_ = SIZE_MAX;
  family_ = nullptr;
  wanted_at_ = 0;
  ++stats_.rows;
  fold_->BeginRow();
  return true;
}

// What the key has in common with the entry before is not decoded again: family and qualifier are
// read only as far as they are new. column_bytes_ is set for columns that nobody takes too, as what
// can be passed over: the whole family if that is not selected.
void LeafFold::BeginColumn(size_t shared_bytes) {
  const std::string_view key = at_->key();
  column_taken_ = false;
  column_done_ = false;
  rank_ = 0;
  versions_ = 0;
  const FamilyOfId* const before = family_;
  const size_t family_bytes_before = family_bytes_;
  if (before == nullptr || shared_bytes < family_bytes_) {
    uint32_t id = 0;
    const size_t id_bytes = DecodeFamilyId(key.substr(row_bytes_), &id);
    CELLAR_ASSERT(id_bytes > 0);
    family_bytes_ = row_bytes_ + id_bytes;
    family_ = id < families_.size() && families_[id].selected ? &families_[id] : nullptr;
    if (family_ == nullptr) {
      column_bytes_ = family_bytes_;  // all of the family is passed over
      return;
    }
  }
  // What is inside of the text that it shares with the column before need not be looked at again.
  const bool shares = before == family_ && family_bytes_before == family_bytes_ &&
                      shared_bytes > family_bytes_ && text_bytes_ != Order::kNoText;
  const std::string_view rest = key.substr(family_bytes_);
  const size_t qualifier_bytes = family_->schema->order.EncodedSize(
      rest, shares ? std::min(shared_bytes - family_bytes_, text_bytes_) : 0, &text_bytes_);
  CELLAR_ASSERT(qualifier_bytes > 0);
  column_bytes_ = family_bytes_ + qualifier_bytes;
  const std::string_view qualifier = rest.substr(0, qualifier_bytes);
  const ColumnSet::Family& columns = *family_->columns;
  const bool selected = columns.whole || std::any_of(columns.ranges.begin(), columns.ranges.end(),
                                                     [&](const KeyRange& range) {
                                                       return range.contains(qualifier);
                                                     });
  if (!selected) return;
  fold_->FindTakers(family_->index, qualifier, &takers_);
  column_taken_ = !takers_.empty();
}

// The tests that CellStream makes, in the same order: rank counts every stored version, then
// retention drops, then TIME and the number of versions choose. column_done_ means that no older
// version of the column can pass.
void LeafFold::FoldCell() {
  CELLAR_ASSERT(family_ != nullptr);  // its column is taken
  const std::string_view key = at_->key();
  const std::string_view value = at_->value();
  ++rank_;
  ++stats_.cells;
  stats_.bytes += key.size() + value.size();
  CellValue cell;
  if (!DecodeCellValue(value, &plain_, &cell))
    return;  // checksums guard the files, asserts the trees
  int64_t timestamp = 0;
  if (reads_timestamps_ || !family_->all_live) [[unlikely]] {
    if (!LoadTimestamp(key.substr(column_bytes_), &timestamp)) return;
    if (timestamp < choice_.time.min_micros) {
      column_done_ = true;
      return;
    }
    if (!family_->all_live) {
      const RetentionPolicy& policy = family_->schema->policy;
      if (policy.Drops(rank_, timestamp, view_->now_micros())) {
        if (rank_ > policy.rank_kept_max()) column_done_ = true;
        return;
      }
      if (cell.expiry_micros <= view_->now_micros()) return;
    }
    if (timestamp > choice_.time.max_micros) return;
  }
  if (++versions_ >= choice_.versions_max) column_done_ = true;
  misses_ = 0;
  fold_->SetRowKey(key.substr(0, row_bytes_));
  fold_->AddTo(takers_, family_->index, key.substr(family_bytes_, column_bytes_ - family_bytes_),
               timestamp, cell.type, cell.stored);
}

// To what may be taken, of this row or, if that has no more, of the next.
void LeafFold::SeekWanted() {
  const std::string_view key = at_->key();
  const std::string_view rest = key.substr(row_bytes_);
  misses_ = 0;
  const auto next = std::find_if(wanted_.begin(), wanted_.end(), [&](const KeyRange& range) {
    return range.end.at_end || rest < range.end.bytes;
  });
  if (next != wanted_.end() && rest >= next->begin.bytes) {
    // Among wanted ones: an old version, of a column with many.
    if (!column_done_) {
      at_->Next();
      shared_ = at_->shared_with_last();
      return;
    }
    const KeyBound end = Successor(key.substr(0, column_bytes_));
    seek_key_ = end.bytes;
    CELLAR_ASSERT(!end.at_end);  // a family's id is not ff
  } else if (next != wanted_.end()) {
    seek_key_.assign(key.substr(0, row_bytes_));
    seek_key_ += next->begin.bytes;
  } else {
    const KeyBound end = Successor(key.substr(0, row_bytes_));
    if (end.at_end) {
      at_->SeekLast();
      at_->Next();
      return;
    }
    seek_key_ = end.bytes;
  }
  const std::string row(key.substr(0, row_bytes_));
  at_->Seek(seek_key_);
  shared_ = at_->valid() && at_->key().starts_with(row) ? row_bytes_ : 0;
  family_ = nullptr;
  column_bytes_ = SIZE_MAX;
}

bool LeafFold::PassUnwanted() {
  const std::string_view rest = at_->key().substr(row_bytes_);
  for (; wanted_at_ < wanted_.size(); ++wanted_at_) {
    const KeyRange& range = wanted_[wanted_at_];
    if (!range.end.at_end && rest >= range.end.bytes) continue;
    if (rest >= range.begin.bytes) return false;
    // What the next entry shares it shares with this one, whose name is not known then.
    family_ = nullptr;
    column_bytes_ = SIZE_MAX;
    Advance();
    return true;
  }
  CellStream::StepOver(*at_, row_bytes_);
  shared_ = 0;
  misses_ = 0;
  return true;
}

void LeafFold::Advance() {
  if (++misses_ > kMissesBeforeSeek && in_row_) [[unlikely]]
    return SeekWanted();
  at_->Next();
  shared_ = at_->shared_with_last();
}

// One entry of the tree a round. What it shares with the entry before says whether a row or a
// column begins, so most keys are not looked at.
bool LeafFold::Pull(uint64_t cells) {
  if (ended_) return true;
  if (!started_) {
    started_ = true;
    if (!EnterRange()) ended_ = true;
  }
  for (; !ended_; --cells) {
    if (!at_->valid()) break;
    if (cells == 0) return false;
    const bool begins_row = !in_row_ || shared_ < row_bytes_;
    if (begins_row && !BeginRow()) continue;
    if (begins_row || shared_ < column_bytes_) {
      if (!wants_all_ && PassUnwanted()) continue;
      BeginColumn(begins_row ? 0 : shared_);
    }
    if (column_taken_ && !column_done_) FoldCell();
    Advance();
  }
  ended_ = true;
  return true;
}

}  // namespace cellar
