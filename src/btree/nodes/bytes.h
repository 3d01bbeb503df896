// Loops over key bytes that the nodes share: common prefixes, heads, short copies.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

#include "base/assert.h"
#include "base/coding.h"
#include "base/inline.h"

namespace cellar::btree_internal {

inline const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}
inline std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// `text` without its first `bytes`: what substr does, and asks about.
// REQUIRES: bytes <= text.size().
inline std::string_view Behind(std::string_view text, size_t bytes) {
  CELLAR_DEBUG_ASSERT(bytes <= text.size());
  return {text.data() + bytes, text.size() - bytes};
}

// CommonPrefix of strings of less than 4 bytes, or of more than 16 whose first 8 do not differ.
size_t LongCommonPrefix(const uint8_t* a, const uint8_t* b, size_t bytes_max);

// Length of the longest common prefix.
inline size_t CommonPrefix(const uint8_t* a, const uint8_t* b, size_t bytes_max) {
  if (bytes_max >= 8) [[likely]] {
    const uint64_t difference = LoadLittleEndian<uint64_t>(a) ^ LoadLittleEndian<uint64_t>(b);
    if (difference != 0) return static_cast<size_t>(std::countr_zero(difference)) / 8;
    if (bytes_max <= 16) {  // a word that ends where they do
      const size_t at = bytes_max - 8;
      const uint64_t last = LoadLittleEndian<uint64_t>(a + at) ^ LoadLittleEndian<uint64_t>(b + at);
      return last == 0 ? bytes_max : at + static_cast<size_t>(std::countr_zero(last)) / 8;
    }
  } else if (bytes_max >= 4) {
    const uint32_t difference = LoadLittleEndian<uint32_t>(a) ^ LoadLittleEndian<uint32_t>(b);
    if (difference != 0) return static_cast<size_t>(std::countr_zero(difference)) / 8;
    const size_t at = bytes_max - 4;
    const uint32_t last = LoadLittleEndian<uint32_t>(a + at) ^ LoadLittleEndian<uint32_t>(b + at);
    return last == 0 ? bytes_max : at + static_cast<size_t>(std::countr_zero(last)) / 8;
  }
  return LongCommonPrefix(a, b, bytes_max);
}
inline size_t CommonPrefix(std::string_view a, std::string_view b) {
  return CommonPrefix(Bytes(a), Bytes(b), std::min(a.size(), b.size()));
}

// a < b, without a call where both have a word.
inline bool IsBelow(std::string_view a, std::string_view b) {
  const size_t bytes = std::min(a.size(), b.size());
  if (bytes < 8) return a < b;
  const size_t last = bytes - 8;  // the last word ends where the shorter one does
  for (size_t at = 0;; at = std::min(at + 8, last)) {
    const uint64_t of_a = __builtin_bswap64(LoadLittleEndian<uint64_t>(a.data() + at));
    const uint64_t of_b = __builtin_bswap64(LoadLittleEndian<uint64_t>(b.data() + at));
    if (of_a != of_b) return of_a < of_b;
    if (at == last) return a.size() < b.size();
  }
}

// Whether `key` begins with the `bytes` of `prefix`. All words are compared before one is judged: a
// loop that stops early could not be predicted.
inline bool HasPrefix(std::string_view key, const uint8_t* prefix, size_t bytes) {
  if (key.size() < bytes) return false;
  const uint8_t* const text = Bytes(key);
  const auto differ = [&]<typename Word>(size_t at, Word) {
    return LoadLittleEndian<Word>(text + at) ^ LoadLittleEndian<Word>(prefix + at);
  };
  if (bytes >= 8) [[likely]] {  // the last word ends where the prefix does
    uint64_t difference = differ(bytes - 8, uint64_t{}) | differ(0, uint64_t{});
    for (size_t at = 8; at + 8 < bytes; at += 8) difference |= differ(at, uint64_t{});
    return difference == 0;
  }
  if (bytes >= 4) return (differ(0, uint32_t{}) | differ(bytes - 4, uint32_t{})) == 0;
  for (size_t at = 0; at < bytes; ++at)
    if (text[at] != prefix[at]) return false;
  return true;
}

// The first 4 bytes as a number that compares as they do; missing ones count as 00. Thus
// Head(a) < Head(b) proves a < b, and equal heads prove nothing.
inline uint32_t Head(const uint8_t* key, size_t bytes) {
  if (bytes >= 4) [[likely]]
    return __builtin_bswap32(LoadLittleEndian<uint32_t>(key));
  uint32_t head = 0;
  for (size_t i = 0; i < bytes; ++i) head |= static_cast<uint32_t>(key[i]) << (24 - 8 * i);
  return head;
}

inline constexpr uint32_t kHeadsMax{16};

