// NodeArena: where the nodes of all trees live. One per process.
//
// Leaves are cut to measure: an allocation is a run of 128-byte granules, up to 4 KiB. Anything
// larger (a leaf with one giant key, a large value) comes from malloc.
//
//   chunk   2 MiB, aligned, mmapped, MADV_HUGEPAGE: a dependent cache miss then costs ~150 ns
//           instead of ~300
//           +------------------+------------------------------- ... ---+
//           | index, tags[16K] | granules, from the 129th on           |
//           +------------------+------------------------------- ... ---+
//   tag     a byte for each granule: 0, or the length of the free run that begins or ends there.
//           Freeing looks at the tags left and right and joins what is free, in two cache lines,
//           without touching the neighbours' memory.
//   bins    for each length the free runs of this length, the last one freed on top. Allocation
//           takes the shortest run that is long enough, a chunk that holds nothing only when there
//           is no other, and puts back the rest. An entry is not removed when its run is joined to
//           another: whether it still holds is seen by the tag when it is popped.
//
// Why no slabs of equal slots: the leaves of a tree that is filled at random grow in step, so that
// the sizes in use move like a wave, and slots of a size that is out of fashion lie idle: 40 % was
// measured. Here a free neighbour serves any size.
//
// A chunk that is all free is unmapped, but for a few that are kept, so that a tree of changing
// size does not fault pages in and out. A thread can see to it that the next chunk has its pages
// before it is needed, and that nobody waits for the unmapping (chunk_keeper.h).
//
// No call is long: entries that no longer hold are swept out of the bins a few at a time
// (SweepSome), since there are a million of them where there are gigabytes.
//
// After a peak (a snapshot beside writers holds two copies of many leaves) chunks stay that are
// half empty. Compaction: the emptiest are chosen, as many as the others have room for; nothing
// more is allocated in them, and the trees move what they have there (BTree::Compact).
//
// Threads: any; one mutex. Running out of memory ends the process with a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "btree/nodes/chunk_keeper.h"

namespace cellar {

class NodeArena {
 public:
  struct Options {
    bool huge_pages{true};  // ask for them (madvise); a kernel that refuses changes nothing else
    bool keeper{false};     // a thread prepares and unmaps chunks
  };
  struct Stats {
    uint64_t mapped_bytes{0};  // chunks
    uint64_t used_bytes{0};    // handed out of chunks, at their rounded size
    uint64_t large_bytes{0};   // handed out by malloc
    uint64_t kept_bytes{0};    // mapped besides: chunks that are ready, or about to be unmapped
    uint64_t free_runs{0};
    uint64_t bin_entries{0};  // of those, and some that no longer hold
    uint64_t swept{0};        // entries that the sweep of the bins has looked at
  };

  static constexpr size_t kGranuleBytes{128};
  static constexpr size_t kRunBytesMax{4096};
  static constexpr size_t kSweptAtOnceMax{64};  // entries of bins, by one call

  // The arena of all trees. Never destroyed.
  static NodeArena& Global();
  // Options of the global arena. REQUIRES: nothing was allocated from it yet, or equal options.
  static void Configure(const Options& options);

  explicit NodeArena(const Options& options);
  ~NodeArena();  // REQUIRES: everything was freed.
  NodeArena(const NodeArena&) = delete;
  NodeArena& operator=(const NodeArena&) = delete;

  // What Allocate really hands out for `bytes`.
  static constexpr size_t RoundUp(size_t bytes) {
    return bytes == 0 ? kGranuleBytes : (bytes + kGranuleBytes - 1) & ~(kGranuleBytes - 1);
  }
  // Uninitialised memory, 128-aligned up to kRunBytesMax, 16-aligned above; never null.
  // REQUIRES: bytes == RoundUp(bytes).
  void* Allocate(size_t bytes);
  // REQUIRES: `memory` came from Allocate(bytes).
  void Free(void* memory, size_t bytes);

  // A hint that Free(memory, bytes) follows soon: asks for the tags that it looks at.
  static void PrefetchFree(const void* memory, size_t bytes);

