// Editing of one leaf. See leaf.h for the picture, and leaf_search.h for the search.
#include "btree/leaf.h"

#include <cstring>
#include <string>

#include "btree/btree.h"
#include "btree/leaf_search.h"

namespace cellar::btree_internal {
namespace {

// Replaces old_bytes at `at` by room for new_bytes.
void ShiftTail(Leaf* leaf, uint32_t at, uint32_t old_bytes, uint32_t new_bytes) {
  const uint32_t used = leaf->used + new_bytes - old_bytes;
  CELLAR_ASSERT(used <= leaf->capacity);
  uint8_t* const from = leaf->entries() + at + old_bytes;
  std::memmove(leaf->entries() + at + new_bytes, from,
               static_cast<size_t>(leaf->entries_end() - from));
  leaf->used = used;
}

void ShiftOffsets(Leaf* leaf, uint32_t from_group, int64_t growth) {
  AddFrom(leaf->offsets(), leaf->group_capacity, from_group, static_cast<uint16_t>(growth));
}

void InsertGroup(Leaf* leaf, uint32_t group, uint32_t head, uint32_t offset, uint32_t count) {
  CELLAR_ASSERT(leaf->groups < leaf->group_capacity);
  const size_t moved = leaf->groups - group;
  std::memmove(leaf->heads() + group + 1, leaf->heads() + group, moved * sizeof(uint32_t));
  std::memmove(leaf->offsets() + group + 1, leaf->offsets() + group, moved * sizeof(uint16_t));
  std::memmove(leaf->counts() + group + 1, leaf->counts() + group, moved);
  leaf->heads()[group] = head;
  leaf->offsets()[group] = static_cast<uint16_t>(offset);
  leaf->counts()[group] = static_cast<uint8_t>(count);
  ++leaf->groups;
}

void RemoveGroup(Leaf* leaf, uint32_t group) {
  const size_t moved = static_cast<size_t>(leaf->groups) - group - 1;
  std::memmove(leaf->heads() + group, leaf->heads() + group + 1, moved * sizeof(uint32_t));
  std::memmove(leaf->offsets() + group, leaf->offsets() + group + 1, moved * sizeof(uint16_t));
  std::memmove(leaf->counts() + group, leaf->counts() + group + 1, moved);
  --leaf->groups;
}

void CountLarge(Leaf* leaf, const LargeValue* value, int sign) {
  if (value == nullptr) return;
  const uint32_t units = value->capacity / 64;
  leaf->large_count = sign > 0 ? leaf->large_count + 1 : leaf->large_count - 1;
  leaf->large_units = sign > 0 ? leaf->large_units + units : leaf->large_units - units;
}

// How an entry's lengths field looks after its neighbour has changed: only sizes matter here.
ValueRef ValueShape(const Entry& entry) {
  return entry.is_large ? entry.value_ref() : ValueRef{entry.value, entry.value_bytes, nullptr};
}

size_t LengthsBytes(uint32_t shared, uint32_t suffix_bytes, const ValueRef& value) {
  const size_t value_bytes = value.large != nullptr ? kLargeReferenceBytes : value.bytes;
  return EntryOverheadBytes(shared, suffix_bytes, value) - value_bytes;
}

}  // namespace

uint32_t FindAmongEqualHeads(const Leaf* leaf, std::string_view rest, uint32_t low, uint32_t high) {
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    Entry entry;
    ParseEntry(leaf->entries() + leaf->offsets()[middle], &entry);
    if (IsBelow(rest, View(entry.suffix, entry.suffix_bytes)))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

LeafPlace FindInLeaf(const Leaf* leaf, std::string_view key) { return SearchLeaf(leaf, key); }

void TouchGroup(const Leaf* leaf, std::string_view key) {
  uint32_t group = 0;
  if (key.size() > leaf->prefix_bytes) {
    const std::string_view rest = key.substr(leaf->prefix_bytes);
    const uint32_t head = Head(Bytes(rest), rest.size());
    const HeadRange range = FindHeadOfAll(leaf->heads(), leaf->groups, head);
    if (range.not_above > 0) group = range.not_above - 1;
  }
  TouchLines(leaf->prefix(), leaf->entries());
  TouchLines(leaf->entries() + leaf->offsets()[group], leaf->group_end(group));
}

LeafEdit PlanInsert(const Leaf* leaf, const LeafPlace& place, std::string_view key,
                    const ValueRef& value) {
  CELLAR_ASSERT(!place.found);
  CELLAR_ASSERT(place.has_prefix);
  const auto rest_bytes = static_cast<uint32_t>(key.size() - leaf->prefix_bytes);
  const uint32_t suffix_bytes = rest_bytes - place.shared_before;
  LeafEdit edit{};
  edit.new_bytes = static_cast<uint32_t>(
      EntryOverheadBytes(place.shared_before, suffix_bytes, value) + suffix_bytes);
  if (place.group == leaf->groups || place.index == leaf->counts()[place.group]) return edit;

  // The next entry shares at least as much with the new key as with its old predecessor.
  const uint8_t* const at = leaf->entries() + place.at;
  Entry next;
  ParseEntry(at, &next);
  CELLAR_ASSERT(place.shared_after >= next.shared);
  const uint32_t dropped = place.shared_after - next.shared;
  if (dropped == 0) return edit;
  edit.old_bytes = static_cast<uint32_t>(next.suffix - at) + dropped;
  edit.new_bytes += static_cast<uint32_t>(
      LengthsBytes(place.shared_after, next.suffix_bytes - dropped, ValueShape(next)));
  return edit;
}

void ApplyInsert(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, std::string_view key,
                 const ValueRef& value) {
  const std::string_view rest = key.substr(leaf->prefix_bytes);
  uint8_t* const at = leaf->entries() + place.at;
  Entry next{};
  const bool cuts_next = edit.old_bytes > 0;
  if (cuts_next) ParseEntry(at, &next);
  const ValueRef next_shape = ValueShape(next);
  const uint32_t dropped = place.shared_after - next.shared;
  if (place.group == leaf->groups) InsertGroup(leaf, place.group, 0, place.at, 0);
  CELLAR_ASSERT(leaf->counts()[place.group] < kGroupEntriesMax);
  ShiftTail(leaf, place.at, edit.old_bytes, edit.new_bytes);

  const auto suffix_bytes = static_cast<uint32_t>(rest.size()) - place.shared_before;
  uint8_t* p = WriteEntryLengths(at, place.shared_before, suffix_bytes, value);
  if (suffix_bytes > 0) std::memcpy(p, rest.data() + place.shared_before, suffix_bytes);
  p = WriteEntryValue(p + suffix_bytes, value);
  if (cuts_next)
    p = WriteEntryLengths(p, place.shared_after, next.suffix_bytes - dropped, next_shape);
  CELLAR_ASSERT(p == at + edit.new_bytes);

  ShiftOffsets(leaf, place.group + 1, edit.growth());
  if (place.index == 0) leaf->heads()[place.group] = Head(Bytes(rest), rest.size());
  ++leaf->counts()[place.group];
  ++leaf->count;
  CountLarge(leaf, value.large, 1);
}

LeafEdit PlanReplace(const Leaf* leaf, const LeafPlace& place, const ValueRef& value) {
  CELLAR_ASSERT(place.found);
  const uint8_t* const at = leaf->entries() + place.at;
  Entry entry;
  ParseEntry(at, &entry);
  LeafEdit edit{};
  edit.old_bytes = static_cast<uint32_t>(entry.end - at);
  edit.new_bytes = static_cast<uint32_t>(
      EntryOverheadBytes(entry.shared, entry.suffix_bytes, value) + entry.suffix_bytes);
  return edit;
}

void ApplyReplace(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, const ValueRef& value) {
  uint8_t* const at = leaf->entries() + place.at;
  Entry entry;
  ParseEntry(at, &entry);
  CountLarge(leaf, entry.is_large ? entry.large() : nullptr, -1);
  const size_t lengths_bytes = LengthsBytes(entry.shared, entry.suffix_bytes, value);
  // The suffix moves only if the lengths field changes its size; the tail makes room before, or
  // closes up after.
  const auto growth = edit.growth();
  if (growth > 0) ShiftTail(leaf, place.at, edit.old_bytes, edit.new_bytes);
  if (at + lengths_bytes != entry.suffix)
    std::memmove(at + lengths_bytes, entry.suffix, entry.suffix_bytes);
  WriteEntryLengths(at, entry.shared, entry.suffix_bytes, value);
  WriteEntryValue(at + lengths_bytes + entry.suffix_bytes, value);
  if (growth < 0) ShiftTail(leaf, place.at, edit.old_bytes, edit.new_bytes);
  if (growth != 0) ShiftOffsets(leaf, place.group + 1, growth);
  CountLarge(leaf, value.large, 1);
}

LeafEdit PlanRewrite(const Leaf* leaf, const LeafPlace& place, std::string_view rest,
                     const ValueRef& value) {
  const uint8_t* const at = leaf->entries() + place.at;
  Entry old;
  ParseEntry(at, &old);
  const auto suffix_bytes = static_cast<uint32_t>(rest.size()) - place.shared_before;
  LeafEdit edit{};
  edit.old_bytes = static_cast<uint32_t>(old.end - at);
  edit.new_bytes = static_cast<uint32_t>(
      EntryOverheadBytes(place.shared_before, suffix_bytes, value) + suffix_bytes);
  return edit;
}

void ApplyRewrite(Leaf* leaf, const LeafPlace& place, const LeafEdit& edit, std::string_view rest,
                  const ValueRef& value) {
  if (edit.growth() != 0) {
    ShiftTail(leaf, place.at, edit.old_bytes, edit.new_bytes);
    ShiftOffsets(leaf, place.group + 1, edit.growth());
  }
  uint8_t* const at = leaf->entries() + place.at;
  const std::string_view suffix = rest.substr(place.shared_before);
  uint8_t* const p =
      WriteEntryLengths(at, place.shared_before, static_cast<uint32_t>(suffix.size()), value);
  std::memcpy(p, suffix.data(), suffix.size());
  uint8_t* const end = WriteEntryValue(p + suffix.size(), value);
  CELLAR_ASSERT(end == at + edit.new_bytes);
  if (place.index == 0) leaf->heads()[place.group] = Head(Bytes(rest), rest.size());
}

void RemoveFromLeaf(Leaf* leaf, const LeafPlace& place) {
  CELLAR_ASSERT(place.found);
  CELLAR_ASSERT(leaf->count > 1);
  uint8_t* const at = leaf->entries() + place.at;
  Entry removed;
  ParseEntry(at, &removed);
  CountLarge(leaf, removed.is_large ? removed.large() : nullptr, -1);
  auto old_bytes = static_cast<uint32_t>(removed.end - at);
  uint32_t new_bytes = 0;
  if (place.index + 1 < leaf->counts()[place.group]) {
    // What the next entry shared with the removed one and not with the one before, it takes over.
    Entry next;
    ParseEntry(removed.end, &next);
    const uint32_t gained = next.shared > removed.shared ? next.shared - removed.shared : 0;
    if (gained > 0) {
      const ValueRef shape = ValueShape(next);
      const size_t lengths_bytes = LengthsBytes(removed.shared, next.suffix_bytes + gained, shape);
      std::memmove(at + lengths_bytes, removed.suffix, gained);
      WriteEntryLengths(at, removed.shared, next.suffix_bytes + gained, shape);
      new_bytes = static_cast<uint32_t>(lengths_bytes) + gained;
      old_bytes = static_cast<uint32_t>(next.suffix - at);
    }
  }
  CELLAR_ASSERT(new_bytes <= old_bytes);
  ShiftTail(leaf, place.at, old_bytes, new_bytes);
  ShiftOffsets(leaf, place.group + 1, static_cast<int64_t>(new_bytes) - old_bytes);
  --leaf->count;
  if (--leaf->counts()[place.group] == 0) {
    RemoveGroup(leaf, place.group);
  } else if (place.index == 0) {
    Entry first;
    ParseEntry(at, &first);
    leaf->heads()[place.group] = Head(first.suffix, first.suffix_bytes);
  }
}

size_t SplitGroupGrowth(const Leaf* leaf, uint32_t group, uint32_t first_index) {
  const uint8_t* p = leaf->entries() + leaf->offsets()[group];
  Entry entry;
  for (uint32_t i = 0; i < first_index; ++i, p = entry.end) ParseEntry(p, &entry);
  ParseEntry(p, &entry);
  const ValueRef shape = ValueShape(entry);
  return entry.shared + LengthsBytes(0, entry.shared + entry.suffix_bytes, shape) -
         static_cast<size_t>(entry.suffix - p);
}

void SplitGroup(Leaf* leaf, uint32_t group, uint32_t first_index, std::string* scratch) {
  const uint32_t count = leaf->counts()[group];
  CELLAR_ASSERT(first_index > 0);
  CELLAR_ASSERT(first_index < count);
  const uint8_t* p = leaf->entries() + leaf->offsets()[group];
  Entry entry;
  scratch->clear();
  for (uint32_t i = 0;; ++i, p = entry.end) {
    ParseEntry(p, &entry);
    scratch->resize(entry.shared);
    scratch->append(View(entry.suffix, entry.suffix_bytes));
    if (i == first_index) break;
  }
  const ValueRef shape = ValueShape(entry);
  const auto key_bytes = static_cast<uint32_t>(scratch->size());
  const auto at = static_cast<uint32_t>(p - leaf->entries());
  const auto old_bytes = static_cast<uint32_t>(entry.value - p);
  const auto new_bytes = static_cast<uint32_t>(LengthsBytes(0, key_bytes, shape)) + key_bytes;
  ShiftTail(leaf, at, old_bytes, new_bytes);
  uint8_t* to = WriteEntryLengths(leaf->entries() + at, 0, key_bytes, shape);
  std::memcpy(to, Bytes(*scratch), key_bytes);
  ShiftOffsets(leaf, group + 1, static_cast<int64_t>(new_bytes) - old_bytes);
  leaf->counts()[group] = static_cast<uint8_t>(first_index);
  InsertGroup(leaf, group + 1, Head(Bytes(*scratch), key_bytes), at, count - first_index);
}

void AddGroupRoom(Leaf* leaf) {
  CELLAR_ASSERT(leaf->group_capacity + kGroupRoomStep <= kLeafGroupsMax);
  CELLAR_ASSERT(leaf->used + kGroupRoomGrowth <= leaf->capacity);
  // From the back to the front, since each part moves up over the place of the one behind it.
  const uint8_t* const counts = leaf->counts();
  const uint16_t* const offsets = leaf->offsets();
  uint8_t* const prefix = leaf->prefix();
  std::memmove(prefix + kGroupRoomGrowth, prefix,
               static_cast<size_t>(leaf->entries_end() - prefix));
  leaf->group_capacity = static_cast<uint8_t>(leaf->group_capacity + kGroupRoomStep);
  leaf->used += static_cast<uint32_t>(kGroupRoomGrowth);
  std::memmove(leaf->counts(), counts, leaf->groups);
  std::memmove(leaf->offsets(), offsets, leaf->groups * sizeof(uint16_t));
  // FindHead reads whole quadruples: what it may see must be defined.
  std::memset(leaf->heads() + leaf->groups, 0,
              (leaf->group_capacity - static_cast<size_t>(leaf->groups)) * sizeof(uint32_t));
}

uint64_t ValidateLeaf(const Leaf* leaf, std::string* first, std::string* last) {
  CELLAR_ASSERT(leaf->count > 0);
  CELLAR_ASSERT(leaf->groups > 0);
  CELLAR_ASSERT(leaf->groups <= leaf->group_capacity);
  CELLAR_ASSERT(leaf->group_capacity <= kLeafGroupsMax);
  CELLAR_ASSERT(leaf->group_capacity % 4 == 0);
  CELLAR_ASSERT(leaf->used <= leaf->capacity);
  CELLAR_ASSERT(leaf->count == 1 || leaf->used <= LeafBytesLimit(leaf->prefix_bytes));
  const std::string prefix(View(leaf->prefix(), leaf->prefix_bytes));
  uint64_t payload_bytes = 0;
  uint32_t large_count = 0, large_units = 0, group = 0, in_group = 0;
  std::string scratch, previous;
  const uint8_t* p = leaf->entries();
  WalkLeaf(leaf, &scratch, [&](uint32_t i, std::string_view rest, const Entry& entry) {
    if (in_group == 0) {
      CELLAR_ASSERT(group < leaf->groups);
      CELLAR_ASSERT(leaf->offsets()[group] == p - leaf->entries());
      CELLAR_ASSERT(leaf->heads()[group] == Head(Bytes(rest), rest.size()));
      CELLAR_ASSERT(leaf->counts()[group] > 0);
      CELLAR_ASSERT(leaf->counts()[group] <= kGroupEntriesMax);
      CELLAR_ASSERT(entry.shared == 0);
    } else {
      CELLAR_ASSERT(entry.shared == CommonPrefix(previous, rest));
    }
    if (i == 0)
      *first = prefix + std::string(rest);
    else
      CELLAR_ASSERT(previous < rest);
    CELLAR_ASSERT(entry.is_large == (entry.value_bytes > kInlineValueBytesMax));
    if (entry.is_large) {
      CELLAR_ASSERT(entry.large()->bytes == entry.value_bytes);
      ++large_count;
      large_units += entry.large()->capacity / 64;
    }
    payload_bytes += prefix.size() + rest.size() + entry.value_bytes;
    CELLAR_ASSERT(prefix.size() + rest.size() <= kTreeKeyBytesMax);
    previous = rest;
    p = entry.end;
    if (++in_group == leaf->counts()[group]) {
      ++group;
      in_group = 0;
    }
    return true;
  });
  CELLAR_ASSERT(group == leaf->groups);
  CELLAR_ASSERT(p == leaf->entries_end());
  CELLAR_ASSERT(large_count == leaf->large_count);
  CELLAR_ASSERT(large_units == leaf->large_units);
  *last = prefix + previous;
  return payload_bytes;
}

}  // namespace cellar::btree_internal
