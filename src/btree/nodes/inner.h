// Inner node: children and the shortest byte strings that separate them.
//
//   0  birth u64          epoch in which this copy was made
//   8  capacity u32       bytes allocated
//  12  used u32
//  16  children u32       n >= 1
//  20  prefix_bytes u32   common to all separators
//  24  prefix, filled up to a multiple of 8
//  ..  heads u32[n-1, rounded up to a multiple of 4]   first 4 bytes of each separator behind the
//                         prefix, in numeric order; ffffffff behind the last
//  ..  child pointers u64[n]
//  ..  units u32[n]       memory of each child's leaves and values, in units of 64 bytes, exactly
//  ..  ends u32[n-1]      where each separator's rest ends, from the first one
//  ..  the separators' rests one after another
//
// Child i holds the keys k with separator i-1 <= k < separator i. A separator is the shortest
// prefix of the right neighbour's first key that is above the left one's last key: 4 bytes behind
// the prefix mostly, so a search reads what stands before the pointers, and one of these.
//
// Pointers and units are changed in place, and a child more is inserted by moving what is behind;
// any other change builds the node anew. A node is at most kInnerBytesMax long unless it has fewer
// than kInnerChildrenKept children: separators may be as long as keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/inline.h"
#include "btree/nodes/bytes.h"

namespace cellar::btree_internal {

inline constexpr size_t kInnerBytesMax{4096};
inline constexpr uint32_t kInnerChildrenKept{8};  // such a node is split only with at least these
inline constexpr uint32_t kInnerChildrenMin{4};   // one with fewer is merged if it has a neighbour
inline constexpr uint32_t kChildrenForAllHeads{6};

struct Inner {
  uint64_t birth;
  uint32_t capacity;
  uint32_t used;
  uint32_t children;
  uint32_t prefix_bytes;

  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this); }
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(this); }
  uint32_t separators() const { return children - 1; }
  static constexpr size_t PrefixRoom(size_t prefix_bytes) {
    return (prefix_bytes + 7) & ~size_t{7};
  }
  const uint8_t* prefix() const { return bytes() + sizeof(Inner); }
  uint8_t* prefix() { return bytes() + sizeof(Inner); }
  std::string_view prefix_view() const { return View(prefix(), prefix_bytes); }
  const uint32_t* heads() const {
    return reinterpret_cast<const uint32_t*>(prefix() + PrefixRoom(prefix_bytes));
  }
  uint32_t* heads() { return reinterpret_cast<uint32_t*>(prefix() + PrefixRoom(prefix_bytes)); }
  static constexpr size_t HeadSlots(size_t children) { return (children - 1 + 3) & ~size_t{3}; }
  void* const* pointers() const {
    return reinterpret_cast<void* const*>(heads() + HeadSlots(children));
  }
  void** pointers() { return reinterpret_cast<void**>(heads() + HeadSlots(children)); }
  const uint32_t* units() const { return reinterpret_cast<const uint32_t*>(pointers() + children); }
  uint32_t* units() { return reinterpret_cast<uint32_t*>(pointers() + children); }
  const uint32_t* ends() const { return units() + children; }
  uint32_t* ends() { return units() + children; }
  const uint8_t* rests() const { return reinterpret_cast<const uint8_t*>(ends() + separators()); }
  uint8_t* rests() { return reinterpret_cast<uint8_t*>(ends() + separators()); }
  // Separator i behind the prefix.
  std::string_view rest(uint32_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends()[i - 1];
    return View(rests() + begin, ends()[i] - begin);
  }
  uint64_t total_units() const {
    uint64_t total = 0;
    for (uint32_t i = 0; i < children; ++i) total += units()[i];
    return total;
  }
};
static_assert(sizeof(Inner) == 24);

// How many separators are not above a key of which `rest` stands behind the prefix, if those from
// `low` to `high` have the same head as that: then whole separators decide. Those behind `high` may
// have it too.
uint32_t FindAmongEqualHeads(const Inner* node, std::string_view rest, uint32_t low, uint32_t high);

