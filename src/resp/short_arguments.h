// The short headers of requests, "*5\r\n" and "$12\r\n": nearly every header is of this kind, and
// there is one for each argument, so they are read where they are needed (RequestParser). Whatever
// else stands in their place is left to the general way.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/coding.h"
#include "base/inline.h"

namespace cellar {

// What a short header takes at least, with what must follow it ("\r\n" of an empty argument).
constexpr size_t kShortHeaderBytes{6};

// Reads a header line of at most three digits, such as "$12\r\n", at `at`. Returns its size; 0 if
// it is anything else, for the general way to see to. REQUIRES: kShortHeaderBytes are there.
CELLAR_INLINE size_t ReadShortLength(const char* at, char type, int64_t* length) {
  // Taking the bytes "$0\r\n" or "$00\r" away, or "000\r" behind the type, leaves the digits, and
  // nothing else where these bytes stand.
  constexpr uint32_t kTypedLine1{0x0a0d3000};
  constexpr uint32_t kLine3{0x0d303030};
  const uint32_t one =
      std::rotr(LoadLittleEndian<uint32_t>(at) ^ (kTypedLine1 | static_cast<uint8_t>(type)), 8);
  if (one <= 9) {
    *length = one;
    return 4;
  }
  constexpr uint32_t kTypedLine1To2{0x00073d00};  // "\r\n" and "0\r", taken from each other
  const uint32_t two = one ^ kTypedLine1To2;
  const uint32_t first = two & 0xff;
  if (first - 1 > 8) [[unlikely]]  // no digit, or a zero before others
    return 0;
  if (two <= 0x9ff && at[4] == '\n') [[likely]] {
    *length = first * 10 + (two >> 8);
    return 5;
  }
  if (at[0] != type) return 0;
  const uint32_t three = LoadLittleEndian<uint32_t>(at + 1) ^ kLine3;
  const uint32_t second = three >> 8 & 0xff;
  if (three > 0x9ffff || second > 9 || at[5] != '\n') return 0;
  *length = first * 100 + second * 10 + (three >> 16);
  return 6;
}

// What ReadShortLength can tell; whoever allows less has every header read the general way.
constexpr int64_t kShortLengthMax{999};

// Takes the arguments from byte `*at` of `input` on whose headers are short and which are all
// there, into [to, to_end). Moves `*at` behind the last one; returns the end of those taken.
CELLAR_INLINE std::string_view* TakeShortArguments(std::string_view input, size_t* at,
                                                   std::string_view* to,
                                                   const std::string_view* to_end) {
  if (input.size() < kShortHeaderBytes + *at) [[unlikely]]
    return to;
  const char* const input_end = input.data() + input.size();
  const char* const header_last = input_end - kShortHeaderBytes;
  const char* next = input.data() + *at;
  while (to != to_end) {
    int64_t bytes = 0;
    const size_t header_bytes = ReadShortLength(next, '$', &bytes);
    if (header_bytes == 0) [[unlikely]]
      break;
    const char* const begin = next + header_bytes;
    const char* const end = begin + bytes + 2;
    // One comparison for both: is the argument all there, and may a header follow?
    if (end > header_last) [[unlikely]] {
      if (end > input_end) break;
      to_end = to + 1;
    }
    *to++ = {begin, static_cast<size_t>(bytes)};
    next = end;
  }
  *at = static_cast<size_t>(next - input.data());
  return to;
}

}  // namespace cellar
