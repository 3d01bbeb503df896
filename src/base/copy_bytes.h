// CopyBytes: memcpy for the few bytes of a key, a name or a small value.
//
// A call of memcpy with a size that the compiler does not know costs 20 to 30 instructions, more
// than the copy itself; on paths that copy several short strings for each cell that is what they
// spend their time on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/coding.h"

namespace cellar {

// Two moves that may overlap do for any size between one and two of their width. Reads and writes
// nothing outside of the `size` bytes; both may be null if there are none.
inline void CopyBytes(char* to, const char* from, size_t size) {
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
  } else if (size > 0) {
    to[0] = from[0];
    to[size / 2] = from[size / 2];
    to[size - 1] = from[size - 1];
  }
}

}  // namespace cellar
