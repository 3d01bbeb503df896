// Descents: the ways down to keys that are about to be looked up, as a prefetch has found them.
//
// A batch of commands is prefetched together and then executed one after the other, in the same
// order. What the prefetch has found, the execution need not search again: the tree notes the path
// of each prefetched key here, and a look-up that follows takes the path of the key that its own
// begins with. It is a hint: whether the leaf is the right one the search in it tells
// (Tree::LocateNoted).
//
// The tree keeps the paths right when a node on them changes, or forgets them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/inline.h"
#include "btree/nodes/bytes.h"
#include "btree/nodes/inner.h"

namespace cellar::btree_internal {

// 4 children a node at the least (see kInnerChildrenMin): 2^32 leaves.
inline constexpr uint32_t kHeightMax{16};

// The inner nodes from the root down, and the child taken in each.
struct Path {
  std::array<Inner*, kHeightMax> nodes;
  std::array<uint32_t, kHeightMax> index;

  // Only the first `levels` of the other.
  void Assign(const Path& other, uint32_t levels) {
    for (uint32_t level = 0; level < levels; ++level) {
      nodes[level] = other.nodes[level];
      index[level] = other.index[level];
    }
  }
};

class Descents {
 public:
  // Keys that are prefetched together: as many as a core has misses open.
  static constexpr size_t kDescentsMax{16};

  void Forget() { next_ = end_ = 0; }

  // Room for `count` paths. If those that are left are too many for that they are forgotten; so are
  // all but the last one looked up, which are over.
  void MakeRoom(size_t count) {
    if (next_ + 1 >= end_ || end_ + count > kDescentsMax) Forget();
  }

  // Notes that `key` is looked up next but for those noted before; the path is the caller's to fill
  // in. REQUIRES: room for it.
  Path* Add(std::string_view key) {
    Descent& descent = descents_[end_++];
    descent.key_bytes = key.size() < sizeof(uint64_t) ? kNoKey : key.size();
    if (descent.key_bytes != kNoKey) descent.key_tail = Tail(key, key.size());
    return &descent.path;
  }

  // The path of a prefetched key that `key` begins with (to judge by 8 bytes of it); those before
  // are forgotten. Null if there is none.
  CELLAR_INLINE Path* Find(std::string_view key) {
    for (size_t i = next_; i < end_; ++i) {
      Descent& descent = descents_[i];
      if (key.size() < descent.key_bytes || Tail(key, descent.key_bytes) != descent.key_tail)
        continue;
      next_ = i;
      return &descent.path;
    }
    Forget();
    return nullptr;
  }

  // `node` of this level has become `to`, in other memory or not.
  void NodeMoved(uint32_t level, const Inner* node, Inner* to) {
    for (size_t i = next_; i < end_; ++i) {
      Path& path = descents_[i].path;
      if (path.nodes[level] == node) path.nodes[level] = to;
    }
  }

  // A child has been added behind child `at` of `node`, which took over a part of its keys.
  void ChildAdded(uint32_t level, const Inner* node, uint32_t at) {
    for (size_t i = next_; i < end_; ++i) {
      Descent& descent = descents_[i];
      if (descent.path.nodes[level] != node) continue;
      if (descent.path.index[level] > at)
        ++descent.path.index[level];
      else if (descent.path.index[level] == at)
        descent.key_bytes = kNoKey;
    }
  }

 private:
  static constexpr size_t kNoKey{SIZE_MAX};

  struct Descent {
    size_t key_bytes;   // kNoKey: leads nowhere
    uint64_t key_tail;  // its last 8 bytes
    Path path;
  };

  static uint64_t Tail(std::string_view key, size_t bytes) {
    return LoadLittleEndian<uint64_t>(key.data() + bytes - sizeof(uint64_t));
  }

  size_t next_{0};  // the one found last, or the first
  size_t end_{0};
  std::array<Descent, kDescentsMax> descents_;
};

}  // namespace cellar::btree_internal
