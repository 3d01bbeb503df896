// CopyBytes: memcpy for the few bytes of a key, a name or a small value.
//
// A call of memcpy with a size that the compiler does not know costs 20 to 30 instructions, more
// than the copy itself; on paths that copy several short strings for each cell that is what they
// spend their time on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/coding.h"
#include "base/inline.h"

namespace cellar {

// Two moves that may overlap do for any size between one and two of their width. Reads and writes
// nothing outside of the `size` bytes; both may be null if there are none.
CELLAR_INLINE void CopyBytes(void* to_bytes, const void* from_bytes, size_t size) {
  auto* const to = static_cast<char*>(to_bytes);
  const auto* const from = static_cast<const char*>(from_bytes);
  if (size > 32) [[unlikely]] {
    std::memcpy(to, from, size);
  } else if (size >= 16) {
    char last[16];
    std::memcpy(last, from + size - 16, 16);
    std::memcpy(to, from, 16);
    std::memcpy(to + size - 16, last, 16);
  } else if (size >= 8) {
    const auto last = LoadLittleEndian<uint64_t>(from + size - 8);
    StoreLittleEndian(to, LoadLittleEndian<uint64_t>(from));
    StoreLittleEndian(to + size - 8, last);
  } else if (size >= 4) {
    const auto last = LoadLittleEndian<uint32_t>(from + size - 4);
    StoreLittleEndian(to, LoadLittleEndian<uint32_t>(from));
    StoreLittleEndian(to + size - 4, last);
  } else if (size >= 2) {
    const auto last = LoadLittleEndian<uint16_t>(from + size - 2);
    StoreLittleEndian(to, LoadLittleEndian<uint16_t>(from));
    StoreLittleEndian(to + size - 2, last);
  } else if (size == 1) {
    *to = *from;
  }
}

// Copies, and says whether none of the bytes is zero. What CopyBytes and FindZeroByte do, in one
// pass and without telling where. The ranges may not overlap.
CELLAR_INLINE bool CopyWithoutZero(char* to, const char* from, size_t size) {
  // Where a byte of `word` is zero, a bit of this is set; else none.
  const auto zeros = [](uint64_t word) {
    return (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL;
  };
  if (size >= 16) {
    const char* const last = from + size - 16;  // words that overlap cover the end
#if defined(__SSE2__)
    const auto copy = [&](const char* at) {
      const __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (at - from)), word);
      return word;
    };
    // Most keys are done then.
    __m128i lowest = _mm_min_epu8(copy(last), copy(from));
    for (const char* at = from + 16; at < last; at += 16) lowest = _mm_min_epu8(lowest, copy(at));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(lowest, _mm_setzero_si128())) == 0;
#else
    uint64_t found = zeros(LoadLittleEndian<uint64_t>(last + 8));
    for (const char* at = from; at < last + 8; at += 8)
      found |= zeros(LoadLittleEndian<uint64_t>(at));
    std::memcpy(to, from, size);
    return found == 0;
#endif
  }
  if (size >= 8) {
    const auto first = LoadLittleEndian<uint64_t>(from);
    const auto last = LoadLittleEndian<uint64_t>(from + size - 8);
    StoreLittleEndian(to, first);
    StoreLittleEndian(to + size - 8, last);
    return (zeros(first) | zeros(last)) == 0;
  }
  if (size >= 4) {
    const auto first = LoadLittleEndian<uint32_t>(from);
    const auto last = LoadLittleEndian<uint32_t>(from + size - 4);
    StoreLittleEndian(to, first);
    StoreLittleEndian(to + size - 4, last);
    return zeros(first | uint64_t{last} << 32) == 0;
  }
  bool none = true;
  for (size_t i = 0; i < size; ++i) {
    to[i] = from[i];
    none &= from[i] != '\0';
  }
  return none;
}

}  // namespace cellar
