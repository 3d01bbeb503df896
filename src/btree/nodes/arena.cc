// NodeArena: runs of granules in huge pages. See arena.h for the picture.
#include "btree/nodes/arena.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"
#include "base/sanitizer.h"

// The sanitizers watch malloc, not runs: under them every node is a block of its own.
#ifdef CELLAR_SANITIZER
#define CELLAR_ARENA_MALLOC 1
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
    if (tags[i] == kSingleTag || tags[i] == kSweptSingleTag) return 1;
    if (tags[i] < kLong) return tags[i];
    uint32_t length;
    std::memcpy(&length, granule(i), sizeof(length));
    return length;
  }
  uint32_t LengthTo(uint32_t i) {
    if (tags[i] == kSingleTag || tags[i] == kSweptSingleTag) return 1;
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
  static NodeArena* const kArena = [] {
    global_made = true;
    return new NodeArena(global_options);
  }();
  return *kArena;
}

void NodeArena::Configure(const Options& options) {
  CELLAR_ASSERT(!global_made || options.huge_pages == global_options.huge_pages);
  global_options = options;
}

namespace {
constexpr uint32_t kHeaderGranules{129};  // of a chunk: index and tags
// One is always kept ready for a growth to begin with. Beyond these there are two, or as many as
// the keeper has: it may wait for a processor while clients write 200 MB a second.
constexpr size_t kSecondReadyChunksMin{16};
constexpr size_t kAllReadyChunksMin{64};
constexpr size_t kFreedAsideBytesMin{1 << 20};  // of malloc: the keeper frees what is as large
}  // namespace

NodeArena::NodeArena(const Options& options) : options_(options), keeper_(options.huge_pages) {
  static_assert(sizeof(Chunk) <= kHeaderGranules * kGranuleBytes);
  static_assert(kRunBytesMax / kGranuleBytes < kLong);
}

NodeArena::~NodeArena() {
  CELLAR_ASSERT(stats_.used_bytes == 0);
  for (Chunk* chunk : chunks_)
    if (chunk != nullptr) ChunkKeeper::Unmap(chunk);
}

NodeArena::Chunk* NodeArena::NewChunk() {
  void* chunk = keeper_.Take();
  if (chunk == nullptr) chunk = keeper_.Map();
  if (chunk == nullptr) OutOfMemory(kChunkBytes);
  return static_cast<Chunk*>(chunk);
}

// Tags are zero: in fresh memory, and where everything was free when the chunk was returned.
void NodeArena::AddChunk(Chunk* chunk) {
  chunk->used = 0;
  chunk->leaving = 0;
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

// A chunk that was all free begins to be used: the next one will be wanted.
void NodeArena::BeginChunk() {
  --chunks_free_;
  if (!options_.keeper) return;
  keeper_.KeepReady(chunks_mapped_ < kSecondReadyChunksMin ? 1
                    : chunks_mapped_ < kAllReadyChunksMin  ? 2
                                                           : ChunkKeeper::kReadyMax);
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
    void* const chunk = keeper_.Map();
    if (chunk == nullptr) return;  // who needs it will find that out
    ChunkKeeper::Touch(chunk);
    std::lock_guard lock(mutex_);
    AddChunk(static_cast<Chunk*>(chunk));
  }
}

void NodeArena::Trim() {
  std::lock_guard lock(mutex_);
  Chunk* chunk = nullptr;
  uint32_t begin = 0, length = 0;
  while (HasSpareChunks() && PopRun(kWhole, &chunk, &begin, &length)) ReleaseChunk(chunk);
}

// The keeper gives its pages back to the system, aside from the threads that wait for memory.
void NodeArena::ReleaseChunk(Chunk* chunk) {
  chunks_[chunk->index] = nullptr;
  unused_indexes_.push_back(chunk->index);
  --chunks_mapped_;
  --chunks_free_;
  stats_.mapped_bytes -= kChunkBytes;
  keeper_.Return(chunk);
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
  if (sweep_.bin != 0 || entries_ > 2 * runs_ + 4096) SweepSome();
}

// The run is no longer free as such. Its entry in the bins stays and no longer holds.
void NodeArena::TakeRun(Chunk* chunk, uint32_t begin, uint32_t length) {
  chunk->tags[begin] = 0;
  chunk->tags[begin + length - 1] = 0;
  if (chunk->leaving == 0) --runs_;
}

// Entries of the bins are not taken out when their run is: whether one still holds is read from the
// tag of the granule it points to.
bool NodeArena::Holds(uint32_t bin, uint32_t id) const {
  Chunk* const chunk = chunks_[id / kGranules];
  if (chunk == nullptr || chunk->leaving != 0) return false;
  const uint8_t tag = chunk->tags[id % kGranules];
  if (bin == 1) return tag == kSingleTag || tag == kSweptSingleTag;
  if (bin < kLong) {
    return tag == bin || (tag == kSwept && chunk->LengthFrom(id % kGranules) == bin);
  }
  if (tag != kLong && tag != kSwept) return false;
  const uint32_t length = chunk->LengthFrom(id % kGranules);
  return length >= kLong && (length == kGranules - kHeaderGranules) == (bin == kWhole);
}

