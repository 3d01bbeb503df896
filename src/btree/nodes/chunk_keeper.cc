// The keeper's thread. See chunk_keeper.h.
#include "btree/nodes/chunk_keeper.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "base/assert.h"
#include "base/os/thread.h"

namespace cellar {

ChunkKeeper::~ChunkKeeper() {
  if (running()) {
    stopping_.store(true, std::memory_order_release);
    wake_.release();
    thread_.join();
  }
  wanted_ = 0;
  EmptyReady(0);
  while (DisposeOfOne()) {
  }
  CELLAR_ASSERT(held_ == 0);
}

// ---- mappings ----

void* ChunkKeeper::Map() const {
  // An aligned chunk is cut out of twice its size.
  void* mapped = mmap(nullptr, 2 * kChunkBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<uint8_t*>(mapped);
  const size_t misaligned = reinterpret_cast<uintptr_t>(begin) % kChunkBytes;
  const size_t before = misaligned == 0 ? 0 : kChunkBytes - misaligned;
  if (before > 0) munmap(begin, before);
  if (before < kChunkBytes) munmap(begin + before + kChunkBytes, kChunkBytes - before);
  if (huge_pages_) (void)madvise(begin + before, kChunkBytes, MADV_HUGEPAGE);
  return begin + before;
}

void ChunkKeeper::Touch(void* chunk) {
  constexpr size_t kPageBytes{4096};
  auto* const bytes = static_cast<volatile uint8_t*>(chunk);
  for (size_t at = 0; at < kChunkBytes; at += kPageBytes) bytes[at] = 0;
}

void ChunkKeeper::Unmap(void* chunk) { (void)munmap(chunk, kChunkBytes); }

// ---- what others call ----

void* ChunkKeeper::Take() {
  for (std::atomic<void*>& place : ready_) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    void* const chunk = place.exchange(nullptr, std::memory_order_acquire);
    if (chunk == nullptr) continue;
    held_.fetch_sub(1, std::memory_order_relaxed);
    taken_.fetch_add(1, std::memory_order_relaxed);
    return chunk;
  }
  return nullptr;
}

void ChunkKeeper::Push(std::atomic<Given*>* stack, void* memory) {
  auto* const given = new (memory) Given{stack->load(std::memory_order_relaxed)};
  while (!stack->compare_exchange_weak(given->next, given, std::memory_order_release)) {
  }
}

void ChunkKeeper::Return(void* chunk) {
  if (!running()) return Unmap(chunk);
  held_.fetch_add(1, std::memory_order_relaxed);
  Push(&returned_, chunk);
  Wake();
}

void ChunkKeeper::Free(void* memory) {
  if (!running()) return std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
  Push(&freed_, memory);
  Wake();
}

void ChunkKeeper::KeepReady(size_t chunks) {
  wanted_.store(std::min(chunks, kReadyMax), std::memory_order_relaxed);
  if (chunks == 0) return;
  if (!running()) {
    thread_ = std::thread([this] { Run(); });
    running_.store(true, std::memory_order_release);
  }
  Wake();
}

void ChunkKeeper::Wake() {
  if (!woken_.exchange(true, std::memory_order_acq_rel)) wake_.release();
}

// ---- the thread ----

void ChunkKeeper::Run() {
  SetThreadName("cellar-memory");
  uint64_t taken_before = 0;
  for (;;) {
    if (ready_chunks() <= kReadyAfterGrowth) {
      wake_.acquire();
    } else if (!wake_.try_acquire_for(kGrowthPause)) {
      const uint64_t taken = taken_.load(std::memory_order_relaxed);
      if (taken == taken_before) EmptyReady(kReadyAfterGrowth);
      taken_before = taken;
      continue;
    }
    woken_.store(false, std::memory_order_release);
    if (stopping_.load(std::memory_order_acquire)) return;
    FillReady();
    while (DisposeOfOne()) FillReady();  // what is waited for comes first
  }
}

size_t ChunkKeeper::ready_chunks() const {
  return static_cast<size_t>(std::count_if(ready_.begin(), ready_.end(), [](const auto& place) {
    return place.load(std::memory_order_relaxed) != nullptr;
  }));
}

void ChunkKeeper::FillReady() {
  const size_t wanted = wanted_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < wanted; ++i) {
    if (ready_[i].load(std::memory_order_relaxed) != nullptr) continue;
    void* chunk = PopReturned();
    if (chunk == nullptr) {
      chunk = Map();
      if (chunk == nullptr) return;  // who needs it will find that out, and say so
      Touch(chunk);
      held_.fetch_add(1, std::memory_order_relaxed);
    }
    ready_[i].store(chunk, std::memory_order_release);
  }
}

void ChunkKeeper::EmptyReady(size_t kept) {
  for (size_t i = kept; i < kReadyMax; ++i) {
    void* const chunk = ready_[i].exchange(nullptr, std::memory_order_acquire);
    if (chunk == nullptr) continue;
    held_.fetch_sub(1, std::memory_order_relaxed);
    Unmap(chunk);
  }
}

// Only the thread pops, so nothing that is popped can have been pushed again meanwhile.
void* ChunkKeeper::PopReturned() {
  Given* top = returned_.load(std::memory_order_acquire);
  while (top != nullptr &&
         !returned_.compare_exchange_weak(top, top->next, std::memory_order_acquire)) {
  }
  return top;
}

// One chunk that was returned, or all that was freed by now. False if there is neither.
bool ChunkKeeper::DisposeOfOne() {
  Given* freed = freed_.exchange(nullptr, std::memory_order_acquire);
  const bool any_freed = freed != nullptr;
  while (freed != nullptr) {
    void* const memory = freed;
    freed = freed->next;
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
  }
  void* const chunk = PopReturned();
  if (chunk == nullptr) return any_freed;
  held_.fetch_sub(1, std::memory_order_relaxed);
  Unmap(chunk);
  return true;
}

}  // namespace cellar
