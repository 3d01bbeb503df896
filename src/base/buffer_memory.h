// Memory of buffers that may grow large.
//
//   below kMappedBytes   from malloc, which keeps what is freed for the next one
//   from there on        pages of their own: growing moves page tables instead of bytes, and what
//                        is freed is the system's again at once
//
// But some freed blocks of four sizes are kept, kKeptBytesMax of all threads: long replies are made
// and sent in these, and pages that the kernel has to clear first made a scan twice as dear.
//
// malloc would keep it: mimalloc gives a freed block back only when all that lies in the same 32
// MiB is free too, and then all of it in one go, 100 ms for a gigabyte. What clients let us hold
// comes and goes in such blocks.
//
// Sanitizer builds take all from malloc, whose bounds they know.
#pragma once

#include <cstddef>

namespace cellar {

inline constexpr size_t kMappedBytes{256 * 1024};
inline constexpr size_t kKeptBytes{288 *
                                   1024};  // the smallest of the sizes; each is twice the other
inline constexpr size_t kKeptSizes{4};
inline constexpr size_t kKeptBytesMax{24 * 1024 * 1024};

// At least `bytes` of memory with the content of `data` (`*capacity` bytes, null if 0), which is
// given up; `*capacity` becomes what there is. Memory that cannot be had ends the process.
// REQUIRES: bytes > *capacity.
char* GrowBuffer(char* data, size_t* capacity, size_t bytes);
void FreeBuffer(char* data, size_t capacity);

}  // namespace cellar
