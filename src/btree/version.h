// Version: what a tree was at one moment, as a tree of its own that may only be read.
//
//   origin   Tree: the nodes, and who may still see them (epochs.h)
//   version  Tree: the content of a snapshot of the origin; owns no node
//
// A version lives for days and is saved in files with the origin. There each leaf stands once: the
// newest of a row of versions whole, each older one as the leaves that it alone has, and runs of
// leaves of the next newer one:
//
//   origin      a b c d e      images of a .. e
//   version 2   a x c d e      run 0..1, image of x, run 2..5
//   version 1   a x y d e      run 0..2, image of y, run 3..5
//
// Where a leaf has several images (image.h) it counts as so many, since so many leaves are loaded.
//
//   a run   | number of the first leaf in the newer one u64 | leaves u32 | payload bytes of the
//           whole version u64 |
//
// A leaf of the newer one belongs to the older one too iff it was born by then: what has left a
// tree does not come back. So a file is written by walking the two side by side, and loaded by
// giving what is shared the birth of the oldest version that has it. Inner nodes are not shared
// behind a load: 1 % of the leaves for each version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "btree/epochs.h"
#include "btree/nodes/inner.h"
#include "btree/nodes/leaf.h"

namespace cellar::btree_internal {

class Tree;

inline constexpr size_t kLeafRunBytes{20};  // no leaf's image is as short

struct LeafRun {
  uint64_t first{0};
  uint32_t count{0};
  uint64_t payload_bytes{0};
};
void AppendLeafRun(const LeafRun& run, std::string* image);
[[nodiscard]] bool DecodeLeafRun(std::string_view image, LeafRun* run);

// The leaves of a content, one after the other.
class LeafWalk {
 public:
  LeafWalk(void* root, uint32_t height) : root_(root), height_(height) {}

  Leaf* Next();  // null at the end

 private:
  static constexpr uint32_t kHeightMax{16};
  static constexpr uint32_t kAhead{2};  // leaves whose lines are asked for before they are read

  void* root_;
  uint32_t height_;
  bool started_{false};
  const Inner* nodes_[kHeightMax]{};
  uint32_t index_[kHeightMax]{};
};

struct Version {
  Version() = default;
  ~Version();
  Version(const Version&) = delete;
  Version& operator=(const Version&) = delete;

  Tree* origin{nullptr};
  SnapshotState state;     // of the origin
  bool registered{false};  // the origin knows of the state
  // While it is loaded:
  TreeContent newer;  // what runs are of
  bool has_newer{false};
  // Made by a load, and not in the newer one; they wait until their births are final.
  std::vector<Leaf*> own_leaves;
  std::vector<Inner*> own_inners;

  void Seal();
};

}  // namespace cellar::btree_internal