// In an ascending array of heads: how many are <= head. Reads `heads` up to the next multiple of 4.
// REQUIRES: count <= kHeadsMax. Looks at all of them: where to stop could not be predicted.
inline uint32_t HeadsNotAbove(const uint32_t* heads, uint32_t count, uint32_t head) {
#if defined(__SSE4_1__)
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(head));
  uint32_t bits = 0;  // bit i for the i-th head
  for (uint32_t i = 0; i < count; i += 4) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(heads + i));
    const __m128i not_above = _mm_cmpeq_epi32(_mm_max_epu32(four, wanted), wanted);
    bits |= static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(not_above))) << i;
  }
  const uint32_t mask = (uint32_t{1} << count) - 1;
  return static_cast<uint32_t>(std::popcount(bits & mask));
#else
  uint32_t not_above = 0;
  while (not_above < count && heads[not_above] <= head) ++not_above;
  return not_above;
#endif
}

// HeadsNotAbove without a loop, whose end could not be predicted. Reads kHeadsMax heads, whatever
// `count` is. REQUIRES: so much memory may be read; count <= kHeadsMax.
CELLAR_INLINE uint32_t HeadsNotAboveOfAll(const uint32_t* heads, uint32_t count, uint32_t head) {
#if defined(__SSE4_1__)
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(head));
  const auto not_above = [&](size_t i) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(heads + i));
    return _mm_cmpeq_epi32(_mm_max_epu32(four, wanted), wanted);
  };
  // One bit for each of the heads, out of four times four words that are all ones or all zeros.
  const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(not_above(0), not_above(4)),
                                        _mm_packs_epi32(not_above(8), not_above(12)));
  const uint32_t mask = (uint32_t{1} << count) - 1;
  return static_cast<uint32_t>(
      std::popcount(static_cast<uint32_t>(_mm_movemask_epi8(bytes)) & mask));
#else
  return HeadsNotAbove(heads, count, head);
#endif
}

// Whether one of the first `not_above` heads, which are those <= head, is equal to it: mostly none.
inline bool HasEqualHead(const uint32_t* heads, uint32_t not_above, uint32_t head) {
  return not_above > 0 && heads[not_above - 1] == head;
}
// How many of them are below it.
inline uint32_t HeadsBelow(const uint32_t* heads, uint32_t not_above, uint32_t head) {
  while (HasEqualHead(heads, not_above, head)) --not_above;
  return not_above;
}

// Adds `added` to all numbers from the `from`-th one on, without a loop whose end varies much.
// REQUIRES: `count` is a multiple of 4.
inline void AddFrom(uint16_t* numbers, uint32_t count, uint32_t from, uint16_t added) {
#if defined(__SSE4_1__)
  const __m128i before = _mm_set1_epi16(static_cast<int16_t>(static_cast<int32_t>(from) - 1));
  const __m128i all_added = _mm_set1_epi16(static_cast<int16_t>(added));
  __m128i index = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
  const auto sum = [&](__m128i eight) {
    return _mm_add_epi16(eight, _mm_and_si128(_mm_cmpgt_epi16(index, before), all_added));
  };
  auto* at = reinterpret_cast<__m128i*>(numbers);
  for (uint32_t left = count / 8; left > 0; --left, ++at) {
    _mm_storeu_si128(at, sum(_mm_loadu_si128(at)));
    index = _mm_add_epi16(index, _mm_set1_epi16(8));
  }
  if (count % 8 != 0) _mm_storel_epi64(at, sum(_mm_loadl_epi64(at)));
#else
  for (uint32_t i = from; i < count; ++i) numbers[i] = static_cast<uint16_t>(numbers[i] + added);
#endif
}

// Copies `bytes` by two 16-byte moves where that is allowed: calls of memcpy with a varying small
// size made scans four times slower. Up to 32 bytes are read from `from` if these end before
// `from_end`, and written to `to`, which must have room for 32 more than `bytes`.
inline constexpr size_t kShortCopyBytes{32};
inline void CopyShort(uint8_t* to, const uint8_t* from, size_t bytes, const uint8_t* from_end) {
  static_assert(kShortCopyBytes == 2 * 16);
  if (bytes <= kShortCopyBytes && from_end - from >= std::ptrdiff_t{kShortCopyBytes}) [[likely]] {
    std::memcpy(to, from, 16);
    std::memcpy(to + 16, from + 16, 16);
    return;
  }
  std::memcpy(to, from, bytes);
}

inline constexpr size_t kCacheLineBytes{64};

// Asks for `lines` cache lines. A hint: a core that has some twenty misses open drops it. (Written
// out without a loop, ten hints in a row made a get in 200 MB a tenth slower.)
inline void PrefetchLines(const void* from, size_t lines) {
  const auto* line = static_cast<const char*>(from);
  for (const char* const end = line + kCacheLineBytes * lines; line < end; line += kCacheLineBytes)
    __builtin_prefetch(line);
}

// Loads every cache line of [from, end). Unlike hints, loads are not dropped when many misses are
// open: 16 keys times 6 lines took 82 ns a key this way, 234 ns with hints, 412 ns with neither
// (AMD EPYC). REQUIRES: the memory may be read; nobody else writes to the first byte of a line.
inline void TouchLines(const uint8_t* from, const uint8_t* end) {
  for (; from < end; from += kCacheLineBytes) (void)*static_cast<const volatile uint8_t*>(from);
}

}  // namespace cellar::btree_internal
