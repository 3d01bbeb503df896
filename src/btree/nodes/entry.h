// One entry of a leaf, and the value that it holds.
//
//   | lengths u16 | more lengths | suffix | value |
//
//   lengths   bits 0..5   shared: how many bytes, after the leaf's prefix, are those of the key
//                         before (exactly: the next byte differs); 0 for the first of a group.
//                         63 = it stands in "more lengths" as a varint
//             bits 6..10  bytes of the suffix, which is the rest of the key (in a leaf with a
//                         dictionary, what is stored of it: dictionary.h); 31 = a varint too
//             bits 11..15 bytes of the value; 30 = a u16 follows; 31 = the value is out of line and
//                         `value` is | LargeValue* u64 | its bytes u32 |
//   more lengths  those that are named above, in this order
//
// A cell of a sparse row (15 bytes of column and timestamp, 13 of value) thus costs 30 bytes, or 21
// if its column is a word.
//
// A value above kInlineValueBytesMax lives in a block of its own. It has a birth epoch like a node,
// and is shared by all copies of the leaf that points to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/coding.h"
#include "base/copy_bytes.h"

namespace cellar::btree_internal {

inline constexpr size_t kInlineValueBytesMax{512};
inline constexpr size_t kLargeReferenceBytes{12};

struct LargeValue {
  uint64_t birth;
  uint32_t bytes;     // of the value
  uint32_t capacity;  // allocated, with this header
  uint8_t* data() { return reinterpret_cast<uint8_t*>(this + 1); }
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(this + 1); }
};
static_assert(sizeof(LargeValue) == 16);

// What the lengths of an entry tell of its value.
struct ValueShape {
  uint32_t bytes{0};  // of the value itself, wherever it lives
  bool is_large{false};
};

// A value as entries hold it: bytes to be copied, or a block to be pointed to.
struct ValueRef {
  const uint8_t* data{nullptr};
  uint32_t bytes{0};
  LargeValue* large{nullptr};  // then data is not used

  ValueShape shape() const { return {bytes, large != nullptr}; }
};

struct Entry {
  uint32_t shared;
  uint32_t suffix_bytes;  // stored
  uint32_t value_bytes;   // of the value itself, wherever it lives
  bool is_large;
  const uint8_t* suffix;
  const uint8_t* value;  // in the leaf: the bytes, or the reference
  const uint8_t* end;    // the next entry

  LargeValue* large() const {
    // A leaf holds the pointer as 8 bytes. NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<LargeValue*>(LoadLittleEndian<uint64_t>(value));
  }
  ValueRef value_ref() const {
    if (is_large) return {nullptr, value_bytes, large()};
    return {value, value_bytes, nullptr};
  }
  ValueShape value_shape() const { return {value_bytes, is_large}; }
  // The bytes that a reader wants.
  std::string_view value_view() const {
    const uint8_t* bytes = is_large ? large()->data() : value;
    return {reinterpret_cast<const char*>(bytes), value_bytes};
  }
};

inline constexpr uint32_t kSharedEscape{63};
inline constexpr uint32_t kSuffixEscape{31};
inline constexpr uint32_t kValueWide{30};
inline constexpr uint32_t kValueLarge{31};

// ParseEntry of any entry; for those with "more lengths".
Entry ParseLongEntry(const uint8_t* p);

// ParseEntry of an entry without "more lengths", as nearly all are; false for the others, and for a
// suffix of 30 bytes, since that makes the question shorter.
[[nodiscard]] inline bool ParseShortEntry(const uint8_t* p, Entry* entry) {
  const uint32_t lengths = LoadLittleEndian<uint16_t>(p);
  // What is added makes each field that says "more lengths" carry into the next one, and touches
  // none of the bits where that shows.
  constexpr uint32_t kAdded{1 | 2 << 6 | 2 << 11};
  constexpr uint32_t kCarried{1 << 6 | 1 << 11 | 1 << 16};
  static_assert((kAdded & kCarried) == 0);
  static_assert(kSharedEscape == 63 && kSuffixEscape == 31 && kValueWide == 30);
  if ((((lengths + kAdded) ^ lengths) & kCarried) != 0) [[unlikely]]
    return false;
  entry->shared = lengths & 63;
  entry->suffix_bytes = lengths >> 6 & 31;
  entry->value_bytes = lengths >> 11;
  entry->is_large = false;
  entry->suffix = p + 2;
  entry->value = entry->suffix + entry->suffix_bytes;
  entry->end = entry->suffix + (entry->suffix_bytes + entry->value_bytes);
  return true;
}

