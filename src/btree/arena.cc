// NodeArena: slabs of equal slots in huge pages. See arena.h for the picture.
#include "btree/arena.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"

// The sanitizers watch malloc, not slots: under them every node is a block of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CELLAR_ARENA_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CELLAR_ARENA_MALLOC 1
#endif
#endif

namespace cellar {
namespace {

[[noreturn]] void OutOfMemory(size_t bytes) {
  (void)std::fprintf(stderr, "cellar: out of memory: %zu bytes for a node of a tree\n", bytes);
  (void)std::fflush(stderr);
  std::abort();
}

}  // namespace

// Lies in the header of its chunk.
struct NodeArena::Slab {
  Slab* next;
  Slab* previous;
  uint32_t slot_bytes;  // 0: free
  uint32_t used;        // slots handed out
  uint32_t free_at;     // offset in the chunk of the first freed slot, 0: none
  uint32_t fresh_at;    // offset in the chunk of the first slot never handed out
  uint32_t end_at;      // offset in the chunk where no further slot fits
  uint32_t index;       // of this slab in its chunk
};

struct NodeArena::Chunk {
  uint32_t free_slabs;  // how many
  uint32_t free_mask;   // bit i: slab i is free
  Slab slabs[kSlabsPerChunk];

  uintptr_t address() const { return reinterpret_cast<uintptr_t>(this); }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this); }
  static Chunk* Of(void* inside) {
    return reinterpret_cast<Chunk*>(reinterpret_cast<uintptr_t>(inside) & ~(kChunkBytes - 1));
  }
};

namespace {
NodeArena::Options global_options;  // NOLINT(cert-err58-cpp)
bool global_made{false};
}  // namespace

NodeArena& NodeArena::Global() {
  // Leaked on purpose: trees in static storage may outlive any order of destruction.
  static NodeArena* const arena = [] {
    global_made = true;
    return new NodeArena(global_options);
  }();
  return *arena;
}

void NodeArena::Configure(const Options& options) {
  CELLAR_ASSERT(!global_made || options.huge_pages == global_options.huge_pages);
  global_options = options;
}

NodeArena::NodeArena(const Options& options) : options_(options) {
  static_assert(sizeof(Chunk) <= kChunkHeaderBytes);
  static_assert(kSlabsPerChunk == 32, "free_mask has a bit for each slab");
  static_assert(SizeIndex(kSlotBytesMax) == kSizes - 1);
}

NodeArena::~NodeArena() {
  CELLAR_ASSERT(stats_.used_bytes == 0);
  while (!chunks_with_room_.empty()) ReleaseChunk(chunks_with_room_.begin()->second);
  CELLAR_ASSERT(chunks_ == 0);
}

NodeArena::Chunk* NodeArena::NewChunk() {
  // An aligned chunk is cut out of twice its size.
  void* mapped = mmap(nullptr, 2 * kChunkBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) OutOfMemory(kChunkBytes);
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = (begin + kChunkBytes - 1) & ~(kChunkBytes - 1);
  if (aligned > begin) munmap(mapped, aligned - begin);
  const uintptr_t tail = begin + 2 * kChunkBytes - (aligned + kChunkBytes);
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + kChunkBytes), tail);
  auto* chunk = reinterpret_cast<Chunk*>(aligned);
  if (options_.huge_pages) (void)madvise(chunk, kChunkBytes, MADV_HUGEPAGE);

  chunk->free_slabs = kSlabsPerChunk;
  chunk->free_mask = ~uint32_t{0};
  for (uint32_t i = 0; i < kSlabsPerChunk; ++i) {
    chunk->slabs[i] = Slab{};
    chunk->slabs[i].index = i;
  }
  ++chunks_;
  ++chunks_empty_;
  chunks_with_room_.emplace(chunk->address(), chunk);
  stats_.mapped_bytes += kChunkBytes;
  return chunk;
}

void NodeArena::ReleaseChunk(Chunk* chunk) {
  CELLAR_ASSERT(chunk->free_slabs == kSlabsPerChunk);
  chunks_with_room_.erase(chunk->address());
  --chunks_;
  --chunks_empty_;
  stats_.mapped_bytes -= kChunkBytes;
  munmap(chunk, kChunkBytes);
}

