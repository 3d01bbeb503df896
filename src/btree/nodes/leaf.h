// Leaf: up to 4 KiB of delta-coded entries in key order, searched by group heads, edited in place.
//
//   0  birth u64           epoch in which this copy was made
//   8  passed u64          epoch of the last snapshot whose serialiser has left this leaf behind,
//                          or a mark (epochs.cc)
//  16  granules u16        allocated, of 128 bytes
//  18  front_bytes u16     free before the entries
//  20  large_units u32     memory of the out-of-line values, in units of 64 bytes
//  --- from here on it is the same in memory and in a snapshot file (offsets only, little-endian)
//  24  used u32            bytes from 0 on, without those that are free before the entries
//  28  prefix_bytes u32    a prefix that all keys have; not always the longest
//  32  count u16           entries
//  34  groups u8           1..16 in use
//  35  group_capacity u8   G: 4, 8, 12 or 16
//  36  large_count u16     entries whose value is out of line
//  38  dictionary_bytes u16
//  40  heads u32[G]        first 4 bytes, behind the prefix, of each group's first key, in numeric
//                          order
//  ..  offsets u16[G]      where each group begins, from the first entry
//  ..  counts u8[G]        entries of each group, 1..16
//  ..  prefix
//  ..  dictionary          mostly of leaves that hold rows of several columns; see dictionary.h
//  ..  free, in memory only
//  ..  entries             see entry.h; each group begins with a full key (shared = 0)
//  ..  free
//
// A search compares heads by SIMD, then walks one group while it keeps m, how much of the target is
// shared with the key before: an entry that shares more with its predecessor than m is below the
// target, one that shares less is above it, and only one that shares exactly m is looked at. No key
// is rebuilt. An insert stores target[m..], and only takes bytes away from the next entry's suffix;
// a delete is the mirror image. What is before the place or what is behind it moves to make room,
// whichever is less, as far as there are free bytes on its side.
//
// A leaf is at most kLeafBytesMax long, plus its prefix if that is over kLongPrefixBytes; only a
// leaf with a single entry may be longer. Nothing here allocates or knows of epochs: tree.h does.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "btree/nodes/arena.h"
#include "btree/nodes/bytes.h"
#include "btree/nodes/dictionary.h"
#include "btree/nodes/entry.h"
#include "btree/nodes/put.h"

namespace cellar::btree_internal {

inline constexpr size_t kLeafBytesMin{128};
inline constexpr size_t kLeafBytesMax{4096};
inline constexpr size_t kLongPrefixBytes{1024};
inline constexpr size_t kLeafGroupsMax{16};
static_assert(kLeafGroupsMax <= kHeadsMax, "as HeadsNotAbove wants it");
inline constexpr size_t kGroupEntriesMax{16};
inline constexpr size_t kLeafEntriesMax{kLeafGroupsMax * kGroupEntriesMax};

// Bytes before the prefix.
constexpr size_t LeafHeaderBytes(size_t group_capacity) { return 40 + 7 * group_capacity; }

struct Leaf {
  uint64_t birth;
  uint64_t passed;
  uint16_t granules;
  uint16_t front_bytes;
  uint32_t large_units;
  uint32_t used;
  uint32_t prefix_bytes;
  uint16_t count;
  uint8_t groups;
  uint8_t group_capacity;
  uint16_t large_count;
  uint16_t dictionary_bytes;

  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this); }
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(this); }
  uint32_t* heads() { return reinterpret_cast<uint32_t*>(this + 1); }
  const uint32_t* heads() const { return reinterpret_cast<const uint32_t*>(this + 1); }
  uint16_t* offsets() { return reinterpret_cast<uint16_t*>(heads() + group_capacity); }
  const uint16_t* offsets() const {
    return reinterpret_cast<const uint16_t*>(heads() + group_capacity);
  }
  uint8_t* counts() { return reinterpret_cast<uint8_t*>(offsets() + group_capacity); }
  const uint8_t* counts() const {
    return reinterpret_cast<const uint8_t*>(offsets() + group_capacity);
  }
  const uint8_t* prefix() const { return counts() + group_capacity; }
  uint8_t* prefix() { return counts() + group_capacity; }
  Dictionary dictionary() const { return {prefix() + prefix_bytes, dictionary_bytes}; }
  // Bytes before the free ones.
  size_t header_bytes() const {
    return LeafHeaderBytes(group_capacity) + prefix_bytes + dictionary_bytes;
  }
  const uint8_t* entries() const {
    return prefix() + prefix_bytes + dictionary_bytes + front_bytes;
  }
  uint8_t* entries() { return prefix() + prefix_bytes + dictionary_bytes + front_bytes; }
  const uint8_t* entries_end() const { return bytes() + used + front_bytes; }
  uint32_t capacity() const { return uint32_t{granules} * NodeArena::kGranuleBytes; }
  // How far short copies may read.
  const uint8_t* readable_end() const { return bytes() + capacity(); }
  uint32_t entries_bytes() const { return static_cast<uint32_t>(entries_end() - entries()); }
  // Where the entries of a group end.
  const uint8_t* group_end(uint32_t group) const {
    return group + 1u < groups ? entries() + offsets()[group + 1] : entries_end();
  }
  // Memory that this leaf stands for.
  uint32_t units() const { return capacity() / 64 + large_units; }
};
static_assert(sizeof(Leaf) == 40);

