// Entries with long keys or values, entries of doubtful origin, and the writing of entries.
#include "btree/nodes/entry.h"

#include "base/assert.h"
#include "btree/nodes/bytes.h"
#include "btree/nodes/put.h"

namespace cellar::btree_internal {
namespace {

uint32_t ReadVarint(const uint8_t** p) {
  uint32_t value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    const uint32_t byte = *(*p)++;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

uint8_t* WriteVarint(uint8_t* to, uint32_t value) {
  return reinterpret_cast<uint8_t*>(EncodeVarint64(reinterpret_cast<char*>(to), value));
}

size_t VarintBytes(uint32_t value) {
  size_t n = 1;
  for (; value >= 0x80; value >>= 7) ++n;
  return n;
}

// A length that stands in "more lengths": at least `escape`, written in the shortest way.
bool GetLength(std::string_view* from, uint32_t escape, uint32_t* length) {
  const size_t before = from->size();
  uint64_t value = 0;
  if (!GetVarint64(from, &value) || value < escape || value > kTreeKeyBytesMax) return false;
  *length = static_cast<uint32_t>(value);
  return before - from->size() == VarintBytes(*length);
}

}  // namespace

Entry ParseLongEntry(const uint8_t* p) {
  const uint32_t lengths = LoadLittleEndian<uint16_t>(p);
  Entry entry{};
  entry.shared = lengths & 63;
  entry.suffix_bytes = lengths >> 6 & 31;
  entry.value_bytes = lengths >> 11;
  p += 2;
  if (entry.shared == kSharedEscape) entry.shared = ReadVarint(&p);
  if (entry.suffix_bytes == kSuffixEscape) entry.suffix_bytes = ReadVarint(&p);
  entry.is_large = entry.value_bytes == kValueLarge;
  if (entry.value_bytes == kValueWide) {
    entry.value_bytes = LoadLittleEndian<uint16_t>(p);
    p += 2;
  }
  entry.suffix = p;
  entry.value = p + entry.suffix_bytes;
  if (entry.is_large) {
    entry.value_bytes = LoadLittleEndian<uint32_t>(entry.value + 8);
    entry.end = entry.value + kLargeReferenceBytes;
  } else {
    entry.end = entry.value + entry.value_bytes;
  }
  return entry;
}

bool ParseLongEntryChecked(const uint8_t* p, const uint8_t* end, Entry* entry) {
  std::string_view rest = View(p + 2, static_cast<size_t>(end - p) - 2);
  entry->is_large = entry->value_bytes == kValueLarge;
  if (entry->shared == kSharedEscape && !GetLength(&rest, kSharedEscape, &entry->shared))
    return false;
  if (entry->suffix_bytes == kSuffixEscape &&
      !GetLength(&rest, kSuffixEscape, &entry->suffix_bytes))
    return false;
  if (entry->value_bytes == kValueWide) {
    uint16_t wide = 0;
    if (!GetFixed(&rest, &wide) || wide < kValueWide || wide > kInlineValueBytesMax) return false;
    entry->value_bytes = wide;
  }
  if (rest.size() < entry->suffix_bytes) return false;
  entry->suffix = Bytes(rest);
  entry->value = entry->suffix + entry->suffix_bytes;
  rest.remove_prefix(entry->suffix_bytes);
  const size_t value_field_bytes = entry->is_large ? kLargeReferenceBytes : entry->value_bytes;
  if (rest.size() < value_field_bytes) return false;
  entry->end = entry->value + value_field_bytes;
  if (entry->is_large) {
    entry->value_bytes = LoadLittleEndian<uint32_t>(entry->value + 8);
    if (entry->value_bytes <= kInlineValueBytesMax) return false;
  }
  return true;
}

size_t LongEntryOverheadBytes(uint32_t shared, uint32_t suffix_bytes, ValueShape value) {
  size_t n = 2;
  if (shared >= kSharedEscape) n += VarintBytes(shared);
  if (suffix_bytes >= kSuffixEscape) n += VarintBytes(suffix_bytes);
  if (value.is_large) return n + kLargeReferenceBytes;
  if (value.bytes >= kValueWide) n += 2;
  return n + value.bytes;
}

uint8_t* WriteLongEntryLengths(uint8_t* to, uint32_t shared, uint32_t suffix_bytes,
                               ValueShape value) {
  const uint32_t value_code = value.is_large             ? kValueLarge
                              : value.bytes < kValueWide ? value.bytes
                                                         : kValueWide;
  const uint32_t lengths = (shared < kSharedEscape ? shared : kSharedEscape) |
                           (suffix_bytes < kSuffixEscape ? suffix_bytes : kSuffixEscape) << 6 |
                           value_code << 11;
  StoreLittleEndian(to, static_cast<uint16_t>(lengths));
  to += 2;
  if (shared >= kSharedEscape) to = WriteVarint(to, shared);
  if (suffix_bytes >= kSuffixEscape) to = WriteVarint(to, suffix_bytes);
  if (value_code == kValueWide) {
    CELLAR_ASSERT(value.bytes <= kInlineValueBytesMax);
    StoreLittleEndian(to, static_cast<uint16_t>(value.bytes));
    to += 2;
  }
  return to;
}

}  // namespace cellar::btree_internal
