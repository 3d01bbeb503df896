// NodeArena: runs of granules in huge pages. See arena.h for the picture.
#include "btree/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"

// The sanitizers watch malloc, not runs: under them every node is a block of its own.
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

struct NodeArena::Chunk {
  uint32_t index;
  uint32_t used;    // granules
  uint8_t leaving;  // see BeginCompaction; its free runs are in no bin
  alignas(64) uint8_t tags[kGranules];

  uint8_t* granule(uint32_t i) { return reinterpret_cast<uint8_t*>(this) + i * kGranuleBytes; }
  static Chunk* Of(void* inside) {
    return reinterpret_cast<Chunk*>(static_cast<uint8_t*>(inside) -
                                    reinterpret_cast<uintptr_t>(inside) % kChunkBytes);
  }
  uint32_t GranuleOf(const void* inside) const {
    const auto at = reinterpret_cast<uintptr_t>(inside) - reinterpret_cast<uintptr_t>(this);
    return static_cast<uint32_t>(at / kGranuleBytes);
  }
  // The length of the free run that begins, or ends, at granule i, which is tagged so.
  uint32_t LengthFrom(uint32_t i) {
    if (tags[i] == kSingleTag) return 1;
    if (tags[i] < kLong) return tags[i];
    uint32_t length;
    std::memcpy(&length, granule(i), sizeof(length));
    return length;
  }
  uint32_t LengthTo(uint32_t i) {
    if (tags[i] == kSingleTag) return 1;
    if (tags[i] - kEndTag < static_cast<int>(kLong)) return tags[i] - kEndTag;
    uint32_t length;
    std::memcpy(&length, granule(i + 1) - sizeof(length), sizeof(length));
    return length;
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

namespace {
constexpr uint32_t kHeaderGranules{129};  // of a chunk: index and tags
}  // namespace

NodeArena::NodeArena(const Options& options) : options_(options) {
  static_assert(sizeof(Chunk) <= kHeaderGranules * kGranuleBytes);
  static_assert(kRunBytesMax / kGranuleBytes < kLong);
}

NodeArena::~NodeArena() {
  CELLAR_ASSERT(stats_.used_bytes == 0);
  for (Chunk* chunk : chunks_)
    if (chunk != nullptr) munmap(chunk, kChunkBytes);
}

NodeArena::Chunk* NodeArena::MapChunk() const {
  // An aligned chunk is cut out of twice its size.
  void* mapped = mmap(nullptr, 2 * kChunkBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) OutOfMemory(kChunkBytes);
  auto* const begin = static_cast<uint8_t*>(mapped);
  const size_t misaligned = reinterpret_cast<uintptr_t>(begin) % kChunkBytes;
  const size_t before = misaligned == 0 ? 0 : kChunkBytes - misaligned;
  if (before > 0) munmap(begin, before);
  if (before < kChunkBytes) munmap(begin + before + kChunkBytes, kChunkBytes - before);
  auto* chunk = reinterpret_cast<Chunk*>(begin + before);
  if (options_.huge_pages) (void)madvise(chunk, kChunkBytes, MADV_HUGEPAGE);

  return chunk;
}

// Fresh memory is zero: so are the tags.
void NodeArena::AddChunk(Chunk* chunk) {
  if (unused_indexes_.empty()) {
    chunk->index = static_cast<uint32_t>(chunks_.size());
    chunks_.push_back(chunk);
  } else {
    chunk->index = unused_indexes_.back();
    unused_indexes_.pop_back();
    chunks_[chunk->index] = chunk;
  }
  ++chunks_mapped_;
  ++chunks_free_;
  stats_.mapped_bytes += kChunkBytes;
  AddRun(chunk, kHeaderGranules, kGranules - kHeaderGranules);
}

void NodeArena::PrepareChunks(size_t chunks) {
#ifdef CELLAR_ARENA_MALLOC
  if (this == &Global()) return;
#endif
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (chunks_free_ >= chunks) return;
    }
    Chunk* const chunk = MapChunk();
    constexpr size_t kPageBytes{4096};
    auto* const bytes = reinterpret_cast<volatile uint8_t*>(chunk);
    for (size_t at = 0; at < kChunkBytes; at += kPageBytes) bytes[at] = 0;
    std::lock_guard lock(mutex_);
    AddChunk(chunk);
  }
}

void NodeArena::Trim() {
  std::lock_guard lock(mutex_);
  for (size_t i = chunks_.size(); i-- > 0 && HasSpareChunks();) {
    Chunk* const chunk = chunks_[i];
    if (chunk == nullptr || chunk->tags[kHeaderGranules] != kLong) continue;
    if (chunk->LengthFrom(kHeaderGranules) != kGranules - kHeaderGranules) continue;
    TakeRun(chunk, kHeaderGranules, kGranules - kHeaderGranules);
    ReleaseChunk(chunk);
  }
}

