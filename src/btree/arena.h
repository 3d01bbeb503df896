// NodeArena: where the nodes of all trees live. One per process.
//
// A node has one of 36 sizes: multiples of 64 bytes up to 512, of 128 up to 4096. Leaves are thus
// cut to measure (a slack of 2 % instead of the 30 % of a B-tree with fixed pages). Anything larger
// (a leaf with one giant key, a large value) comes from malloc.
//
//   chunk   2 MiB, aligned, mmapped, MADV_HUGEPAGE: a lookup then costs one TLB miss less (a
//           dependent miss takes ~150 ns instead of ~300)
//           +--------+----------+----------+-- ... --+----------+
//           | header | slab 0   | slab 1   |         | slab 31  |   32 slabs of 64 KiB; the header
//           +--------+----------+----------+-- ... --+----------+   takes the first 4 KiB of slab 0
//   slab    slots of one size; free ones linked through their first 4 bytes. A slab whose last slot
//   is
//           freed can take another size; a chunk whose last slab is free is unmapped, but for a few
//           that are kept so that a tree of changing size does not fault pages in and out.
//
// New slabs come from the chunk with the lowest address, so that the high ones run empty. What the
// arena holds beyond live nodes is therefore: at most one part-used slab per size (36 * 64 KiB),
// what sizes that went out of fashion left in part-used slabs, and the kept chunks.
//
// Threads: any; one mutex. Running out of memory ends the process with a message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace cellar {

class NodeArena {
 public:
  struct Options {
    bool huge_pages{true};  // ask for them (madvise); a kernel that refuses changes nothing else
  };
  struct Stats {
    uint64_t mapped_bytes{0};  // chunks
    uint64_t used_bytes{0};    // slots handed out, at their rounded size
    uint64_t large_bytes{0};   // handed out by malloc
  };

  static constexpr size_t kSlotBytesMax{4096};

  // The arena of all trees. Never destroyed.
  static NodeArena& Global();
  // Options of the global arena. REQUIRES: nothing was allocated from it yet, or equal options.
  static void Configure(const Options& options);

  explicit NodeArena(const Options& options);
  ~NodeArena();  // REQUIRES: everything was freed.
  NodeArena(const NodeArena&) = delete;
  NodeArena& operator=(const NodeArena&) = delete;

  // What Allocate really hands out for `bytes`: the smallest size that holds them.
  static constexpr size_t RoundUp(size_t bytes) {
    if (bytes <= 512) return bytes == 0 ? 64 : (bytes + 63) & ~size_t{63};
    if (bytes <= kSlotBytesMax) return (bytes + 127) & ~size_t{127};
    return (bytes + 63) & ~size_t{63};
  }
  // Uninitialised memory, 64-aligned up to kSlotBytesMax, 16-aligned above; never null.
  // REQUIRES: bytes == RoundUp(bytes).
  void* Allocate(size_t bytes);
  // REQUIRES: `memory` came from Allocate(bytes).
  void Free(void* memory, size_t bytes);

  Stats stats() const;

 private:
  static constexpr size_t kChunkBytes{2 * 1024 * 1024};
  static constexpr size_t kSlabBytes{64 * 1024};
  static constexpr size_t kSlabsPerChunk{kChunkBytes / kSlabBytes};
  static constexpr size_t kChunkHeaderBytes{4096};
  static constexpr size_t kSizes{8 + 28};

  struct Slab;
  struct Chunk;

  static constexpr size_t SizeIndex(size_t bytes) {
    return bytes <= 512 ? bytes / 64 - 1 : bytes / 128 + 3;
  }
  Chunk* NewChunk();
  void ReleaseChunk(Chunk* chunk);
  Slab* NewSlab(size_t bytes);
  void ReleaseSlab(Slab* slab);
  void* AllocateLarge(size_t bytes);

  mutable std::mutex mutex_;
  Options options_;
  Stats stats_;
  std::array<Slab*, kSizes> open_slabs_{};        // per size: slabs with a free slot, doubly linked
  std::map<uintptr_t, Chunk*> chunks_with_room_;  // those with a free slab, by address
  size_t chunks_{0};
  size_t chunks_empty_{0};
};

}  // namespace cellar
