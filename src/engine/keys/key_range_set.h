// A set of encoded keys as ascending ranges that neither overlap nor touch: the union of PREFIX,
// RANGE and ROWS of a scan, and what a filter can say about the keys that it lets through.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "engine/keys/order.h"

namespace cellar {

class KeyRangeSet {
 public:
  KeyRangeSet() = default;  // nothing
  static KeyRangeSet All();

  const std::vector<KeyRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool all() const;

  // Adds a range; one that is empty adds nothing. O(ranges); appending in ascending order is O(1).
  void Add(KeyRange range);
  void AddAll(const KeyRangeSet& other);
  // Keeps what is in both. O(ranges of both).
  void IntersectWith(const KeyRangeSet& other);
  // Replaces all ranges by the one from the first begin to the last end if there are more than
  // `ranges_max`: what is left is then too large, never too small.
  void Coarsen(size_t ranges_max);

  // O(log ranges).
  bool Contains(std::string_view encoded) const;
  // Index of the first range that ends behind `encoded`: the one that contains it or the next one;
  // ranges().size() if there is none. O(log ranges).
  size_t FindRange(std::string_view encoded) const;

 private:
  std::vector<KeyRange> ranges_;
};

}  // namespace cellar
