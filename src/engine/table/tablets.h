// Tablets: which rows of a table a set of a cluster owns, as ranges of encoded row keys.
//
//   tablet   [begin, end) epoch      ascending, none overlaps another; what lies in none is owned by
//                                    another set, though rows of it may be stored here (on their way
//                                    in, or not swept away yet)
//
// That is the truth about ownership: it changes by mutations alone (kTablets and those behind it),
// so it stands in the set's log and snapshots. Epochs grow with each change of a range's owner, and
// not by splitting.
//
// A Tablets never changes; a table gets another one. Views of the table keep the one that they
// began with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/key_range_set.h"
#include "engine/keys/order.h"

namespace cellar {

inline constexpr uint64_t kTabletsMax{20'000};  // of all tables of a set
inline constexpr size_t kTabletEndBytesMax{64 << 10};

// Both ends are encoded row keys, or what keys with fewer components begin with; an empty end is no
// bound.
struct Tablet {
  std::string begin;
  std::string end;
  uint64_t epoch{1};

  bool Contains(std::string_view row_key) const {
    return row_key >= begin && (end.empty() || row_key < end);
  }
  bool Overlaps(const Tablet& other) const {
    return (end.empty() || end > other.begin) && (other.end.empty() || other.end > begin);
  }
  friend bool operator==(const Tablet&, const Tablet&) = default;
};

class Tablets {
 public:
  using Pointer = std::shared_ptr<const Tablets>;

  // One that has all rows.
  static Pointer Whole();
  // One that has none.
  static Pointer None();
  // Null unless they ascend, none is empty or overlaps the next one, and epochs are above 0. An
  // empty list owns nothing.
  static Pointer Make(std::vector<Tablet> tablets);

  const std::vector<Tablet>& list() const { return list_; }
  bool owns_all() const { return owned_.all(); }
  // What they have together.
  const KeyRangeSet& owned() const { return owned_; }
  bool Owns(std::string_view row_key) const { return owned_.Contains(row_key); }  // O(log ranges)
  // The tablet that has the row, or begins where a bound says; null if none does. O(log tablets).
  const Tablet* Find(std::string_view row_key) const;

  // With the tablet that has `bound` cut there. Null if there is none, or it begins there.
  Pointer Split(std::string_view bound) const;
  // With the tablet that has `row_key` and the next one as one, which has the larger epoch. Null if
  // there is no such tablet, or the next one does not begin where it ends.
  Pointer Merge(std::string_view row_key) const;

  // v count { b begin, b end, v epoch }
  void Encode(std::string* to) const;
  // Null if these are not the bytes of one.
  static Pointer Decode(std::string_view* from);
  size_t memory_bytes() const;

 private:
  explicit Tablets(std::vector<Tablet> tablets);

  std::vector<Tablet> list_;
  KeyRangeSet owned_;
};

}  // namespace cellar