inline constexpr size_t kLeafPortableFrom{24};

// The most that a leaf of more than one entry may use.
constexpr size_t LeafBytesLimit(size_t prefix_bytes) {
  return prefix_bytes > kLongPrefixBytes ? kLeafBytesMax + prefix_bytes : kLeafBytesMax;
}

// The key of the first entry of `group`, behind the prefix.
inline std::string_view GroupFirst(const Leaf* leaf, uint32_t group) {
  Entry entry;
  ParseEntry(leaf->entries() + leaf->offsets()[group], &entry);
  return leaf->dictionary().DecodeFirst(entry);
}

// Where a key is in a leaf, or where it would be inserted.
struct LeafPlace {
  bool found;
  bool has_prefix;  // the key begins with the leaf's prefix
  uint32_t group;   // the group that it is in or would go to
  uint32_t index;   // entries of this group before it
  uint32_t at;      // offset, from the first entry, of the entry found or of the next larger one
  // Beyond the prefix, with the key before it in the group; 0 if there is none.
  uint32_t shared_before;
  // With the entry at `at` if that is in the group, else 0; not when found.
  uint32_t shared_after;

  friend bool operator==(const LeafPlace&, const LeafPlace&) = default;
};

// O(log groups + entries of a group). leaf_search.h has it for inlining.
void FindInLeaf(const Leaf* leaf, std::string_view key, LeafPlace* place);
inline LeafPlace FindInLeaf(const Leaf* leaf, std::string_view key) {
  LeafPlace place;
  FindInLeaf(leaf, key, &place);
  return place;
}
// The first step of FindInLeaf only, and loads of what its second step will most probably read.
void TouchGroup(const Leaf* leaf, std::string_view key);

// Keys put together again: one entry after the other from the start of a group, the suffix of each
// behind what it shares; or a single one. Keeps its memory.
class RebuiltKey {
 public:
  // Of the next entry of `leaf`, whose dictionary this is, or of the first one of a group.
  void Take(const Leaf* leaf, const Dictionary& dictionary, const Entry& entry) {
    const Suffix suffix = dictionary.Decode(entry);
    const size_t bytes = entry.shared + suffix.size();
    Reserve(bytes);
    suffix.CopyTo(buffer_.data() + entry.shared, leaf->readable_end());
    bytes_ = bytes;
  }
  // Of the `index`-th entry of a group, without the keys before it: of those only what it shares is
  // copied. Returns where the entry stands.
  const uint8_t* TakeInGroup(const Leaf* leaf, uint32_t group, uint32_t index);
  // Behind the leaf's prefix. Valid until the next one is taken.
  std::string_view view() const { return View(buffer_.data(), bytes_); }

 private:
  void Reserve(size_t bytes) {
    if (buffer_.size() < bytes + kShortCopyBytes) [[unlikely]]
      buffer_.resize(std::max(bytes + kShortCopyBytes, 2 * buffer_.size()));
  }

  std::vector<uint8_t> buffer_;
  size_t bytes_{0};
};

// Calls visit(index, key behind the prefix, entry) for all entries until it returns false.
template <typename Visit>
void WalkLeaf(const Leaf* leaf, RebuiltKey* key, Visit visit) {
  const Dictionary dictionary = leaf->dictionary();
  const uint8_t* p = leaf->entries();
  Entry entry;
  for (uint32_t i = 0; i < leaf->count; ++i, p = entry.end) {
    ParseEntry(p, &entry);
    key->Take(leaf, dictionary, entry);
    if (!visit(i, key->view(), entry)) return;
  }
}

// A change of one stretch of the entries, worked out before it is done, so that the caller can make
// room first: `growth` bytes are added to leaf->used (or taken away, when negative).
struct LeafEdit {
  uint32_t old_bytes{0};  // replaced, from place.at
  uint32_t new_bytes{0};
  SuffixCode code;           // of the new entry
  uint32_t suffix_bytes{0};  // stored of its suffix
  SuffixCut next;            // of the entry behind, if that loses a part of its suffix
  uint32_t next_suffix_bytes{0};
  ValueShape next_shape;
  int64_t growth() const { return static_cast<int64_t>(new_bytes) - old_bytes; }
};

