// See scan_ranges.h.
#include "engine/scans/scan_ranges.h"

#include <utility>

#include "base/hash.h"

namespace cellar {

void ClipRanges(const ScanPosition& from, bool reverse, std::vector<KeyRange>* ranges) {
  if (from.row_key.empty()) {  // stood at the end
    ranges->clear();
    return;
  }
  KeyRange left;
  if (reverse) {
    left.end = from.row_done ? KeyBound{from.row_key, false} : Successor(from.row_key);
  } else {
    left.begin = from.row_done ? Successor(from.row_key) : KeyBound{from.row_key, false};
  }
  for (KeyRange& range : *ranges) {
    if (range.begin < left.begin) range.begin = left.begin;
    if (left.end < range.end) range.end = left.end;
  }
  std::erase_if(*ranges, [](const KeyRange& range) { return range.empty(); });
}

void KeepCommon(const KeyRangeSet& wanted, std::vector<KeyRange>* ranges) {
  KeyRangeSet common;
  for (KeyRange& range : *ranges) common.Add(std::move(range));
  common.IntersectWith(wanted);
  *ranges = common.ranges();
}

std::optional<std::string> DecodeFirstComponents(const Order& order, std::string_view bound) {
  for (size_t count = order.components().size(); count > 0; --count) {
    if (order.ComponentsSize(bound, count) != bound.size() || bound.empty()) continue;
    const auto begin = order.components().begin();
    const Order first = Order::FromComponents({begin, begin + static_cast<ptrdiff_t>(count)},
                                              count > 1 ? order.delimiter() : '\0');
    std::string text;
    if (first.Decode(bound, &text)) return text;
  }
  return std::nullopt;
}

bool RowIsDrawn(std::string_view row_key, uint64_t seed, std::optional<double> probability) {
  if (!probability) return true;
  const double fraction = static_cast<double>(Hash64(row_key, seed) >> 11) * 0x1.0p-53;
  return fraction < *probability;
}

}  // namespace cellar
