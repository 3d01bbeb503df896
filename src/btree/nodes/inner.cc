// Building of inner nodes. See inner.h.
#include "btree/nodes/inner.h"

#include <algorithm>
#include <cstring>

namespace cellar::btree_internal {
namespace {

bool FitsInner(const ChildList& list, size_t begin, size_t end) {
  if (end - begin < kInnerChildrenKept) return true;
  return PlanInner(list, begin, end).used <= kInnerBytesMax;
}

void Cut(const ChildList& list, size_t begin, size_t end, std::vector<size_t>* ends) {
  if (FitsInner(list, begin, end)) {
    ends->push_back(end);
    return;
  }
  uint64_t total = 0;
  for (size_t i = begin; i < end; ++i) total += 20 + list.item(i).separator_bytes;
  uint64_t below = 0;
  size_t middle = begin;
  while (below * 2 < total) below += 20 + list.item(middle++).separator_bytes;
  middle = std::clamp(middle, begin + kInnerChildrenMin, end - kInnerChildrenMin);
  Cut(list, begin, middle, ends);
  Cut(list, middle, end, ends);
}

}  // namespace

uint32_t FindAmongEqualHeads(const Inner* node, std::string_view rest, uint32_t low,
                             uint32_t high) {
  const uint32_t head = Head(Bytes(rest), rest.size());
  while (high < node->separators() && node->heads()[high] == head) ++high;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (IsBelow(rest, node->rest(middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// In place, each array moves up by another distance, so the parts go from the last to the first.
// The header is written before them: the arrays' addresses in `to` follow from it, and those in
// `from` have been taken by then.
void InsertChild(const Inner* from, uint32_t i, void* pointer, uint32_t units,
                 std::string_view rest, Inner* to) {
  const uint32_t children = from->children;
  const uint32_t separators = children - 1;
  const uint32_t rests_before = i == 0 ? 0 : from->ends()[i - 1];
  const uint32_t rests_end = from->ends()[separators - 1];
  const auto rest_bytes = static_cast<uint32_t>(rest.size());
  const uint32_t used = from->used + static_cast<uint32_t>(InnerGrowth(children, rest_bytes));
  // Where the parts are; in the same node each part moves up, so the last one goes first.
  const uint8_t* const heads = reinterpret_cast<const uint8_t*>(from->heads());
  const auto* const pointers = reinterpret_cast<const uint8_t*>(from->pointers());
  const auto* const from_units = reinterpret_cast<const uint8_t*>(from->units());
  const auto* const ends = reinterpret_cast<const uint8_t*>(from->ends());
  const uint8_t* const rests = from->rests();
  if (to != from) std::memcpy(to->prefix(), from->prefix(), from->prefix_bytes);
  to->children = children + 1;
  to->prefix_bytes = from->prefix_bytes;
  to->used = used;
  // Of an array with elements of `width` bytes: all, with a gap before the `at`-th one.
  auto open_gap = [](void* array, const uint8_t* old, size_t width, size_t at, size_t count) {
    auto* const bytes = static_cast<uint8_t*>(array);
    std::memmove(bytes + (at + 1) * width, old + at * width, (count - at) * width);
    std::memmove(bytes, old, at * width);
  };
  std::memmove(to->rests() + rests_before + rest_bytes, rests + rests_before,
               rests_end - rests_before);
  std::memmove(to->rests(), rests, rests_before);
  if (rest_bytes > 0) std::memcpy(to->rests() + rests_before, rest.data(), rest_bytes);
  open_gap(to->ends(), ends, sizeof(uint32_t), i, separators);
  to->ends()[i] = rests_before + rest_bytes;
  for (uint32_t s = i + 1; s <= separators; ++s) to->ends()[s] += rest_bytes;
  open_gap(to->units(), from_units, sizeof(uint32_t), i + 1, children);
  to->units()[i + 1] = units;
  open_gap(to->pointers(), pointers, sizeof(void*), i + 1, children);
  to->pointers()[i + 1] = pointer;
  open_gap(to->heads(), heads, sizeof(uint32_t), i, separators);
  to->heads()[i] = Head(Bytes(rest), rest_bytes);
  for (size_t s = children; s < Inner::HeadSlots(children + 1); ++s) to->heads()[s] = ~uint32_t{0};
}

void ChildList::Reset(std::string_view base) {
  base_ = base;
  bytes_.clear();
  items_.clear();
}

void ChildList::AppendChildren(const Inner* node, uint32_t begin, uint32_t end,
                               std::string_view separator) {
  if (begin == end) return;
  Append(node->pointers()[begin], node->units()[begin], separator);
  const std::string_view prefix =
      begin + 1 < end ? node->prefix_view().substr(base_.size()) : std::string_view();
  for (uint32_t i = begin + 1; i < end; ++i) {
    const std::string_view rest = node->rest(i - 1);
    items_.push_back({node->pointers()[i], node->units()[i],
                      static_cast<uint32_t>(prefix.size() + rest.size()), bytes_.size()});
    bytes_.append(prefix);
    bytes_.append(rest);
  }
}

void ChildList::Append(void* pointer, uint32_t units, std::string_view separator) {
  if (items_.empty()) separator = base_;
  CELLAR_ASSERT(separator.size() >= base_.size());
  separator.remove_prefix(base_.size());
  items_.push_back({pointer, units, static_cast<uint32_t>(separator.size()), bytes_.size()});
  bytes_.append(separator);
}

InnerPlan PlanInner(const ChildList& list, size_t begin, size_t end) {
  const size_t children = end - begin;
  InnerPlan plan{};
  size_t rests = 0;
  if (children > 1) {
    // Sorted strings share what the first and the last of them share.
    plan.prefix_bytes =
        static_cast<uint32_t>(CommonPrefix(list.separator(begin + 1), list.separator(end - 1)));
    for (size_t i = begin + 1; i < end; ++i)
      rests += list.item(i).separator_bytes - plan.prefix_bytes;
  }
  const size_t prefix_bytes = children > 1 ? list.base().size() + plan.prefix_bytes : 0;
  plan.used = sizeof(Inner) + Inner::PrefixRoom(prefix_bytes) + 4 * Inner::HeadSlots(children) +
              12 * children + 4 * (children - 1) + rests;
  return plan;
}

// The separator before child `begin` is left to the parent, so n children have n - 1 here. A node
// of one child has no prefix either: there is nothing that it could be common to.
void WriteInner(const ChildList& list, size_t begin, size_t end, const InnerPlan& plan,
                Inner* node) {
  const size_t children = end - begin;
  CELLAR_ASSERT(children > 0);
  node->used = static_cast<uint32_t>(plan.used);
  node->children = static_cast<uint32_t>(children);
  node->prefix_bytes =
      children > 1 ? static_cast<uint32_t>(list.base().size()) + plan.prefix_bytes : 0;
  if (children > 1) {
    uint8_t* const prefix = node->prefix();
    if (!list.base().empty()) std::memcpy(prefix, list.base().data(), list.base().size());
    if (plan.prefix_bytes > 0)
      std::memcpy(prefix + list.base().size(), list.separator(begin + 1).data(), plan.prefix_bytes);
  }
  uint32_t* const heads = node->heads();
  void** const pointers = node->pointers();
  uint32_t* const units = node->units();
  uint32_t* const ends = node->ends();
  uint8_t* p = node->rests();
  uint32_t rests = 0;
  for (size_t i = 0; i < children; ++i) {
    const ChildList::Item& item = list.item(begin + i);
    pointers[i] = item.pointer;
    units[i] = item.units;
    if (i == 0) continue;
    const std::string_view rest = list.separator(begin + i).substr(plan.prefix_bytes);
    heads[i - 1] = Head(Bytes(rest), rest.size());
    if (!rest.empty()) std::memcpy(p, rest.data(), rest.size());
    p += rest.size();
    rests += static_cast<uint32_t>(rest.size());
    ends[i - 1] = rests;
  }
  for (size_t i = children - 1; i < Inner::HeadSlots(children); ++i) heads[i] = ~uint32_t{0};
  CELLAR_ASSERT(p == node->bytes() + plan.used);
}

void CutIntoInners(const ChildList& list, bool at_right_edge, std::vector<size_t>* ends) {
  ends->clear();
  const size_t size = list.size();
  if (at_right_edge && size > 2 * kInnerChildrenKept && !FitsInner(list, 0, size) &&
      FitsInner(list, 0, size - kInnerChildrenMin)) {
    ends->push_back(size - kInnerChildrenMin);
    ends->push_back(size);
    return;
  }
  if (size > 0) Cut(list, 0, size, ends);
}

void PackIntoInners(const ChildList& list, std::vector<size_t>* ends) {
  ends->clear();
  size_t begin = 0;
  while (begin < list.size()) {
    size_t end = std::min<size_t>(begin + kInnerChildrenKept - 1, list.size());
    for (const size_t step : {size_t{32}, size_t{8}, size_t{1}})
      while (end + step <= list.size() && FitsInner(list, begin, end + step)) end += step;
    // The last node gets its minimum from the one before.
    const size_t left = list.size() - end;
    if (left > 0 && left < kInnerChildrenMin && end - begin >= 2 * kInnerChildrenMin)
      end -= kInnerChildrenMin - left;
    ends->push_back(end);
    begin = end;
  }
}

}  // namespace cellar::btree_internal