void NodeArena::ReleaseChunk(Chunk* chunk) {
  chunks_[chunk->index] = nullptr;
  unused_indexes_.push_back(chunk->index);
  --chunks_mapped_;
  --chunks_free_;
  stats_.mapped_bytes -= kChunkBytes;
  munmap(chunk, kChunkBytes);
}

// ---- runs and bins ----

// Makes a free run, which must not touch another one, known.
void NodeArena::AddRun(Chunk* chunk, uint32_t begin, uint32_t length) {
  CELLAR_ASSERT(length > 0);
  const uint32_t end = begin + length - 1;
  const uint32_t tag = std::min(length, kLong);
  const uint32_t bin = length == kGranules - kHeaderGranules ? kWhole : tag;
  if (length == 1) {
    chunk->tags[begin] = kSingleTag;
  } else {
    chunk->tags[begin] = static_cast<uint8_t>(tag);
    chunk->tags[end] = static_cast<uint8_t>(kEndTag + tag);
  }
  if (tag == kLong) {
    std::memcpy(chunk->granule(begin), &length, sizeof(length));
    std::memcpy(chunk->granule(end + 1) - sizeof(length), &length, sizeof(length));
  }
  if (chunk->leaving != 0) return;
  bins_[bin].push_back(chunk->index * kGranules + begin);
  bins_filled_[bin / 64] |= uint64_t{1} << bin % 64;
  ++entries_;
  ++runs_;
  if (entries_ > 2 * runs_ + 4096) SweepBins();
}

// The run is no longer free as such. Its entry in the bins stays and no longer holds.
void NodeArena::TakeRun(Chunk* chunk, uint32_t begin, uint32_t length) {
  chunk->tags[begin] = 0;
  chunk->tags[begin + length - 1] = 0;
  if (chunk->leaving == 0) --runs_;
}

bool NodeArena::Holds(uint32_t bin, uint32_t id) const {
  Chunk* const chunk = chunks_[id / kGranules];
  if (chunk == nullptr || chunk->leaving != 0) return false;
  const uint8_t tag = chunk->tags[id % kGranules];
  if (bin == 1) return tag == kSingleTag;
  if (bin < kLong) return tag == bin;
  const bool is_whole = tag == kLong && id % kGranules == kHeaderGranules &&
                        chunk->LengthFrom(kHeaderGranules) == kGranules - kHeaderGranules;
  return tag == kLong && is_whole == (bin == kWhole);
}

bool NodeArena::PopRun(uint32_t bin, Chunk** chunk, uint32_t* begin, uint32_t* length) {
  std::vector<uint32_t>& ids = bins_[bin];
  while (!ids.empty()) {
    const uint32_t id = ids.back();
    ids.pop_back();
    --entries_;
    if (!Holds(bin, id)) continue;
    *chunk = chunks_[id / kGranules];
    *begin = id % kGranules;
    *length = (*chunk)->LengthFrom(*begin);
    TakeRun(*chunk, *begin, *length);
    return true;
  }
  bins_filled_[bin / 64] &= ~(uint64_t{1} << bin % 64);
  return false;
}

void NodeArena::SweepBins() {
  entries_ = 0;
  for (uint32_t bin = 1; bin <= kWhole; ++bin) {
    std::vector<uint32_t>& ids = bins_[bin];
    std::sort(ids.begin(), ids.end(), std::greater<>());  // low addresses on top
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::erase_if(ids, [&](uint32_t id) { return !Holds(bin, id); });
    entries_ += ids.size();
  }
  CELLAR_ASSERT(entries_ == runs_);
}

void* NodeArena::AllocateRun(uint32_t granules) {
  Chunk* chunk = nullptr;
  uint32_t begin = 0, length = 0;
  for (bool found = false; !found;) {
    // The shortest filled bin that is long enough.
    const uint32_t word = granules / 64;
    uint64_t filled = bins_filled_[word] & ~uint64_t{0} << granules % 64;
    uint32_t bin = word * 64;
    if (filled == 0 && word == 0) {
      filled = bins_filled_[1];
      bin = 64;
    }
    if (filled == 0)
      AddChunk(MapChunk());
    else
      found =
          PopRun(bin + static_cast<uint32_t>(std::countr_zero(filled)), &chunk, &begin, &length);
  }
  if (length == kGranules - kHeaderGranules) --chunks_free_;
  if (length > granules) AddRun(chunk, begin + granules, length - granules);
  chunk->used += granules;
  return chunk->granule(begin);
}

