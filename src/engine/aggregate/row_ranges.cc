// See row_ranges.h.
#include "engine/aggregate/row_ranges.h"

namespace cellar {

bool RowRanges::Enter(BTreeCursor* at) {
  for (; at_ < ranges_.size(); ++at_) {
    const KeyRange& range = ranges_[at_];
    if (range.begin.at_end) continue;
    at->Seek(range.begin.bytes);
    if (!at->valid()) return false;
    if (range.end.at_end || at->key() < range.end.bytes) return true;
  }
  return false;
}

RowRanges::Place RowRanges::Reach(BTreeCursor* at) {
  const std::string_view key = at->key();
  if (!EndsBefore(key)) return Place::kInside;
  do {
    if (++at_ == ranges_.size()) return Place::kEnd;
  } while (EndsBefore(key));
  if (key >= ranges_[at_].begin.bytes) return Place::kInside;
  return Enter(at) ? Place::kMoved : Place::kEnd;
}

}  // namespace cellar
