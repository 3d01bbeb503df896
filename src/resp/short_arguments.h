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
// Returns its size; 0 if it is anything else, or not all there, for the general way to see to.
CELLAR_INLINE size_t ReadShortLength(const char* at, size_t left, char type, int64_t* length) {
  if (left < 5 || at[0] != type) [[unlikely]]
    return 0;
  // Taking the bytes "0\r\n" and "00\r\n" away leaves the digits and nothing above them.
  constexpr uint32_t kLine1{0x0a0d30};
  constexpr uint32_t kLine2{0x0a0d3030};
  const auto line = LoadLittleEndian<uint32_t>(at + 1);
  const uint32_t one = (line ^ kLine1) << 8;  // the byte behind it falls out
  if (one <= uint32_t{9} << 8) {
    *length = one >> 8;
    return 4;
  }
  const uint32_t two = line ^ kLine2;
  const uint32_t tens = two & 0xff;
  if (two <= 0x9ff && tens - 1 <= 8) [[likely]] {
    *length = tens * 10 + (two >> 8);
    return 5;
  }
  const auto digit = [at](size_t i) { return static_cast<uint32_t>(at[i]) - uint32_t{'0'}; };
  size_t digits = 0;
  uint32_t value = 0;
  while (digits < 3 && digits + 3 < left && digit(digits + 1) <= 9) {
    value = value * 10 + digit(++digits);
  }
  if (digits == 0 || left < digits + 3 || at[digits + 1] != '\r') return 0;
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
