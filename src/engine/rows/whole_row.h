// WholeRow: the newest live cell of each column of one row, in the order of replies.
//
//   row | family 1 | column x | newest  older ... |     the first version of each column that is
//       |          | column y | dead  newest ...  |     live; a column without one is left out
//       | family 2 | ...
//
// It is what a TableScan of the row gives without options (scan.h), and nothing else: no filter, no
// limit, no range of columns, no budget has a say, so it does not ask for them at every cell. It
// answers at once: who has taken as many cells as is good for one turn goes on by a scan, which
// begins behind the last one (PositionAfterCell). It works with the view's own cursors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/inline.h"
#include "base/key_buffer.h"
#include "btree/btree.h"
#include "engine/keys/cell.h"
#include "engine/keys/timestamp.h"
#include "engine/rows/cell_stream.h"
#include "engine/rows/scan.h"
#include "engine/schema/schema.h"
#include "engine/table/read_view.h"

namespace cellar {

class WholeRow {
 public:
  struct Cell {
    const FamilySchema* family{nullptr};
    std::string_view qualifier_text;
    CellValue value;
  };

  // `row_key` is encoded. Both outlive the row, and between calls nobody writes or reads by the
  // view. REQUIRES: the view is attached.
  WholeRow(const ReadView& view, std::string_view row_key) : view_(view) {
    CELLAR_ASSERT(!view.detached());
    CELLAR_ASSERT(!row_key.empty());
    key_.Assign(row_key);
    row_bytes_ = row_key.size();
  }
  // The next cell, whose views live until the next call. False at the end. O(log n) for each family
  // that needs a seek, else O(versions of the column).
  CELLAR_INLINE bool Next(Cell* cell);
  // Where a scan goes on behind the cell given out last, of `cells` so far. REQUIRES: Next has just
  // been true.
  ScanPosition PositionAfterCell(uint64_t cells) const;

 private:
  // Goes to the first column of the next family that has one. False if there is none.
  bool EnterFamily();
  bool SeekFamily();
  // Stands on the first version of a column: measures its name, of which so many bytes are known
  // not to end it.
  CELLAR_INLINE void EnterColumn(size_t text_known_bytes);
  // Leaves the column at hand, on whose version the cursor stands. False at the family's end.
  CELLAR_INLINE bool LeaveColumn();
  // Reads the version where the cursor stands, if that is certainly the one to be given out.
  CELLAR_INLINE bool ReadNewest(CellValue* value);
  // Looks for it among all versions of the column; false if none is live.
  bool FindLive(CellValue* value);
  void ShowDecoded();
  std::string_view version() const { return at_->key().substr(column_bytes_); }

  const ReadView& view_;
  KeyBuffer key_;  // begins with the row's key; then the id of the family at hand
  size_t row_bytes_{0};
  size_t family_at_{0};  // the next one, in TableSchema::families
  // The family at hand. Null: none yet.
  const FamilySchema* family_{nullptr};
  BTreeCursor* at_{nullptr};  // of its group
  bool in_family_{false};
  bool all_live_{false};
  bool may_drop_newest_{false};  // its policy may
  size_t family_bytes_{0};       // of the cursor's key: row and family id
  // The column at hand, on a version of which the cursor stands, unless it has gone behind it.
  bool in_column_{false};
  size_t column_bytes_{0};
  size_t text_bytes_{0};  // of its qualifier, Order::kNoText if the encoding is not the text
  PlainValue plain_;
  std::string text_;  // where the encoding is not the text
};

void WholeRow::EnterColumn(size_t text_known_bytes) {
  const std::string_view key = at_->key();
  CELLAR_ASSERT(family_bytes_ <= key.size());
  const size_t qualifier_bytes = family_->order.EncodedSize(
      {key.data() + family_bytes_, key.size() - family_bytes_}, text_known_bytes, &text_bytes_);
  CELLAR_ASSERT(qualifier_bytes > 0);
  column_bytes_ = family_bytes_ + qualifier_bytes;
  in_column_ = true;
}

bool WholeRow::LeaveColumn() {
  if (in_column_) CellStream::StepOver(*at_, column_bytes_);
  if (!at_->valid()) return false;
  const size_t shared_bytes = at_->shared_with_last();
  if (shared_bytes < family_bytes_ && !at_->key().starts_with(key_.view())) return false;
  // What it shares with the last column is inside of that one's text, or the text and more: see
  // CellStream::NextColumn.
  const bool shares = shared_bytes > family_bytes_ && text_bytes_ != Order::kNoText;
  EnterColumn(shares ? std::min(shared_bytes - family_bytes_, text_bytes_) : 0);
  return true;
}

bool WholeRow::ReadNewest(CellValue* value) {
  if (may_drop_newest_ || !IsUsualTimestamp(version())) return false;
  return DecodeCellValue(at_->value(), &plain_, value) &&
         (all_live_ || view_.now_micros() < value->expiry_micros);
}

bool WholeRow::Next(Cell* cell) {
  for (;;) {
    in_family_ = in_family_ && LeaveColumn();
    if (!in_family_) [[unlikely]] {
      if (!EnterFamily()) return false;
    }
    if (ReadNewest(&cell->value) || FindLive(&cell->value)) [[likely]]
      break;
  }
  cell->family = family_;
  if (text_bytes_ != Order::kNoText) [[likely]] {
    cell->qualifier_text = at_->key().substr(family_bytes_, text_bytes_);
  } else {
    ShowDecoded();
    cell->qualifier_text = text_;
  }
  return true;
}

}  // namespace cellar
