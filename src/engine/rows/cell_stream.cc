// Moving over rows, ranges, columns and versions.
#include "engine/rows/cell_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "engine/keys/timestamp.h"

namespace cellar {
namespace {

// To the first entry behind everything that begins with `prefix`.
void SeekBehind(BTreeCursor& at, std::string_view prefix) {
  const KeyBound end = Successor(prefix);
  if (!end.at_end) {
    at.Seek(end.bytes);
    return;
  }
  at.SeekLast();
  if (at.valid()) at.Next();
}

}  // namespace

CellStream::CellStream() = default;
CellStream::~CellStream() = default;

// Opens the groups that a chosen family is in and no other. group_index_ leads from a group's
// number to its cursor, and is empty for a table with one group.
void CellStream::Bind(const ReadView& view, const CellChoice& choice, uint64_t* budget,
                      ScanStats* stats) {
  view_ = &view;
  choice_ = &choice;
  budget_ = budget;
  stats_ = stats;
  family_ = nullptr;
  plain_.SetWanted(choice.values);
  row_entered_ = false;
  groups_.clear();
  group_index_.clear();
  const TableSchema& schema = view.schema();
  constexpr size_t kNone{std::numeric_limits<size_t>::max()};
  if (schema.groups.size() > 1) {
    group_index_.assign(schema.groups.size(), kNone);
    for (const ColumnSet::Family& columns : choice.columns.families()) {
      const size_t number = schema.families[columns.index].group;
      if (group_index_[number] != kNone) continue;
      group_index_[number] = groups_.size();
      groups_.emplace_back(number, view);
    }
  } else if (!choice.columns.families().empty()) {
    groups_.emplace_back(0, view);
  }
  stats_->groups = groups_.size();
  const auto& families = choice.columns.families();
  several_ranges_ = families.size() > 1 || (families.size() == 1 && families[0].ranges.size() > 1);
}

void CellStream::Unbind() {
  groups_.clear();
  view_ = nullptr;
  choice_ = nullptr;
  plain_.Trim();
}

CellStream::Group& CellStream::GroupOf(const FamilySchema& family) {
  return groups_.size() == 1 ? groups_[0] : groups_[group_index_[family.group]];
}

// --- rows

// Groups are trees of their own, so the next row is the smallest key that any of their cursors
// stands on.
bool CellStream::LowestRow(KeyBuffer* row_key) {
  const Group* lowest = nullptr;
  for (const Group& group : groups_) {
    if (!group.at.valid()) continue;
    if (lowest == nullptr || group.at.key() < lowest->at.key()) lowest = &group;
  }
  if (lowest == nullptr) return false;
  const std::string_view key = lowest->at.key();
  const size_t row_bytes = view_->schema().key.EncodedSize(key);
  CELLAR_ASSERT(row_bytes > 0);
  row_key->Assign(key.substr(0, row_bytes));
  return true;
}

bool CellStream::SeekRowForward(std::string_view from, KeyBuffer* row_key) {
  for (Group& group : groups_) group.at.Seek(from);
  return LowestRow(row_key);
}

// A cursor that has not reached the end of the row yet steps over the rest of it; one that is past
// it stays where it is.
bool CellStream::NextRow(KeyBuffer* row_key) {
  const std::string_view row = row_key_.view();
  for (Group& group : groups_) {
    if (choice_->direction == ColumnDirection::kReverse) {
      SeekBehind(group.at, row);  // reading backwards may have left the row at its front
    } else if (group.at.valid() && group.at.key().starts_with(row)) {
      group.at.Leave(row.size());
    }
  }
  return LowestRow(row_key);
}

// Backwards: the largest row below the bound, over all groups; then each cursor goes to that row's
// front.
bool CellStream::SeekRowBefore(const KeyBound& before, KeyBuffer* row_key) {
  bool found = false;
  for (Group& group : groups_) {
    if (before.at_end) {
      group.at.SeekLast();
    } else {
      group.at.SeekBefore(before.bytes);
    }
    if (!group.at.valid()) continue;
    const std::string_view key = group.at.key();
    const size_t row_bytes = view_->schema().key.EncodedSize(key);
    CELLAR_ASSERT(row_bytes > 0);
    const std::string_view row = key.substr(0, row_bytes);
    if (!found || row > row_key->view()) row_key->Assign(row);
    found = true;
  }
  if (found) {
    for (Group& group : groups_) group.at.Seek(row_key->view());
  }
  return found;
}

// --- ranges of columns

// seen_up_to keeps a group's cursor from being sought backwards: ranges of a family are read in
// order, and families by name, which need not be the order of their ids.
void CellStream::BeginRow(std::string_view row_key) {
  row_key_.Assign(row_key);
  family_at_ = 0;
  range_at_ = 0;
  row_entered_ = false;
  range_entered_ = false;
  column_entered_ = false;
  resume_below_ = -1;
  if (several_ranges_) {
    for (Group& group : groups_) group.seen_up_to.assign(row_key);
  }
  if (choice_->direction == ColumnDirection::kReverse && !choice_->columns.families().empty()) {
    family_at_ = choice_->columns.families().size() - 1;
    const auto& ranges = choice_->columns.families()[family_at_].ranges;
    range_at_ = ranges.empty() ? 0 : ranges.size() - 1;
  }
}

void CellStream::RestartRow() {
  for (Group& group : groups_) group.at.Seek(row_key_.view());
  BeginRow(std::string(row_key_.view()));
}

// Sets up the range at (family_at_, range_at_) and puts the cursor on its first entry (its last
// column when going backwards). False if it is empty.
bool CellStream::EnterRange() {
  const ColumnSet::Family& columns = choice_->columns.families()[family_at_];
  family_index_ = columns.index;
  family_ = &view_->schema().families[family_index_];
  group_ = &GroupOf(*family_);
  at_ = &group_->at;
  walk_ = VersionWalk(family_->policy, view_->all_live(*family_), view_->now_micros());
  whole_family_ = columns.whole;
  lower_.Assign(row_key_.view());
  PutFamilyId(&lower_, family_->id);
  family_bytes_ = lower_.size();
  const bool reverse = choice_->direction == ColumnDirection::kReverse;
  if (!columns.whole || several_ranges_ || reverse) upper_.Assign(lower_.view());
  if (columns.whole) {
    if (several_ranges_ || reverse) upper_.ToSuccessor();
  } else {
    const KeyRange& range = columns.ranges[range_at_];
    if (range.end.at_end) {
      upper_.ToSuccessor();
    } else {
      upper_.Append(range.end.bytes);
    }
    lower_.Append(range.begin.bytes);
  }
  column_entered_ = false;
  BTreeCursor& at = *at_;
  if (reverse) {
    if (upper_.empty()) {
      at.SeekLast();
    } else {
      at.SeekBefore(upper_.view());
    }
    return at.valid() && at.key() >= lower_.view() && PreviousColumn();
  }
  if (several_ranges_ && lower_.view() < group_->seen_up_to) {
    at.Seek(lower_.view());  // a family whose id comes before one that was read already
  } else if (at.valid() && at.key() < lower_.view()) {
    (void)at.SeekForward(lower_.view());
  }
  if (several_ranges_ && !upper_.empty()) group_->seen_up_to.assign(upper_.view());
  if (!at.valid()) return false;
  const bool inside = whole_family_ ? at.key().starts_with(lower_.view()) : BelowUpper(at.key());
  if (inside) EnterColumn();
  return inside;
}

// Ranges of a family in order, then the next family; backwards the other way round. Empty ranges
// are passed over. False: the row has no more.
bool CellStream::EnterNextRange() {
  const auto& families = choice_->columns.families();
  const bool reverse = choice_->direction == ColumnDirection::kReverse;
  for (;;) {
    if (row_entered_) {
      const size_t ranges = std::max<size_t>(1, families[family_at_].ranges.size());
      if (!reverse && range_at_ + 1 < ranges) {
        ++range_at_;
      } else if (reverse && range_at_ > 0) {
        --range_at_;
      } else if (!reverse && family_at_ + 1 < families.size()) {
        ++family_at_;
        range_at_ = 0;
      } else if (reverse && family_at_ > 0) {
        --family_at_;
        range_at_ = std::max<size_t>(1, families[family_at_].ranges.size()) - 1;
      } else {
        return false;
      }
    }
    if (families.empty()) return false;
    row_entered_ = true;
    if (EnterRange()) return true;
  }
}

// --- columns

// From an entry of the column wanted, whichever, to its newest version.
bool CellStream::PreviousColumn() {
  EnterColumn();
  at_->Seek(column_.view());
  CELLAR_ASSERT(at_->valid());
  return true;
}

void CellStream::SkipColumn() {
  if (column_entered_) LeaveColumn();
}

// Before the newest version of this column stands the oldest version of the one before.
void CellStream::LeaveColumnBackwards() {
  at_->SeekBefore(column_.view());
  column_entered_ = false;
  range_entered_ = at_->valid() && at_->key() >= lower_.view() && PreviousColumn();
}

// Places are compared by the family's name, as cells come in that order and not in that of the ids.
// Where the column has gone meanwhile, reading goes on with the one behind its place; where it is
// there, resume_below_ passes over the versions that were given out.
void CellStream::ResumeBehind(std::string_view cell_key) {
  uint32_t family_id = 0;
  const size_t id_bytes = DecodeFamilyId(cell_key, &family_id);
  const FamilySchema* family = view_->schema().FindFamilyById(family_id);
  if (id_bytes == 0 || family == nullptr) return;
  const size_t qualifier_bytes = family->order.EncodedSize(cell_key.substr(id_bytes));
  int64_t timestamp = 0;
  if (qualifier_bytes == 0 ||
      DecodeTimestamp(cell_key.substr(id_bytes + qualifier_bytes), &timestamp) == 0) {
    return;
  }
  const std::string_view qualifier = cell_key.substr(id_bytes, qualifier_bytes);
  const bool reverse = choice_->direction == ColumnDirection::kReverse;
  // Ranges that lie wholly before the column have been read.
  while (EnterNextRange()) {
    range_entered_ = true;
    while (range_entered_) {
      const std::string_view here = at_->key().substr(family_bytes_, column_bytes_ - family_bytes_);
      const int by_family = family_->name.compare(family->name);
      const int order = by_family != 0 ? by_family : here.compare(qualifier);
      if (order == 0) {
        resume_below_ = timestamp;
        return;
      }
      if ((order > 0) != reverse) return;
      if (by_family != 0) {
        // Perhaps no range follows: then the row has no more.
        range_entered_ = column_entered_ = false;
        break;
      }
      if (!reverse) {
        std::string target(at_->key().substr(0, family_bytes_));
        target += qualifier;
        at_->Seek(target);
        column_entered_ = false;
        range_entered_ = InRange(*at_);
        if (range_entered_) EnterColumn();
      } else {
        SkipColumn();
      }
    }
  }
}

// The view has moved from the live trees to snapshots: cursors are made anew, each on the same key.
void CellStream::Reattach() {
  for (Group& group : groups_) {
    const bool valid = group.at.valid();
    const std::string key = valid ? std::string(group.at.key()) : std::string();
    group.at = view_->MakeCursor(group.number);
    if (valid) group.at.Seek(key);
  }
  if (family_ != nullptr && row_entered_) {
    family_ = &view_->schema().families[family_index_];
    walk_.Rebind(family_->policy);
  }
}

}  // namespace cellar
