// Epochs: who may still see a node, and when its memory goes back. One per tree.
//
// The tree counts epochs; taking a snapshot ends one. A node remembers the epoch of its birth.
//
//   epoch       1        2        3        4
//               |--------|--------|--------|--->
//   snapshots        s1       s2
//   node a      [birth 1 ............. retired 3)     seen by s1 and s2
//   node b               [birth 2 .... retired 3)     seen by s2
//   node c                        [birth 3 .......    seen by none: may be written in place
//
// - A node may be written iff no live snapshot sees it, which is: its birth is newer than the
//   newest live snapshot. Otherwise the tree copies it, and its path, and retires the original.
// - A retired node waits in the queue of the newest snapshot that sees it. When this one is
//   dropped, the queue as a whole becomes pending; each later operation settles a few of the
//   pending: to the next older snapshot that sees it, or back to the arena.
// - A snapshot for images only (a serialiser) needs no leaf that its reader has passed: the reader
//   notes that in the leaf, and such a leaf is written in place. One that the tree retires before
//   is marked with its place in the snapshot's queue; the reader, when it passes, finds the mark and
//   hands the place back, so that the leaf's memory is used again while it is still in the caches,
//   and nobody searches.
//
// Going back to a snapshot s makes nodes alive again that were retired since. They stay where they
// are queued; a Rollback {s, now} remembers that what was born by s and retired in (s, now] is
// alive: its note is thrown away when its turn comes. What was born after s is abandoned: a walk
// through the abandoned tree, a few nodes per operation, retires it. It tells the two apart by
// their births, so what was born by s is freed only when the walk is over (deferred_). That is all
// if s is an ancestor of the present content. It is not if the tree went back to something older
// than s in between; then the two trees are compared node by node, at once (RollBackSideways), and
// s counts as an ancestor only since then.
//
// Only the owner thread calls any of this, but for PassLeaf. What the reader's thread writes is
// Leaf::passed and HandedBack.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "btree/nodes/arena.h"
#include "btree/nodes/entry.h"
#include "btree/nodes/inner.h"
#include "btree/nodes/leaf.h"

namespace cellar::btree_internal {

class Tree;

enum class NodeKind : uint8_t { kNone, kLeaf, kInner, kValue };

// A node that has left the tree. kNone: nothing any more.
struct Retired {
  void* pointer;
  uint64_t birth;
  uint64_t retired;
  uint32_t bytes;
  NodeKind kind;
};

// A queue in blocks, so that pushing never copies and two are joined in O(1).
class RetiredQueue {
 public:
  RetiredQueue() = default;
  ~RetiredQueue();
  RetiredQueue(const RetiredQueue&) = delete;
  RetiredQueue& operator=(const RetiredQueue&) = delete;

  bool empty() const { return size_ == 0; }
  uint64_t size() const { return size_; }
  uint64_t bytes() const { return bytes_; }  // of the nodes
  void Push(const Retired& item);
  Retired Pop();  // REQUIRES: !empty()
  // The next but i to be popped, null if it stands in another block. O(1).
  const Retired* Ahead(size_t i) const {
    return first_ != nullptr && first_->begin + i < first_->end ? &first_->items[first_->begin + i]
                                                                : nullptr;
  }
  // The i-th that was pushed. REQUIRES: nothing was ever popped or joined. O(1).
  Retired& at(uint64_t i) { return blocks_[i / kBlockItems]->items[i % kBlockItems]; }
  void Join(RetiredQueue* other);  // leaves *other empty

 private:
  static constexpr size_t kBlockItems{60};
  struct Block {
    std::unique_ptr<Block> next;
    uint32_t begin{0};
    uint32_t end{0};
    std::array<Retired, kBlockItems> items;
  };
  std::unique_ptr<Block> first_;
  Block* last_{nullptr};
  uint64_t size_{0};
  uint64_t bytes_{0};
  bool is_whole_{true};         // nothing was ever popped or joined; then, for at():
  std::vector<Block*> blocks_;  // all of them
};

// Places in a queue that a serialiser's reader hands back to the owner thread: a stack of blocks,
// pushed by the one and taken as a whole by the other, neither of whom ever waits.
class HandedBack {
 public:
  HandedBack() = default;
  ~HandedBack();
  HandedBack(const HandedBack&) = delete;
  HandedBack& operator=(const HandedBack&) = delete;

  void Push(uint32_t place);  // by the reader; seen by the owner when a block is full
  // Calls visit(place) for all that can be seen. By the owner.
  template <typename Visit>
  void TakeAll(Visit visit) {
    if (full_.load(std::memory_order_relaxed) == nullptr) return;
    std::unique_ptr<Block> block(full_.exchange(nullptr, std::memory_order_acquire));
    for (; block != nullptr; block.reset(block->next))
      for (const uint32_t place : block->places) visit(place);
  }