  // Sees to it that `chunks` chunks are all free and their pages there, so that a thread that is
  // about to allocate much does not wait for the kernel to clear them, whatever the keeper does
  // besides. For another thread than that one; the clearing is done outside the lock.
  void PrepareChunks(size_t chunks);
  // Unmaps what PrepareChunks left over.
  void Trim();

  // If more than a quarter of the used bytes and kSlackBytesMin are mapped and free, chooses at
  // most kLeavingChunksMax chunks that everybody is to leave, and says true. O(chunks log chunks),
  // and 10 us for each that is chosen.
  bool BeginCompaction();
  // From now on the chosen ones are like the others again, as far as they are still mapped.
  void EndCompaction();
  bool compacting() const { return compacting_; }
  // Whether memory of `bytes` that Allocate gave should be left. For the thread that calls
  // BeginCompaction. REQUIRES: compacting().
  static bool IsLeaving(const void* memory, size_t bytes);

  Stats stats() const;

 private:
  static constexpr size_t kChunkBytes{ChunkKeeper::kChunkBytes};
  static constexpr uint64_t kSlackBytesMin{16 << 20};
  static constexpr size_t kLeavingChunksMax{256};
  static constexpr uint32_t kGranules{kChunkBytes / kGranuleBytes};  // of a chunk
  // A tag says how long a run is up to 125 granules; a longer one has its length in its own memory.
  static constexpr uint32_t kLong{126};
  // At the beginning of a run that the sweep of the bins has marked: as kLong, whatever its length.
  static constexpr uint32_t kSwept{127};
  static constexpr uint8_t kSweptSingleTag{128};
  // The bin of all that is free in a chunk that holds nothing.
  static constexpr uint32_t kWhole{127};
  static constexpr uint8_t kEndTag{128};     // added to the length at the last granule
  static constexpr uint8_t kSingleTag{255};  // a run of one granule begins and ends there

  struct Chunk;
  // Where the sweep of the bins is (SweepSome).
  struct Sweep {
    uint32_t bin{0};      // 0: there is none
    uint32_t pushes{0};   // since it began
    bool unmarks{false};  // the second half of a bin
    size_t kept{0};       // entries of the bin that hold, at its bottom
    size_t at{0};         // the next to be looked at; between the two are dead ones
  };

  Chunk* NewChunk();
  void AddChunk(Chunk* chunk);
  void BeginChunk();
  bool HasSpareChunks() const { return chunks_free_ > 1 + chunks_mapped_ / 32; }
  void ReleaseChunk(Chunk* chunk);
  void AddRun(Chunk* chunk, uint32_t begin, uint32_t length);
  void TakeRun(Chunk* chunk, uint32_t begin, uint32_t length);
  bool PopRun(uint32_t bin, Chunk** chunk, uint32_t* begin, uint32_t* length);
  bool Holds(uint32_t bin, uint32_t id) const;
  void SweepSome();
  void SweepEntries(size_t entries);
  void UnmarkEntries(size_t entries);
  bool NextOfSweep();
  template <typename Visit>
  static void VisitRuns(Chunk* chunk, Visit visit);
  void* AllocateRun(uint32_t granules);
  void FreeRun(void* memory, uint32_t granules);
  static void* AllocateLarge(size_t bytes);

  mutable std::mutex mutex_;
  Options options_;
  ChunkKeeper keeper_;
  Stats stats_;
  std::vector<Chunk*> chunks_;            // by index; null: unmapped, to be used again
  std::vector<uint32_t> unused_indexes_;  // those that are null
  size_t chunks_mapped_{0};
  size_t chunks_free_{0};  // all of it
  // bins_[n]: ids (chunk index * kGranules + first granule) of free runs of n granules, in
  // bins_[kLong] of that many or more, in bins_[kWhole] of whole chunks. Some entries no longer
  // hold.
  std::array<std::vector<uint32_t>, kWhole + 1> bins_;
  std::array<uint64_t, 2> bins_filled_{};  // bit n: bins_[n] is not empty
  bool compacting_{false};                 // the owner's
  uint64_t entries_{0};                    // in all bins
  uint64_t runs_{0};                       // free runs that there really are
  uint64_t swept_{0};                      // entries, ever
  Sweep sweep_;
};

}  // namespace cellar