// REQUIRES: !place.found, place.has_prefix, the group has room. place.group may be the one behind
// the last (with index 0), if there is a free one: it is then opened.
LeafEdit PlanInsert(const Leaf* leaf, const LeafPlace& place, std::string_view key,
                    const ValueRef& value);
// REQUIRES: room for edit.growth(); `key` and `value` do not point into the leaf. May open a group.
void ApplyInsert(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, std::string_view key,
                 const ValueRef& value);
// Both at once, as they do it, where that is short work, as it nearly always is: there is room, no
// entry has or gets "more lengths", the next one keeps its word or loses it as a whole, and the
// leaf grows, but not beyond kLeafBytesMax. False, and nothing is done, where it is not.
// REQUIRES: what they require; place.group < leaf->groups.
[[nodiscard]] bool InsertShort(Leaf* leaf, const LeafPlace& place, std::string_view key,
                               const ValueRef& value);

// Several entries in ascending order, all of which go to one place.
struct RunInLeaf {
  std::span<const BTreePut> puts;
  // With the put before, of the whole key; of the first one not used.
  std::array<uint32_t, kGroupEntriesMax> shared;
  LeafPlace place;
  bool opens_group{false};  // place.group is to be made, with index 0: it pushes back what is there
};
// Of each, as PlanRun has found it.
struct RunPlan {
  LeafEdit edit;
  size_t count{0};  // how many of them, from the first on, fit
  std::array<SuffixCode, kGroupEntriesMax> codes;
  std::array<uint32_t, kGroupEntriesMax> suffix_bytes;
};
// What inserting of so many of a run as grow the leaf by at most `growth_max` bytes takes.
// REQUIRES: as PlanInsert; the group has room for all; no value is to be out of line.
void PlanRun(const Leaf* leaf, const RunInLeaf& run, int64_t growth_max, RunPlan* plan);
// REQUIRES: plan.count > 0, room for plan.edit.growth(), a free group if one is to be opened.
void ApplyRun(Leaf* leaf, const RunInLeaf& run, const RunPlan& plan);

// REQUIRES: place.found. The old value's block, if any, is the caller's.
LeafEdit PlanReplace(const Leaf* leaf, const LeafPlace& place, const ValueRef& value);
void ApplyReplace(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, const ValueRef& value);

// Another entry for the one at place.at: the key is `rest` behind the prefix, of which
// place.shared_before bytes are the ones of the entry before. The entry behind shares with both as
// much. REQUIRES: neither value is out of line; room for edit.growth().
LeafEdit PlanRewrite(const Leaf* leaf, const LeafPlace& place, std::string_view rest,
                     const ValueRef& value);
void ApplyRewrite(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, std::string_view rest,
                  const ValueRef& value);
// Both at once where the new entry keeps the lengths of `old`, which is the one there, and its
// word, as that of a newer version of a cell mostly does: only the rest of its suffix and the value
// are written. False, and nothing is done, where it does not. REQUIRES: what they require; as many
// bytes in both keys.
[[nodiscard]] bool RewriteShort(Leaf* leaf, const LeafPlace& place, const Entry& old,
                                std::string_view rest, const ValueRef& value);

// What the entry behind shared with the removed one and not with the one before, it takes over:
// *next_suffix := its suffix then. Grows only where words of the dictionary fit no more. REQUIRES:
// place.found, leaf->count > 1.
LeafEdit PlanRemove(const Leaf* leaf, const LeafPlace& place, std::string* next_suffix);
// REQUIRES: room for edit.growth().
void ApplyRemove(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit,
                 std::string_view next_suffix);

// Makes two groups of one with more than one entry, so that the second one begins at its
// `first_index`-th entry: `key` := what that then has in full, and edit.growth() := what it takes.
struct GroupSplit {
  uint32_t group;
  uint32_t first_index;
  uint32_t at;  // of the entry, from the first of all
  LeafEdit edit;
};
GroupSplit PlanSplitGroup(const Leaf* leaf, uint32_t group, uint32_t first_index, RebuiltKey* key);
// REQUIRES: room for edit.growth(); a free group.
void ApplySplitGroup(Leaf* leaf, const GroupSplit& split, std::string_view key);

// Room for more groups: everything behind the arrays moves up by kGroupRoomGrowth bytes.
// REQUIRES: leaf->group_capacity < kLeafGroupsMax, room for the growth.
inline constexpr size_t kGroupRoomStep{4};
inline constexpr size_t kGroupRoomGrowth{LeafHeaderBytes(kGroupRoomStep) - LeafHeaderBytes(0)};
void AddGroupRoom(Leaf* leaf);

// Asserts every invariant; returns the payload's bytes (keys and values). The first and last key
// (complete) go to *first and *last. For tests.
uint64_t ValidateLeaf(const Leaf* leaf, std::string* first, std::string* last);

}  // namespace cellar::btree_internal
