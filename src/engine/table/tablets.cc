// See tablets.h.
#include "engine/table/tablets.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {

Tablets::Tablets(std::vector<Tablet> tablets) : list_(std::move(tablets)) {
  for (const Tablet& tablet : list_)
    owned_.Add({{tablet.begin, false}, {tablet.end, tablet.end.empty()}});
}

Tablets::Pointer Tablets::Whole() {
  static const Pointer kWhole = Make({Tablet{}});
  return kWhole;
}

Tablets::Pointer Tablets::None() {
  static const Pointer kNone = Make({});
  return kNone;
}

Tablets::Pointer Tablets::Make(std::vector<Tablet> tablets) {
  for (size_t i = 0; i < tablets.size(); ++i) {
    const Tablet& tablet = tablets[i];
    if (tablet.epoch == 0) return nullptr;
    if (!tablet.end.empty() && tablet.begin >= tablet.end) return nullptr;
    if (i > 0 && (tablets[i - 1].end.empty() || tablets[i - 1].end > tablet.begin)) return nullptr;
  }
  return Pointer(new Tablets(std::move(tablets)));
}

const Tablet* Tablets::Find(std::string_view row_key) const {
  const auto behind =
      std::partition_point(list_.begin(), list_.end(),
                           [row_key](const Tablet& tablet) { return tablet.begin <= row_key; });
  if (behind == list_.begin()) return nullptr;
  const Tablet& tablet = *std::prev(behind);
  return tablet.Contains(row_key) ? &tablet : nullptr;
}

Tablets::Pointer Tablets::Split(std::string_view bound) const {
  const Tablet* const tablet = Find(bound);
  if (tablet == nullptr || tablet->begin == bound) return nullptr;
  std::vector<Tablet> list = list_;
  const auto at = list.begin() + (tablet - list_.data());
  Tablet right = *at;
  right.begin = bound;
  at->end = bound;
  list.insert(at + 1, std::move(right));
  return Make(std::move(list));
}

Tablets::Pointer Tablets::Merge(std::string_view row_key) const {
  const Tablet* const tablet = Find(row_key);
  if (tablet == nullptr || tablet == &list_.back()) return nullptr;
  const Tablet& next = *(tablet + 1);
  if (next.begin != tablet->end) return nullptr;
  std::vector<Tablet> list = list_;
  const auto at = list.begin() + (tablet - list_.data());
  at->end = next.end;
  at->epoch = std::max(tablet->epoch, next.epoch);
  list.erase(at + 1);
  return Make(std::move(list));
}

void Tablets::Encode(std::string* to) const {
  PutVarint64(to, list_.size());
  for (const Tablet& tablet : list_) {
    PutLengthPrefixed(to, tablet.begin);
    PutLengthPrefixed(to, tablet.end);
    PutVarint64(to, tablet.epoch);
  }
}

Tablets::Pointer Tablets::Decode(std::string_view* from) {
  uint64_t count = 0;
  if (!GetVarint64(from, &count)) return nullptr;
  std::vector<Tablet> list;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view begin;
    std::string_view end;
    uint64_t epoch = 0;
    if (!GetLengthPrefixed(from, &begin) || !GetLengthPrefixed(from, &end) ||
        !GetVarint64(from, &epoch) || end.size() > kTabletEndBytesMax) {
      return nullptr;
    }
    list.push_back({std::string(begin), std::string(end), epoch});
  }
  return Make(std::move(list));
}

size_t Tablets::memory_bytes() const {
  size_t bytes = sizeof(Tablets) + list_.capacity() * sizeof(Tablet);
  for (const Tablet& tablet : list_) bytes += 2 * (tablet.begin.size() + tablet.end.size());
  return bytes + owned_.ranges().capacity() * sizeof(KeyRange);
}

}  // namespace cellar
