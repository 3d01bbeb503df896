// RowRanges: where a cursor that goes forward over rows is among the ranges that are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "btree/btree.h"
#include "engine/keys/order.h"

namespace cellar {

class RowRanges {
 public:
  // Ascending, disjoint.
  explicit RowRanges(std::vector<KeyRange> ranges) : ranges_(std::move(ranges)) {}

  bool empty() const { return ranges_.empty(); }
  // Moves to the first entry of the range at hand or, if that has none, of a later one. False:
  // there is none.
  bool Enter(BTreeCursor* at);
  // Does the range at hand end before that key, which is not before it?
  bool EndsBefore(std::string_view key) const {
    const KeyBound& end = ranges_[at_].end;
    return !end.at_end && key >= end.bytes;
  }
  enum class Place : uint8_t {
    kInside,  // in the range at hand, which may be another one now
    kMoved,   // in none: the cursor has gone on to the next one
    kEnd,     // behind all
  };
  // Of the cursor's entry.
  Place Reach(BTreeCursor* at);

 private:
  std::vector<KeyRange> ranges_;
  size_t at_{0};
};

}  // namespace cellar
