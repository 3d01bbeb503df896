// EqualBytes: whether two short strings are the same, without a call.
//
// memcmp takes 20 instructions and more before it looks at a byte. Names that every command
// compares (its own, its table's) have a few bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/coding.h"
#include "base/inline.h"

namespace cellar {

// Two words that may overlap cover any size between one and two of theirs.
CELLAR_INLINE bool EqualBytes(std::string_view a, std::string_view b) {
  const size_t size = a.size();
  if (size != b.size()) return false;
  const auto differ = [&]<typename Word>(Word) {
    const size_t last = size - sizeof(Word);
    return (LoadLittleEndian<Word>(a.data()) ^ LoadLittleEndian<Word>(b.data())) |
           (LoadLittleEndian<Word>(a.data() + last) ^ LoadLittleEndian<Word>(b.data() + last));
  };
  if (size >= 8) {
    if (size > 16) [[unlikely]]
      return std::memcmp(a.data(), b.data(), size) == 0;
    return differ(uint64_t{}) == 0;
  }
  if (size >= 4) return differ(uint32_t{}) == 0;
  if (size >= 2) return differ(uint16_t{}) == 0;
  return size == 0 || a[0] == b[0];
}

}  // namespace cellar
