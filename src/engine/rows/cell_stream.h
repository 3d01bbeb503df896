// CellStream: the live cells of one row at a time, as the trees hold them, narrowed by columns,
// time and number of versions: the first three of the cell options. RowReader does the rest.
//
// It keeps one cursor for each locality group that it needs and moves it forward only, from row to
// row too: a scan of neighbouring rows costs steps, not seeks. Families come by name; where their
// ids have another order it seeks.
//
//   row A | family 1 | column x | newest .. oldest |      rank counts all stored versions of a
//         |          | column y | ...              |      column, so a column is always read from
//         | family 2 | ...                                its newest
//   row B | ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/inline.h"
#include "base/key_buffer.h"
#include "btree/btree.h"
#include "engine/request/row_write.h"
#include "engine/rows/scan.h"
#include "engine/schema/column_set.h"
#include "engine/table/read_view.h"
#include "engine/table/version_walk.h"

namespace cellar {

enum class ColumnDirection : uint8_t { kForward, kReverse };

// The compiled first half of CellOptions.
struct CellChoice {
  ColumnSet columns;
  TimeRange time;
  uint64_t versions_max{1};
  ColumnDirection direction{ColumnDirection::kForward};
  bool values{true};  // false: they may be empty
};

struct RawCell {
  size_t family{0};                   // index in TableSchema::families
  std::string_view qualifier;         // encoded; all views live until the stream moves
  size_t text_bytes{Order::kNoText};  // of the qualifier, where the encoding begins with its text
  bool column_begins{false};          // no cell of this column was given out before
  int64_t timestamp_micros{0};
  CellValue value;
};

enum class StreamStep : uint8_t { kCell, kRowEnd, kPause };

class CellStream {
 public:
  CellStream();  // of nothing; Bind it
  ~CellStream();
  // Begins with another table, keeping the memory. `view` and `choice` must outlive the stream, or
  // it must be unbound before they die. Examines at most *budget cells before it pauses, and counts
  // it down.
  void Bind(const ReadView& view, const CellChoice& choice, uint64_t* budget, ScanStats* stats);
  void Unbind();

  // --- rows
  // The first row at or behind `from` (kForward), or the last one before it, as the groups that the
  // choice needs hold it. False if there is none. Candidates: such a row may turn out to have no
  // cell that passes.
  bool SeekRowForward(std::string_view from, KeyBuffer* row_key);
  bool SeekRowBefore(const KeyBound& before, KeyBuffer* row_key);
  // The next candidate behind the row that was begun last, from where the cursors stand: mostly
  // without a seek. False if there is none.
  bool NextRow(KeyBuffer* row_key);

  // --- cells of a row
  void BeginRow(std::string_view row_key);
  // Begins the same row again.
  void RestartRow();
  // Goes to the column that holds `cell_key` (family id, qualifier, timestamp), so that Next()
  // gives what comes behind that cell. REQUIRES: just begun.
  void ResumeBehind(std::string_view cell_key);
  StreamStep Next(RawCell* cell);
  void SkipColumn();
  // The view has been detached: go on at the same place in its snapshots.
  void Reattach();

  // Leave(), of a cursor where mostly the next entry has not the first `prefix_bytes` any more.
  static void StepOver(BTreeCursor& at, size_t prefix_bytes);

 private:
  struct Group {
    Group(size_t its_number, const ReadView& view)
        : number(its_number), at(view.MakeCursor(its_number)) {}
    size_t number;
    BTreeCursor at;
    // With several ranges in a row: no entry at or above this and below the cursor exists that the
    // stream has not seen.
    std::string seen_up_to;
  };

  Group& GroupOf(const FamilySchema& family);
  bool LowestRow(KeyBuffer* row_key);
  // Moves to the next range of columns that holds an entry; false at the end of the row.
  bool EnterRange();
  bool EnterNextRange();
  // Stands on the first version of a column inside the range; reads its name, which begins with so
  // many bytes that are known not to end its text.
  void EnterColumn(size_t text_known_bytes = 0);
  bool NextColumn();
  // To the next column of the range, in the direction of the read; range_entered_ says whether
  // there is one.
  void LeaveColumn();
  void LeaveColumnBackwards();
  bool PreviousColumn();
  // Is the cursor, which has moved forward from inside the range, still in it?
  bool InRange(const BTreeCursor& at) const;
  bool BelowUpper(std::string_view key) const { return upper_.empty() || key < upper_.view(); }
  bool Examine(RawCell* cell, bool* done);

  const ReadView* view_{nullptr};
  const CellChoice* choice_{nullptr};
  uint64_t* budget_{nullptr};
  ScanStats* stats_{nullptr};
  std::vector<Group> groups_;
  std::vector<size_t> group_index_;  // by locality group: into groups_, if there are several
  bool several_ranges_{false};       // in a row