 private:
  struct Block {
    Block* next{nullptr};
    std::array<uint32_t, 14> places;
  };
  std::unique_ptr<Block> filling_;  // the reader's
  size_t filled_{0};
  std::atomic<Block*> full_{nullptr};
};

// What a tree is made of at one moment.
struct TreeContent {
  void* root{nullptr};
  uint32_t height{0};  // levels of inner nodes; 0: the root is a leaf, or null
  uint64_t entries{0};
  uint64_t payload_bytes{0};
};

struct SnapshotState {
  Tree* tree{nullptr};
  TreeContent content;
  uint64_t epoch{0};
  bool images_only{false};
  bool has_reader{false};
  bool is_ancestor{true};      // of the present content
  uint64_t ancestor_since{0};  // ... without a break since this epoch
  RetiredQueue retired;        // what this snapshot sees, and no newer one
  // Of a snapshot for images only:
  uint32_t serial{0};  // which one of its tree, in marks
  HandedBack handed_back;
};

// The reader of a snapshot for images has read `leaf`, and will not touch it again.
void PassLeaf(SnapshotState* snapshot, Leaf* leaf);

class Epochs {
 public:
  Epochs() = default;
  ~Epochs();  // REQUIRES: no live snapshot.
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  // Memory for a node with capacity >= bytes; birth is now, the rest is the caller's to fill.
  Leaf* NewLeaf(size_t bytes);
  Inner* NewInner(size_t bytes);
  LargeValue* NewValue(std::string_view value);

  bool MayWrite(Leaf* leaf) { return leaf->birth > newest_live_ || MayWritePassed(leaf); }
  bool MayWrite(const Inner* node) const { return node->birth > newest_live_; }

  // The node has left the tree.
  void Retire(Leaf* leaf) {
    Settle({leaf, leaf->birth, epoch_, leaf->capacity(), NodeKind::kLeaf});
  }
  void Retire(Inner* node) {
    Settle({node, node->birth, epoch_, node->capacity, NodeKind::kInner});
  }
  void Retire(LargeValue* value) {
    Settle({value, value->birth, epoch_, value->capacity, NodeKind::kValue});
  }
  // Everything below `content.root` that was born after epoch `cutoff` leaves the tree, by and by.
  void Abandon(const TreeContent& content, uint64_t cutoff);
  // Frees a few of what may be freed; called by every write.
  void ReleaseSome() {
    if (has_work_) [[unlikely]]
      Work(kReleasedPerWrite);
  }
  // Goes on with that; false when nothing is left to do.
  bool Work(size_t steps);

  // A second snapshot for images only, while there is one, becomes an ordinary one.
  void TakeSnapshot(SnapshotState* snapshot);
  void DropSnapshot(SnapshotState* snapshot);
  // --- versions that are loaded (version.h)
  // The next `count` epochs are theirs. REQUIRES: nothing was made or taken yet.
  void ReserveVersions(uint64_t count);
  // A snapshot of that epoch, which was reserved, from the newest one down.
  void AddVersion(SnapshotState* snapshot);
  // What a version of that epoch has, and no newer one.
  void RetireVersion(uint64_t epoch, const std::vector<Leaf*>& leaves,
                     const std::vector<Inner*>& inners);
  // The present content is abandoned as far as `snapshot` does not share it.
  void RollBack(const TreeContent& present, SnapshotState* snapshot);

  uint64_t epoch() const { return epoch_; }
  uint64_t memory_bytes() const { return memory_bytes_; }
  // Size of the largest value that NewValue has been given.
  size_t largest_value_bytes() const { return largest_value_bytes_; }
  void NoteValueBytes(size_t bytes) {
    largest_value_bytes_ = std::max(largest_value_bytes_, bytes);
  }
  size_t snapshots() const { return live_.size(); }

 private:
  static constexpr size_t kReleasedPerWrite{4};

  struct Rollback {
    uint64_t to;
    uint64_t since;
    uint64_t at;
  };
  struct Frame {
    void* node;
    uint32_t level;
    uint32_t next_child;
  };
  struct Walk {
    uint64_t cutoff;
    uint64_t retired;
    std::vector<Frame> frames;
  };

  bool MayWritePassed(Leaf* leaf);
  void Settle(const Retired& item);
  static bool MarkForReader(SnapshotState* snapshot, const Retired& item);
  void TakeHandedBack(SnapshotState* snapshot);
  bool IsAlive(const Retired& item) const;
  void Free(const Retired& item);
  void Step(Walk* walk);
  void RollBackSideways(const TreeContent& present, SnapshotState* snapshot);
  void* Allocate(size_t bytes);

  NodeArena& arena_{NodeArena::Global()};
  uint64_t epoch_{1};
  uint64_t newest_live_{0};
  uint32_t images_serial_{0};  // of the last snapshot for images only
  uint64_t memory_bytes_{0};
  size_t largest_value_bytes_{0};
  bool has_work_{false};
  std::vector<SnapshotState*> live_;  // ascending epochs
  RetiredQueue pending_;
  RetiredQueue deferred_;     // may be freed when walks_ is empty
  uint64_t walks_cutoff_{0};  // the highest of walks_
  std::vector<Walk> walks_;
  std::vector<Rollback> rollbacks_;
};

}  // namespace cellar::btree_internal
