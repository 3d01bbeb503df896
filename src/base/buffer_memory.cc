// See buffer_memory.h.
#include "base/buffer_memory.h"

#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr size_t kPageBytes{4096};

#ifdef CELLAR_MIMALLOC
bool IsMapped(size_t capacity) { return capacity >= kMappedBytes; }
#else
bool IsMapped(size_t) { return false; }
#endif

size_t MappedSize(size_t bytes) {
  for (size_t i = 0; i < kKeptSizes; ++i) {
    if (bytes <= kKeptBytes << i) return kKeptBytes << i;
  }
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Freed blocks, of all threads: what one fills another one sends and frees.
class KeptBlocks {
 public:
  KeptBlocks() = default;
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;
  ~KeptBlocks() {
    const std::lock_guard lock(mutex_);
    // Other threads may still free buffers, which then go to the system.
    closed_ = true;
    for (size_t i = 0; i < kKeptSizes; ++i) {
      for (char* block : blocks_[i]) (void)munmap(block, kKeptBytes << i);
    }
  }

  // Null: there is none of that size.
  char* Take(size_t bytes) {
    const size_t size = SizeOf(bytes);
    if (size == kKeptSizes) return nullptr;
    const std::lock_guard lock(mutex_);
    if (closed_ || blocks_[size].empty()) return nullptr;
    char* const block = blocks_[size].back();
    blocks_[size].pop_back();
    bytes_ -= bytes;
    return block;
  }
  // False: it is not wanted.
  bool Keep(char* block, size_t bytes) {
    const size_t size = SizeOf(bytes);
    if (size == kKeptSizes) return false;
    const std::lock_guard lock(mutex_);
    if (closed_ || bytes_ + bytes > kKeptBytesMax) return false;
    blocks_[size].push_back(block);
    bytes_ += bytes;
    return true;
  }

 private:
  static size_t SizeOf(size_t bytes) {
    size_t size = 0;
    while (size < kKeptSizes && bytes != kKeptBytes << size) ++size;
    return size;
  }

  std::mutex mutex_;
  // Under mutex_:
  std::array<std::vector<char*>, kKeptSizes> blocks_;
  size_t bytes_{0};
  bool closed_{false};  // the process is ending
};
KeptBlocks kept_blocks;

}  // namespace

char* GrowBuffer(char* data, size_t* capacity, size_t bytes) {
  CELLAR_ASSERT(bytes > *capacity);
  const size_t old_bytes = *capacity;
  if (!IsMapped(bytes)) {
    auto* const grown = static_cast<char*>(std::realloc(data, bytes));
    CELLAR_ASSERT(grown != nullptr);
    *capacity = bytes;
    return grown;
  }
  *capacity = MappedSize(bytes);
  void* mapped = kept_blocks.Take(*capacity);
  if (mapped == nullptr && IsMapped(old_bytes)) {
    // The kernel moves the pages, and no byte is copied.
    mapped = mremap(data, old_bytes, *capacity, MREMAP_MAYMOVE);
    CELLAR_ASSERT(mapped != MAP_FAILED);
    return static_cast<char*>(mapped);
  }
  if (mapped == nullptr) {
    mapped = mmap(nullptr, *capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CELLAR_ASSERT(mapped != MAP_FAILED);
  }
  if (old_bytes > 0) std::memcpy(mapped, data, old_bytes);
  FreeBuffer(data, old_bytes);
  return static_cast<char*>(mapped);
}

void FreeBuffer(char* data, size_t capacity) {
  if (!IsMapped(capacity)) return std::free(data);
  if (!kept_blocks.Keep(data, capacity)) CELLAR_ASSERT(munmap(data, capacity) == 0);
}

}  // namespace cellar