NodeArena::Slab* NodeArena::NewSlab(size_t bytes) {
  Chunk* chunk = chunks_with_room_.empty() ? NewChunk() : chunks_with_room_.begin()->second;
  if (chunk->free_slabs == kSlabsPerChunk) --chunks_empty_;
  const auto index = static_cast<uint32_t>(__builtin_ctz(chunk->free_mask));
  chunk->free_mask &= chunk->free_mask - 1;
  if (--chunk->free_slabs == 0) chunks_with_room_.erase(chunk->address());

  Slab* slab = &chunk->slabs[index];
  CELLAR_ASSERT(slab->slot_bytes == 0);
  const auto slab_at = static_cast<uint32_t>(index * kSlabBytes);
  slab->slot_bytes = static_cast<uint32_t>(bytes);
  slab->used = 0;
  slab->free_at = 0;
  slab->fresh_at = index == 0 ? static_cast<uint32_t>(kChunkHeaderBytes) : slab_at;
  slab->end_at = slab_at + static_cast<uint32_t>(kSlabBytes - bytes);
  Slab*& first = open_slabs_[SizeIndex(bytes)];
  slab->previous = nullptr;
  slab->next = first;
  if (first != nullptr) first->previous = slab;
  first = slab;
  return slab;
}

void NodeArena::ReleaseSlab(Slab* slab) {
  Slab*& first = open_slabs_[SizeIndex(slab->slot_bytes)];
  if (slab->previous != nullptr) slab->previous->next = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  if (first == slab) first = slab->next;
  slab->slot_bytes = 0;

  Chunk* chunk = Chunk::Of(slab);
  chunk->free_mask |= uint32_t{1} << slab->index;
  if (++chunk->free_slabs == 1) chunks_with_room_.emplace(chunk->address(), chunk);
  if (chunk->free_slabs < kSlabsPerChunk) return;
  ++chunks_empty_;
  // Kept: 1 chunk and 1/32 of all, so that growing and shrinking in turns faults no pages.
  if (chunks_empty_ > 1 + chunks_ / 32) ReleaseChunk(chunk);
}

void* NodeArena::AllocateLarge(size_t bytes) {
  void* memory = std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc)
  if (memory == nullptr) OutOfMemory(bytes);
  return memory;
}

void* NodeArena::Allocate(size_t bytes) {
  CELLAR_ASSERT(bytes == RoundUp(bytes));
#ifdef CELLAR_ARENA_MALLOC
  if (this == &Global()) return AllocateLarge(bytes);
#endif
  if (bytes > kSlotBytesMax) {
    void* memory = AllocateLarge(bytes);
    std::lock_guard lock(mutex_);
    stats_.large_bytes += bytes;
    return memory;
  }
  std::lock_guard lock(mutex_);
  stats_.used_bytes += bytes;
  Slab* slab = open_slabs_[SizeIndex(bytes)];
  if (slab == nullptr) slab = NewSlab(bytes);
  Chunk* chunk = Chunk::Of(slab);
  ++slab->used;
  uint8_t* slot;
  if (slab->free_at != 0) {
    slot = chunk->bytes() + slab->free_at;
    std::memcpy(&slab->free_at, slot, sizeof(slab->free_at));
  } else {
    slot = chunk->bytes() + slab->fresh_at;
    slab->fresh_at += slab->slot_bytes;
  }
  if (slab->free_at == 0 && slab->fresh_at > slab->end_at) {  // full: off the list
    Slab*& first = open_slabs_[SizeIndex(bytes)];
    CELLAR_ASSERT(first == slab);
    first = slab->next;
    if (first != nullptr) first->previous = nullptr;
    slab->next = nullptr;
  }
  return slot;
}

void NodeArena::Free(void* memory, size_t bytes) {
  CELLAR_ASSERT(memory != nullptr);
#ifdef CELLAR_ARENA_MALLOC
  if (this == &Global()) {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
    return;
  }
#endif
  if (bytes > kSlotBytesMax) {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
    std::lock_guard lock(mutex_);
    stats_.large_bytes -= bytes;
    return;
  }
  std::lock_guard lock(mutex_);
  stats_.used_bytes -= bytes;
  Chunk* chunk = Chunk::Of(memory);
  const auto at = static_cast<uint32_t>(static_cast<uint8_t*>(memory) - chunk->bytes());
  Slab* slab = &chunk->slabs[at / kSlabBytes];
  CELLAR_ASSERT(slab->slot_bytes == bytes);
  CELLAR_ASSERT(slab->used > 0);
  const bool was_full = slab->free_at == 0 && slab->fresh_at > slab->end_at;
  std::memcpy(memory, &slab->free_at, sizeof(slab->free_at));
  slab->free_at = at;
  --slab->used;
  if (was_full) {
    Slab*& first = open_slabs_[SizeIndex(bytes)];
    slab->previous = nullptr;
    slab->next = first;
    if (first != nullptr) first->previous = slab;
    first = slab;
  }
  if (slab->used == 0) ReleaseSlab(slab);
}

NodeArena::Stats NodeArena::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace cellar
