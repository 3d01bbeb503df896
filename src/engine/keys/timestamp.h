// Timestamps inside keys: order-preserving, prefix-free, newest first, and short.
//
// Ascending, a timestamp t of 0..2^63-1 would be one byte `k << 4 | top 4 bits` and k bytes more,
// big-endian, with the smallest k such that t < 2^(4 + 8k). What is stored is the complement of all
// of it, so that a larger t comes first:
//
//   t                  k   bytes   first byte
//   0 .. 15            0   1       ff .. f0
//   .. 2^12 - 1        1   2       ef .. e0
//   .. 2^52 - 1        6   7       9f .. 90     (microseconds since 1970 until the year 2112)
//   .. 2^60 - 1        7   8       8f .. 80
//   .. 2^63 - 1        8   9       7f
//
// The first byte alone tells the length. (The idea of one length nibble in front is WiredTiger's
// intpack, complemented.) No byte sequence has a second meaning: decoding checks that k was the
// smallest one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/coding.h"
#include "base/inline.h"
#include "base/key_buffer.h"

namespace cellar {

inline constexpr size_t kTimestampBytesMax{9};
inline constexpr int64_t kTimestampMax{INT64_MAX};

// Bytes that follow the first one. REQUIRES: timestamp >= 0.
inline size_t TimestampTailBytes(int64_t timestamp) {
  const auto bits = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(timestamp)));
  return (bits + 3) / 8;
}

// Writes the encoding to `to`, where kTimestampBytesMax bytes may be written whatever the length;
// returns the length. REQUIRES: timestamp >= 0.
CELLAR_INLINE size_t EncodeTimestamp(int64_t timestamp, char* to) {
  CELLAR_ASSERT(timestamp >= 0);
  const auto value = static_cast<uint64_t>(timestamp);
  if ((value >> 44) - 1 < 255) [[likely]] {  // 45 to 52 bits, as those of today have: k is 6
    EncodeBigEndian64(to, ~(uint64_t{6} << 52 | value) << 8);
    return 7;
  }
  const size_t tail = TimestampTailBytes(timestamp);
  if (tail < 8) [[likely]] {  // all of it in one number
    const size_t bits = 8 * tail + 4;
    EncodeBigEndian64(to, ~(uint64_t{tail} << bits | value) << (60 - bits));
    return tail + 1;
  }
  to[0] = static_cast<char>(~(tail << 4));
  EncodeBigEndian64(to + 1, ~value);
  return tail + 1;
}
inline void PutTimestamp(std::string* to, int64_t timestamp) {
  char bytes[kTimestampBytesMax];
  const size_t size = EncodeTimestamp(timestamp, bytes);
  to->append(bytes, size);
}
CELLAR_INLINE void PutTimestamp(KeyBuffer* to, int64_t timestamp) {
  to->Commit(EncodeTimestamp(timestamp, to->Reserve(kTimestampBytesMax)));
}

// Length of the encoding that begins with this byte.
inline size_t TimestampSize(char first_byte) {
  return static_cast<size_t>(static_cast<uint8_t>(~first_byte) >> 4) + 1;
}

// The complement of the tail, 0 to 8 bytes that follow the first one.
inline uint64_t LoadTimestampTail(const char* tail, size_t bytes) {
  if (bytes >= 4) [[likely]] {
    // Two loads that overlap, since a move of 4 to 8 bytes is not worth a call.
    const uint64_t first = __builtin_bswap32(LoadLittleEndian<uint32_t>(tail));
    const uint64_t last = __builtin_bswap32(LoadLittleEndian<uint32_t>(tail + bytes - 4));
    return first << (8 * (bytes - 4)) | last;
  }
  uint64_t loaded = 0;
  for (size_t i = 0; i < bytes; ++i) loaded = loaded << 8 | static_cast<uint8_t>(tail[i]);
  return loaded;
}

// Reads what stands behind the column in the key of a tree's entry: a timestamp and nothing else,
// written by EncodeTimestamp. False if its length cannot be right.
[[nodiscard]] inline bool LoadTimestamp(std::string_view from, int64_t* timestamp) {
  if (from.empty()) return false;
  const auto head = static_cast<uint8_t>(~from[0]);
  const size_t tail = head >> 4;
  if (tail > 8 || from.size() != tail + 1) return false;
  if (tail >= 4 && tail < 8) [[likely]] {  // all of it in one number, head included
    const uint64_t bits = uint64_t{1} << (8 * tail + 4);
    *timestamp = static_cast<int64_t>(~LoadTimestampTail(from.data(), tail + 1) & (bits - 1));
    return true;
  }
  if (tail == 0) {
    *timestamp = head & 0x0f;
    return true;
  }
  const uint64_t value = ~LoadTimestampTail(from.data() + 1, tail) << (64 - 8 * tail);
  const uint64_t top = tail == 8 ? 0 : static_cast<uint64_t>(head & 0x0f) << (8 * tail);
  *timestamp = static_cast<int64_t>(top | value >> (64 - 8 * tail));
  return *timestamp >= 0;
}

// Does `from` hold one encoding and nothing else, of a timestamp below 2^60? What nearly all are;
// tells no more of others. LoadTimestamp cannot fail then.
inline bool IsUsualTimestamp(std::string_view from) {
  if (from.empty()) return false;
  const size_t tail = static_cast<uint8_t>(~from[0]) >> 4;
  return tail < 8 && from.size() == tail + 1;
}

// Reads the encoding at the front of `from`. Returns its length, or 0 if there is no complete and
// well-formed one.
inline size_t DecodeTimestamp(std::string_view from, int64_t* timestamp) {
  if (from.empty()) return 0;
  const auto head = static_cast<uint8_t>(~from[0]);
  const size_t tail = head >> 4;
  if (tail > 8 || from.size() < tail + 1) return 0;
  const uint64_t complement = LoadTimestampTail(from.data() + 1, tail);
  const uint64_t low = tail == 0 ? 0 : ~complement << (64 - 8 * tail) >> (64 - 8 * tail);
  const uint64_t top = tail == 8 ? 0 : static_cast<uint64_t>(head & 0x0f) << (8 * tail);
  const auto value = static_cast<int64_t>(top | low);
  if (value < 0 || (tail == 8 && (head & 0x0f) != 0)) return 0;
  if (TimestampTailBytes(value) != tail) return 0;
  *timestamp = value;
  return tail + 1;
}

}  // namespace cellar