// The child that holds `key`. O(log children).
CELLAR_INLINE uint32_t FindChild(const Inner* node, std::string_view key) {
  const size_t prefix_bytes = node->prefix_bytes;
  if (!HasPrefix(key, node->prefix(), prefix_bytes)) [[unlikely]]
    return IsBelow(key, node->prefix_view()) ? 0 : node->separators();
  const std::string_view rest = Behind(key, prefix_bytes);
  const uint32_t head = Head(Bytes(rest), rest.size());
  // Halve without branches, which no core could predict, down to a few lines; then count by SIMD.
  const uint32_t* heads = node->heads();
  size_t left = node->separators();
  while (left > kHeadsMax) {
    const size_t half = left / 2 & ~size_t{3};
    // Equal heads must stay in sight: only what is below goes.
    const auto below = static_cast<size_t>(heads[half - 1] < head);
    heads += half & (0 - below);
    left -= half;
  }
  const auto count = static_cast<uint32_t>(left);
  // From the heads on there is memory for all that HeadsNotAboveOfAll reads, but in the smallest
  // nodes.
  static_assert(kChildrenForAllHeads * (sizeof(uint32_t) + sizeof(void*)) >=
                kHeadsMax * sizeof(uint32_t));
  const uint32_t not_above = node->children >= kChildrenForAllHeads
                                 ? HeadsNotAboveOfAll(heads, count, head)
                                 : HeadsNotAbove(heads, count, head);
  const auto skipped = static_cast<uint32_t>(heads - node->heads());
  if (!HasEqualHead(heads, not_above, head)) [[likely]]
    return skipped + not_above;
  return FindAmongEqualHeads(node, rest, skipped + HeadsBelow(heads, not_above, head),
                             skipped + not_above);
}

// Bytes that one more child takes, after a separator of `rest_bytes` behind the prefix.
constexpr size_t InnerGrowth(uint32_t children, size_t rest_bytes) {
  return 4 * (Inner::HeadSlots(children + 1) - Inner::HeadSlots(children)) + 16 + rest_bytes;
}
// *to := `from` with one more child behind child i, after a separator of the prefix and `rest`.
// They may be the same node.
// REQUIRES: from->children > 1; room in `to` for from->used + InnerGrowth.
void InsertChild(const Inner* from, uint32_t i, void* pointer, uint32_t units,
                 std::string_view rest, Inner* to);

// The children of new inner nodes, with what separates them.
class ChildList {
 public:
  struct Item {
    void* pointer;
    uint32_t units;
    uint32_t separator_bytes;  // of the one before this child, behind the base; 0 for the first
    size_t separator_at;
  };

  // Empties the list; `base` is a prefix of all separators to come.
  void Reset(std::string_view base);
  // All of a node's children from `begin` to `end`; `separator` goes before the first of them.
  void AppendChildren(const Inner* node, uint32_t begin, uint32_t end, std::string_view separator);
  // Separators are complete, base included; the first one is not used.
  void Append(void* pointer, uint32_t units, std::string_view separator);

  size_t size() const { return items_.size(); }
  const Item& item(size_t i) const { return items_[i]; }
  std::string_view base() const { return base_; }
  std::string_view separator(size_t i) const {
    return {bytes_.data() + items_[i].separator_at, items_[i].separator_bytes};
  }
  std::string full_separator(size_t i) const { return base_ + std::string(separator(i)); }

 private:
  std::string base_;
  std::string bytes_;
  std::vector<Item> items_;
};

struct InnerPlan {
  uint32_t prefix_bytes;  // behind the list's base
  size_t used;
};
// O(end - begin).
InnerPlan PlanInner(const ChildList& list, size_t begin, size_t end);
// Sets all but birth and capacity. The separator of `begin` stays outside.
void WriteInner(const ChildList& list, size_t begin, size_t end, const InnerPlan& plan,
                Inner* node);
// Cuts the list into stretches of a node each; *ends gets the end of each. `at_right_edge`:
// children are being appended, so full nodes are left behind.
void CutIntoInners(const ChildList& list, bool at_right_edge, std::vector<size_t>* ends);
// Cuts the list into nodes as full as they go; *ends gets the end of each. For lists of any length.
void PackIntoInners(const ChildList& list, std::vector<size_t>* ends);

}  // namespace cellar::btree_internal