// Trusts the bytes: a leaf in memory is well-formed. `*entry` is only assigned to here, so that a
// caller's loop keeps it in registers.
inline void ParseEntry(const uint8_t* p, Entry* entry) {
  if (!ParseShortEntry(p, entry)) [[unlikely]]
    *entry = ParseLongEntry(p);
}

// Of an entry, what it says that it shares: 63 stands for as much or more.
inline uint32_t SharedField(const uint8_t* p) {
  return LoadLittleEndian<uint16_t>(p) & kSharedEscape;
}
// The next one.
inline const uint8_t* EntryEnd(const uint8_t* p) {
  Entry entry;
  if (ParseShortEntry(p, &entry)) [[likely]]
    return entry.end;
  return ParseLongEntry(p).end;
}

// The rest of ParseEntryChecked, for an entry with "more lengths", which are not 0.
bool ParseLongEntryChecked(const uint8_t* p, const uint8_t* end, Entry* entry);

// Distrusts them: false if the entry at `p` does not end at or before `end`, or is not written in
// the shortest way. For images.
inline bool ParseEntryChecked(const uint8_t* p, const uint8_t* end, Entry* entry) {
  if (end - p < 2) return false;
  const uint32_t lengths = LoadLittleEndian<uint16_t>(p);
  entry->shared = lengths & 63;
  entry->suffix_bytes = lengths >> 6 & 31;
  entry->value_bytes = lengths >> 11;
  if (entry->shared == kSharedEscape || entry->suffix_bytes == kSuffixEscape ||
      entry->value_bytes >= kValueWide) [[unlikely]]
    return ParseLongEntryChecked(p, end, entry);
  entry->is_large = false;
  entry->suffix = p + 2;
  entry->value = entry->suffix + entry->suffix_bytes;
  entry->end = entry->value + entry->value_bytes;
  return static_cast<uint32_t>(end - p) >= 2 + entry->suffix_bytes + entry->value_bytes;
}

// Whether an entry has no "more lengths", as nearly all have none.
inline bool AreShortLengths(uint32_t shared, uint32_t suffix_bytes, ValueShape value) {
  return shared < kSharedEscape && suffix_bytes < kSuffixEscape && value.bytes < kValueWide;
}

// The lengths of an entry without "more lengths".
inline uint16_t ShortLengths(uint32_t shared, uint32_t suffix_bytes, uint32_t value_bytes) {
  return static_cast<uint16_t>(shared | suffix_bytes << 6 | value_bytes << 11);
}

// What follows for the entries that have some.
size_t LongEntryOverheadBytes(uint32_t shared, uint32_t suffix_bytes, ValueShape value);
uint8_t* WriteLongEntryLengths(uint8_t* to, uint32_t shared, uint32_t suffix_bytes,
                               ValueShape value);

// Bytes of everything but the suffix.
inline size_t EntryOverheadBytes(uint32_t shared, uint32_t suffix_bytes, ValueShape value) {
  if (AreShortLengths(shared, suffix_bytes, value)) [[likely]]
    return 2 + size_t{value.bytes};
  return LongEntryOverheadBytes(shared, suffix_bytes, value);
}

// Writes the lengths; returns where the suffix goes.
inline uint8_t* WriteEntryLengths(uint8_t* to, uint32_t shared, uint32_t suffix_bytes,
                                  ValueShape value) {
  if (AreShortLengths(shared, suffix_bytes, value)) [[likely]] {
    StoreLittleEndian(to, ShortLengths(shared, suffix_bytes, value.bytes));
    return to + 2;
  }
  return WriteLongEntryLengths(to, shared, suffix_bytes, value);
}

// Writes the value field; returns its end. Writes nothing behind it.
inline uint8_t* WriteEntryValue(uint8_t* to, const ValueRef& value) {
  if (value.large != nullptr) {
    StoreLittleEndian(to, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(value.large)));
    StoreLittleEndian(to + 8, value.bytes);
    return to + kLargeReferenceBytes;
  }
  CopyBytes(to, value.data, value.bytes);
  return to + value.bytes;
}

}  // namespace cellar::btree_internal