// The last entry first, which is the one whose memory is most likely in the cache; entries that no
// longer hold are dropped on the way.
bool NodeArena::PopRun(uint32_t bin, Chunk** chunk, uint32_t* begin, uint32_t* length) {
  std::vector<uint32_t>& ids = bins_[bin];
  for (;;) {
    if (bin == sweep_.bin && !sweep_.unmarks && ids.size() == sweep_.at) {
      // Nothing is left above the dead ones.
      entries_ -= ids.size() - sweep_.kept;
      ids.resize(sweep_.kept);
      sweep_.at = sweep_.kept;
    }
    if (ids.empty()) break;
    const uint32_t id = ids.back();
    ids.pop_back();
    --entries_;
    if (bin == sweep_.bin) {
      sweep_.at = std::min(sweep_.at, ids.size());
      sweep_.kept = std::min(sweep_.kept, ids.size());
    }
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

// ---- the sweep ----
//
// Takes the entries that do not hold out of the bins, and all but one where a run has several. It
// goes from bin to bin. In each it first looks at the entries from the bottom up, moves those that
// hold together, and marks their runs, by which it knows a run that it meets again; then it takes
// the marks off.
//
//   entries of the bin   | kept, marked | dead |  not looked at yet  | <- pushed and popped here

void NodeArena::SweepSome() {
  // It gets on eight times as fast as entries come in. Several are looked at in one go so that the
  // waits for their tags overlap.
  constexpr size_t kEntriesPerPush{8};
  if (++sweep_.pushes % (kSweptAtOnceMax / kEntriesPerPush) != 0) return;
  size_t entries = kSweptAtOnceMax;
  if (sweep_.bin == 0) sweep_.bin = 1;
  while (entries > 0) {
    const size_t end = sweep_.unmarks ? sweep_.kept : bins_[sweep_.bin].size();
    const size_t some = std::min(entries, end - std::min(end, sweep_.at));
    if (sweep_.unmarks)
      UnmarkEntries(some);
    else
      SweepEntries(some);
    entries -= some;
    swept_ += some;
    if (some == 0 && !NextOfSweep()) return;
  }
}

// The half of a bin is done. False if that was the last.
bool NodeArena::NextOfSweep() {
  if (!sweep_.unmarks) {
    entries_ -= bins_[sweep_.bin].size() - sweep_.kept;
    bins_[sweep_.bin].resize(sweep_.kept);
    sweep_.unmarks = true;
    sweep_.at = 0;
    return true;
  }
  const uint32_t bin = sweep_.bin == kWhole ? 0 : sweep_.bin + 1;
  sweep_ = {.bin = bin};
  return bin != 0;
}

// First half of a bin: keeps one entry of each run, marked as seen by its tag.
void NodeArena::SweepEntries(size_t entries) {
  std::vector<uint32_t>& ids = bins_[sweep_.bin];
  for (const size_t end = sweep_.at + entries; sweep_.at < end; ++sweep_.at) {
    const uint32_t id = ids[sweep_.at];
    if (!Holds(sweep_.bin, id)) continue;
    Chunk* const chunk = chunks_[id / kGranules];
    const uint32_t begin = id % kGranules;
    uint8_t* const tag = &chunk->tags[begin];
    if (*tag == kSwept || *tag == kSweptSingleTag) continue;  // once is enough
    if (*tag == kSingleTag) {
      *tag = kSweptSingleTag;
    } else {
      const uint32_t length = chunk->LengthFrom(begin);
      std::memcpy(chunk->granule(begin), &length, sizeof(length));
      *tag = kSwept;
    }
    ids[sweep_.kept++] = id;
  }
}

// Second half: the marks are taken off again.
void NodeArena::UnmarkEntries(size_t entries) {
  const std::vector<uint32_t>& ids = bins_[sweep_.bin];
  for (const size_t end = sweep_.at + entries; sweep_.at < end; ++sweep_.at) {
    Chunk* const chunk = chunks_[ids[sweep_.at] / kGranules];
    if (chunk == nullptr) continue;
    uint8_t* const tag = &chunk->tags[ids[sweep_.at] % kGranules];
    if (*tag == kSweptSingleTag) *tag = kSingleTag;
    if (*tag == kSwept) *tag = static_cast<uint8_t>(std::min(sweep_.bin, kLong));
  }
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
      AddChunk(NewChunk());
    else
      found =
          PopRun(bin + static_cast<uint32_t>(std::countr_zero(filled)), &chunk, &begin, &length);
  }
  if (length == kGranules - kHeaderGranules) BeginChunk();
  if (length > granules) AddRun(chunk, begin + granules, length - granules);
  chunk->used += granules;
  return chunk->granule(begin);
}

// Joins the run with free neighbours on both sides, so that no two free runs ever touch.
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

// Chooses the emptiest chunks, as long as what they hold fits into three quarters of the holes of
// the others. Their free runs leave the bins, so that nothing new goes there; nodes are moved by
// the trees (BTree::Compact) and empty chunks go by themselves.
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
    if (bytes >= kFreedAsideBytesMin)
      keeper_.Free(memory);
    else
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
  Stats stats = stats_;
  stats.kept_bytes = keeper_.held_bytes();
  stats.free_runs = runs_;
  stats.bin_entries = entries_;
  stats.swept = swept_;
  return stats;
}

}  // namespace cellar
