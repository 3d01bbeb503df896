// The short headers of requests, "*5\r\n" and "$12\r\n": nearly every header is of this kind, and
// there is one for each argument, so they are read where they are needed (RequestParser). Whatever
// else stands in their place is left to the general way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/coding.h"
#include "base/inline.h"

namespace cellar {

// Reads a header line of at most three digits, such as "$12\r\n", at `at`, where `left` bytes are.
// Returns its size; 0 if it is anything else, or not all there, for ReadLength to see to. Nearly
// every header is of this kind, and there is one for each argument; those of one and two digits are
// told by the bytes around the digits, in one comparison each.
CELLAR_INLINE size_t ReadShortLength(const char* at, size_t left, char type, int64_t* length) {
  constexpr uint64_t kLine1{0xffff00ff};
  constexpr uint64_t kLine2{0xffff0000ff};
  constexpr uint64_t kEnd1{0x0a0d0000};
  constexpr uint64_t kEnd2{0x0a0d000000};
  const auto digit = [at](size_t i) { return static_cast<uint32_t>(at[i]) - uint32_t{'0'}; };
  if (left >= sizeof(uint64_t)) [[likely]] {
    const auto word = LoadLittleEndian<uint64_t>(at);
    const auto first = static_cast<uint64_t>(static_cast<unsigned char>(type));
    if ((word & kLine1) == (kEnd1 | first) && digit(1) <= 9) [[likely]] {
      *length = digit(1);
      return 4;
    }
    if ((word & kLine2) == (kEnd2 | first) && digit(1) - 1 <= 8 && digit(2) <= 9) [[likely]] {
      *length = digit(1) * 10 + digit(2);
      return 5;
    }
  }
  size_t digits = 0;
  uint32_t value = 0;
  while (digits < 3 && digits + 3 < left && digit(digits + 1) <= 9) {
    value = value * 10 + digit(++digits);
  }
  if (digits == 0 || left < digits + 3 || at[0] != type || at[digits + 1] != '\r') return 0;
  if (at[1] == '0' && digits > 1) return 0;
  *length = value;
  return digits + 3;
}

// What ReadShortLength can tell; whoever allows less has every header read the general way.
constexpr int64_t kShortLengthMax{999};

// Takes the arguments from `at` to `end` whose headers are short and which are all there, into
// [*to, to_end). Moves `*to` behind the last one; returns where it stopped.
CELLAR_INLINE const char* TakeShortArguments(const char* at, const char* end, std::string_view** to,
                                             const std::string_view* to_end) {
  std::string_view* next = *to;
  while (next != to_end) {
    int64_t bytes = 0;
    const auto available = static_cast<size_t>(end - at);
    const size_t header_bytes = ReadShortLength(at, available, '$', &bytes);
    if (header_bytes == 0) break;
    const size_t all_bytes = header_bytes + static_cast<size_t>(bytes) + 2;
    if (all_bytes > available) break;
    *next++ = {at + header_bytes, static_cast<size_t>(bytes)};
    at += all_bytes;
  }
  *to = next;
  return at;
}

}  // namespace cellar