  // The row, range and column at hand.
  KeyBuffer row_key_;
  size_t family_at_{0};  // in choice_.columns.families()
  size_t range_at_{0};
  bool row_entered_{false};
  bool range_entered_{false};
  bool column_entered_{false};
  bool in_column_{false};     // the cursor stands on a version of the column at hand
  bool version_seen_{false};  // ... which has been examined already
  const FamilySchema* family_{nullptr};
  Group* group_{nullptr};
  BTreeCursor* at_{nullptr};  // of group_
  KeyBuffer lower_;           // of the range
  KeyBuffer upper_;           // of the range; empty: no bound. Not set if it is not looked at
  bool whole_family_{false};  // the range is every key that begins with lower_
  size_t family_bytes_{0};    // row key and family id
  size_t family_index_{0};    // in TableSchema::families
  size_t column_bytes_{0};    // and qualifier: the front of the cursor's key while in_column_
  size_t text_bytes_{0};      // RawCell::text_bytes of the column
  KeyBuffer column_;          // row, family, qualifier, for reading backwards alone
  VersionWalk walk_;
  uint64_t versions_{0};      // of the column, given out
  PlainValue plain_;          // of the cell given out last
  int64_t resume_below_{-1};  // versions at or above this timestamp were given out before
};

// --- for each cell of a scan

CELLAR_INLINE void CellStream::StepOver(BTreeCursor& at, size_t prefix_bytes) {
  at.Next();
  if (at.StillBegins(prefix_bytes)) at.Leave(prefix_bytes);
}

CELLAR_INLINE void CellStream::EnterColumn(size_t text_known_bytes) {
  const std::string_view key = at_->key();
  CELLAR_ASSERT(family_bytes_ <= key.size());
  const size_t qualifier_bytes = family_->order.EncodedSize(
      {key.data() + family_bytes_, key.size() - family_bytes_}, text_known_bytes, &text_bytes_);
  CELLAR_ASSERT(qualifier_bytes > 0);
  column_bytes_ = family_bytes_ + qualifier_bytes;
  if (choice_->direction == ColumnDirection::kReverse) [[unlikely]]
    column_.Assign(key.substr(0, column_bytes_));
  column_entered_ = true;
  in_column_ = true;
  version_seen_ = false;
  walk_.BeginColumn();
  versions_ = 0;
}

CELLAR_INLINE bool CellStream::InRange(const BTreeCursor& at) const {
  if (!at.valid()) return false;
  if (!whole_family_) return BelowUpper(at.key());
  return at.shared_with_last() >= family_bytes_ || at.key().starts_with(lower_.view());
}

// From somewhere in or right behind the column at hand to the next column of the range.
CELLAR_INLINE bool CellStream::NextColumn() {
  if (in_column_) StepOver(*at_, column_bytes_);
  column_entered_ = false;
  in_column_ = false;
  if (!InRange(*at_)) return false;
  // What it shares with the last column is inside of that one's text, or the text and more. To look
  // at it again would not only be idle: the core waits for a load that goes over the end of what
  // has just been stored, here the bytes of the key that are new.
  const size_t shared_bytes = at_->shared_with_last();
  const bool shares = shared_bytes > family_bytes_ && text_bytes_ != Order::kNoText;
  EnterColumn(shares ? std::min(shared_bytes - family_bytes_, text_bytes_) : 0);
  return true;
}

CELLAR_INLINE void CellStream::LeaveColumn() {
  if (choice_->direction == ColumnDirection::kForward) [[likely]] {
    range_entered_ = NextColumn();
  } else {
    LeaveColumnBackwards();
  }
}

// One step over the versions of the column at hand. True if `cell` is one to give out; *done says
// that no further one of this column is.
CELLAR_INLINE bool CellStream::Examine(RawCell* cell, bool* done) {
  const std::string_view key = at_->key();
  const std::string_view value = at_->value();
  CELLAR_ASSERT(column_bytes_ <= key.size());
  walk_.Count();
  version_seen_ = true;
  ++stats_->cells;
  stats_->bytes += key.size() + value.size();
  --*budget_;
  const int64_t timestamp =
      StoredTimestamp({key.data() + column_bytes_, key.size() - column_bytes_});
  ReadStoredCell(value, &plain_, &cell->value);
  if (timestamp < choice_->time.min_micros) {
    *done = true;
    return false;
  }
  if (const Fate fate = walk_.FateOf(timestamp, cell->value.expiry_micros); fate != Fate::kLive) {
    *done = fate == Fate::kAllDropped;
    return false;
  }
  if (timestamp > choice_->time.max_micros) return false;
  ++versions_;
  if (versions_ >= choice_->versions_max) *done = true;
  if (resume_below_ >= 0 && timestamp >= resume_below_) [[unlikely]]
    return false;
  cell->family = family_index_;
  cell->qualifier = {key.data() + family_bytes_, column_bytes_ - family_bytes_};
  cell->text_bytes = text_bytes_;
  cell->column_begins = versions_ == 1;
  cell->timestamp_micros = timestamp;
  return true;
}

CELLAR_INLINE StreamStep CellStream::Next(RawCell* cell) {
  for (;;) {
    if (!range_entered_) {
      range_entered_ = EnterNextRange();
      if (!range_entered_) return StreamStep::kRowEnd;
    }
    bool done = versions_ >= choice_->versions_max;
    while (!done) {
      if (*budget_ == 0) [[unlikely]]
        return StreamStep::kPause;
      if (version_seen_) {
        at_->Next();
        version_seen_ = false;
        in_column_ = at_->StillBegins(column_bytes_);
        if (!in_column_) break;
      }
      if (Examine(cell, &done)) return StreamStep::kCell;
    }
    resume_below_ = -1;
    LeaveColumn();
  }
}

}  // namespace cellar
