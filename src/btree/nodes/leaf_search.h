// FindInLeaf (leaf.h), to be inlined: for the reads of single keys, which do little else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/inline.h"
#include "btree/nodes/leaf.h"

namespace cellar::btree_internal {

// How many groups begin at or below `rest`, the key behind the prefix, if those from `low` to
// `high` have its head: then whole keys decide.
uint32_t FindAmongEqualHeads(const Leaf* leaf, std::string_view rest, uint32_t low, uint32_t high);

// How many groups begin at or below `rest`.
CELLAR_INLINE uint32_t GroupsNotAbove(const Leaf* leaf, std::string_view rest) {
  // Be there fewer heads: the smallest leaf has the memory for all of them.
  static_assert(kLeafGroupsMax == kHeadsMax);
  static_assert(sizeof(Leaf) + kHeadsMax * sizeof(uint32_t) <= kLeafBytesMin);
  const uint32_t head = Head(Bytes(rest), rest.size());
  const uint32_t* const heads = leaf->heads();
  const uint32_t not_above = HeadsNotAboveOfAll(heads, leaf->groups, head);
  if (!HasEqualHead(heads, not_above, head)) [[likely]]
    return not_above;
  return FindAmongEqualHeads(leaf, rest, HeadsBelow(heads, not_above, head), not_above);
}

// A number for where a key leaves the target: `shared` bytes are the same, then `byte` follows.
// Among keys below the target it is the larger the nearer they are.
constexpr int32_t Parting(uint32_t shared, uint8_t byte) {
  return static_cast<int32_t>(shared << 8) - byte;
}

// Finds `rest`, the key behind the prefix, in the group of place->group, which does not begin above
// it unless it is the first. kIsCoded: the leaf has a dictionary.
//
// `matched` bytes of the target are those of the entry before, which is below it. An entry that
// shares more than these with its predecessor, or just these and then has a smaller byte, is below
// the target as well; one that shares less, or then has a larger byte, is above it. One comparison
// tells which it is: most entries are passed by without a jump that could not be predicted.
template <bool kIsCoded>
CELLAR_INLINE void WalkGroupOf(const Leaf* leaf, std::string_view rest, LeafPlace* place) {
  const uint8_t* const entries = leaf->entries();
  const uint8_t* p = entries + leaf->offsets()[place->group];
  const uint32_t count = leaf->counts()[place->group];
  const uint8_t* const target = Bytes(rest);
  const size_t target_bytes = rest.size();
  const Dictionary dictionary = kIsCoded ? leaf->dictionary() : Dictionary{};
  uint32_t matched = 0;
  uint32_t left = count;  // entries not passed by; counted down, which is quicker than up
  Entry entry;
  if (place->group == 0 || target_bytes == 0) [[unlikely]] {
    // Only the leaf's first key can end with the prefix.
    ParseEntry(p, &entry);
    const bool ends = entry.suffix_bytes == dictionary.code_bytes();
    if (ends && target_bytes > 0) {
      p = entry.end;
      --left;
    } else if (target_bytes == 0) {
      place->found = ends;
      place->at = static_cast<uint32_t>(p - entries);
      return;
    }
  }
  int32_t parting = Parting(0, target[0]);
  for (; left > 0; --left, p = entry.end) {
    ParseEntry(p, &entry);
    const int32_t its_parting =
        Parting(entry.shared, kIsCoded ? dictionary.FirstByte(entry) : *entry.suffix);
    if (its_parting > parting) [[likely]]
      continue;
    if (its_parting < parting) {
      place->shared_after = entry.shared;
      break;
    }
    // The entry's suffix from the first byte on that differs: `its_bytes` of its word, or of its
    // own.
    const uint8_t* const start = kIsCoded ? dictionary.Start(entry) : entry.suffix;
    const uint8_t* its = start;
    auto its_bytes =
        static_cast<size_t>(kIsCoded ? dictionary.StartBytes(entry) : entry.suffix_bytes);
    size_t shared = matched;
    const auto pass_shared = [&] {
      const size_t more =
          CommonPrefix(its, target + shared, std::min(its_bytes, target_bytes - shared));
      its += more;
      its_bytes -= more;
      shared += more;
    };
    pass_shared();
    if (kIsCoded && its_bytes == 0 && start != entry.suffix + 1) {
      its = entry.suffix + 1;
      its_bytes = entry.suffix_bytes - 1;
      pass_shared();
    }
    if (shared == target_bytes) {  // equal, or the target ends inside of it
      place->found = its_bytes == 0 && its == entry.suffix + entry.suffix_bytes;
      if (!place->found) place->shared_after = static_cast<uint32_t>(shared);
      break;
    }
    if (its_bytes > 0 && *its > target[shared]) {
      place->shared_after = static_cast<uint32_t>(shared);
      break;
    }
    matched = static_cast<uint32_t>(shared);
    parting = Parting(matched, target[matched]);
  }
  place->index = count - left;
  place->at = static_cast<uint32_t>(p - entries);
  place->shared_before = matched;
}

CELLAR_INLINE LeafPlace SearchLeaf(const Leaf* leaf, std::string_view key) {
  LeafPlace place{};
  const size_t prefix_bytes = leaf->prefix_bytes;
  if (!HasPrefix(key, leaf->prefix(), prefix_bytes)) [[unlikely]] {
    if (key < View(leaf->prefix(), prefix_bytes)) return place;
    place.group = leaf->groups - 1u;
    place.index = leaf->counts()[place.group];
    place.at = leaf->entries_bytes();
    return place;
  }
  place.has_prefix = true;
  const std::string_view rest = Behind(key, prefix_bytes);
  const uint32_t not_above = GroupsNotAbove(leaf, rest);
  place.group = not_above - static_cast<uint32_t>(not_above > 0);
  const uint8_t* const group = leaf->entries() + leaf->offsets()[place.group];
  constexpr size_t kLines{4};  // nearly always at least: the core's own prefetcher does the rest
  for (size_t line = 1; line <= kLines; ++line) __builtin_prefetch(group + line * kCacheLineBytes);
  if (leaf->dictionary_bytes > 0)
    WalkGroupOf<true>(leaf, rest, &place);
  else
    WalkGroupOf<false>(leaf, rest, &place);
  return place;
}

}  // namespace cellar::btree_internal