void NodeArena::FreeRun(void* memory, uint32_t granules) {
  Chunk* const chunk = Chunk::Of(memory);
  uint32_t begin = chunk->GranuleOf(memory);
  uint32_t length = granules;
  CELLAR_ASSERT(begin >= kHeaderGranules);
  CELLAR_ASSERT(chunk->tags[begin] == 0);
  chunk->used -= granules;
  const uint32_t behind = begin + length;
  if (chunk->tags[begin - 1] >= kEndTag) {
    const uint32_t left = chunk->LengthTo(begin - 1);
    begin -= left;
    length += left;
    TakeRun(chunk, begin, left);
  }
  // The tag of a single granule is both: a beginning too.
  if (behind < kGranules && chunk->tags[behind] != 0) {
    const uint32_t right = chunk->LengthFrom(behind);
    length += right;
    TakeRun(chunk, behind, right);
  }
  if (length == kGranules - kHeaderGranules) {
    ++chunks_free_;
    // Kept: 1 chunk and 1/32 of all, so that growing and shrinking in turns faults no pages.
    if (chunk->leaving != 0 || HasSpareChunks()) {
      ReleaseChunk(chunk);
      return;
    }
  }
  AddRun(chunk, begin, length);
}

// ---- compaction ----

// Calls visit(begin, length) for the free runs of a chunk, which may make them unknown.
template <typename Visit>
void NodeArena::VisitRuns(Chunk* chunk, Visit visit) {
  for (uint32_t i = kHeaderGranules; i < kGranules;) {
    if (chunk->tags[i] == 0) {
      ++i;
      continue;
    }
    const uint32_t length = chunk->LengthFrom(i);
    visit(i, length);
    i += length;
  }
}

bool NodeArena::BeginCompaction() {
  std::lock_guard lock(mutex_);
  if (compacting_) return false;  // for another engine
  if (stats_.mapped_bytes < stats_.used_bytes + stats_.used_bytes / 4 + kSlackBytesMin)
    return false;
  std::vector<Chunk*> chunks;
  uint64_t free_staying = 0;  // granules
  for (Chunk* chunk : chunks_) {
    if (chunk == nullptr || chunk->used == 0) continue;
    chunks.push_back(chunk);
    free_staying += kGranules - kHeaderGranules - chunk->used;
  }
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk* a, const Chunk* b) { return a->used < b->used; });
  if (chunks.size() > kLeavingChunksMax) chunks.resize(kLeavingChunksMax);
  uint64_t moving = 0;
  for (Chunk* chunk : chunks) {
    free_staying -= kGranules - kHeaderGranules - chunk->used;
    moving += chunk->used;
    // Holes are not as good as room; and a chunk that is nearly full is not worth the move.
    if (moving > free_staying * 3 / 4 || chunk->used > kGranules * 3 / 4) break;
    VisitRuns(chunk, [&](uint32_t, uint32_t) { --runs_; });
    chunk->leaving = 1;
    compacting_ = true;
  }
  return compacting_;
}

void NodeArena::EndCompaction() {
  CELLAR_ASSERT(compacting_);
  std::lock_guard lock(mutex_);
  for (Chunk* chunk : chunks_) {
    if (chunk == nullptr || chunk->leaving == 0) continue;
    chunk->leaving = 0;
    VisitRuns(chunk, [&](uint32_t begin, uint32_t length) { AddRun(chunk, begin, length); });
  }
  compacting_ = false;
}

bool NodeArena::IsLeaving(const void* memory, size_t bytes) {
  return bytes <= kRunBytesMax && Chunk::Of(const_cast<void*>(memory))->leaving != 0;
}

// ---- the door ----

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
  if (bytes > kRunBytesMax) {
    void* memory = AllocateLarge(bytes);
    std::lock_guard lock(mutex_);
    stats_.large_bytes += bytes;
    return memory;
  }
  std::lock_guard lock(mutex_);
  stats_.used_bytes += bytes;
  return AllocateRun(static_cast<uint32_t>(bytes / kGranuleBytes));
}

void NodeArena::Free(void* memory, size_t bytes) {
  CELLAR_ASSERT(memory != nullptr);
  CELLAR_ASSERT(bytes == RoundUp(bytes));
#ifdef CELLAR_ARENA_MALLOC
  if (this == &Global()) {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
    return;
  }
#endif
  if (bytes > kRunBytesMax) {
    std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
    std::lock_guard lock(mutex_);
    stats_.large_bytes -= bytes;
    return;
  }
  std::lock_guard lock(mutex_);
  stats_.used_bytes -= bytes;
  FreeRun(memory, static_cast<uint32_t>(bytes / kGranuleBytes));
}

void NodeArena::PrefetchFree(const void* memory, size_t bytes) {
#ifdef CELLAR_ARENA_MALLOC
  return;
#endif
  if (bytes > kRunBytesMax) return;
  const Chunk* const chunk = Chunk::Of(const_cast<void*>(memory));
  const uint8_t* const tag = chunk->tags + chunk->GranuleOf(memory);
  __builtin_prefetch(tag - 1, 1);
  __builtin_prefetch(tag + bytes / kGranuleBytes, 1);
}

NodeArena::Stats NodeArena::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace cellar
