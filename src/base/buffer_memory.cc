// See buffer_memory.h.
#include "base/buffer_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr size_t kPageBytes{4096};

#ifdef CELLAR_MIMALLOC
bool IsMapped(size_t capacity) { return capacity >= kMappedBytes; }
#else
bool IsMapped(size_t) { return false; }
#endif

}  // namespace

char* GrowBuffer(char* data, size_t* capacity, size_t bytes) {
  CELLAR_ASSERT(bytes > *capacity);
  const size_t old_bytes = *capacity;
  *capacity = bytes;
  if (!IsMapped(bytes)) {
    auto* const grown = static_cast<char*>(std::realloc(data, bytes));
    CELLAR_ASSERT(grown != nullptr);
    return grown;
  }
  *capacity = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* mapped = MAP_FAILED;
  if (IsMapped(old_bytes)) {
    mapped = mremap(data, old_bytes, *capacity, MREMAP_MAYMOVE);
    CELLAR_ASSERT(mapped != MAP_FAILED);
    return static_cast<char*>(mapped);
  }
  mapped = mmap(nullptr, *capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CELLAR_ASSERT(mapped != MAP_FAILED);
  if (old_bytes > 0) std::memcpy(mapped, data, old_bytes);
  std::free(data);
  return static_cast<char*>(mapped);
}

void FreeBuffer(char* data, size_t capacity) {
  if (!IsMapped(capacity)) return std::free(data);
  CELLAR_ASSERT(munmap(data, capacity) == 0);
}

}  // namespace cellar
