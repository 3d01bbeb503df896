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
  if (left < 6 || at[0] != type) [[unlikely]]
    return 0;
  // Taking the bytes "0\r\n", "00\r\n", "000\r" away leaves the digits and nothing above them.
  constexpr uint32_t kLine1{0x0a0d30};
  constexpr uint32_t kLine2{0x0a0d3030};
  constexpr uint32_t kLine3{0x0d303030};
  const auto line = LoadLittleEndian<uint32_t>(at + 1);
  const uint32_t one = (line ^ kLine1) << 8;  // the byte behind it falls out
  if (one <= uint32_t{9} << 8) {
    *length = one >> 8;
    return 4;
  }
  const uint32_t two = line ^ kLine2;
  const uint32_t first = two & 0xff;
  if (first - 1 > 8) [[unlikely]]  // no digit, or a zero before others
    return 0;
  if (two <= 0x9ff) [[likely]] {
    *length = first * 10 + (two >> 8);
    return 5;
  }
  const uint32_t three = line ^ kLine3;
  const uint32_t second = three >> 8 & 0xff;
  if (three > 0x9ffff || second > 9 || at[5] != '\n') return 0;
  *length = first * 100 + second * 10 + (three >> 16);
  return 6;
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
