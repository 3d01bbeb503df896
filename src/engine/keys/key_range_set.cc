// Merging of sorted ranges. A KeyBound at_end is behind every other one.
#include "engine/keys/key_range_set.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar {

KeyRangeSet KeyRangeSet::All() {
  KeyRangeSet set;
  set.ranges_.emplace_back();
  return set;
}

bool KeyRangeSet::all() const {
  return ranges_.size() == 1 && ranges_[0].begin.bytes.empty() && !ranges_[0].begin.at_end &&
         ranges_[0].end.at_end;
}

void KeyRangeSet::Add(KeyRange range) {
  if (range.empty()) return;
  // The ranges that overlap or touch the new one are [first, last): they and it become one.
  const auto first =
      std::partition_point(ranges_.begin(), ranges_.end(),
                           [&](const KeyRange& other) { return other.end < range.begin; });
  auto last = first;
  while (last != ranges_.end() && !(range.end < last->begin)) {
    if (last->begin < range.begin) range.begin = last->begin;
    if (range.end < last->end) range.end = last->end;
    ++last;
  }
  const auto at = ranges_.erase(first, last);
  ranges_.insert(at, std::move(range));
}

void KeyRangeSet::AddAll(const KeyRangeSet& other) {
  for (const KeyRange& range : other.ranges_) Add(range);
}

void KeyRangeSet::IntersectWith(const KeyRangeSet& other) {
  std::vector<KeyRange> common;
  size_t i = 0;
  size_t j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const KeyRange& a = ranges_[i];
    const KeyRange& b = other.ranges_[j];
    KeyRange both;
    both.begin = a.begin < b.begin ? b.begin : a.begin;
    both.end = a.end < b.end ? a.end : b.end;
    if (!both.empty()) common.push_back(std::move(both));
    if (a.end < b.end) {
      ++i;
    } else {
      ++j;
    }
  }
  ranges_ = std::move(common);
}

void KeyRangeSet::Coarsen(size_t ranges_max) {
  CELLAR_ASSERT(ranges_max >= 1);
  if (ranges_.size() <= ranges_max) return;
  KeyRange hull{ranges_.front().begin, ranges_.back().end};
  ranges_.clear();
  ranges_.push_back(std::move(hull));
}

size_t KeyRangeSet::FindRange(std::string_view encoded) const {
  const auto found = std::partition_point(
      ranges_.begin(), ranges_.end(),
      [&](const KeyRange& range) { return !range.end.at_end && range.end.bytes <= encoded; });
  return static_cast<size_t>(found - ranges_.begin());
}

bool KeyRangeSet::Contains(std::string_view encoded) const {
  const size_t at = FindRange(encoded);
  return at < ranges_.size() && ranges_[at].contains(encoded);
}

}  // namespace cellar
