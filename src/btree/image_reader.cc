// BTreeImageReader: walks the leaves of a snapshot in order and hands out their images.
//
// It may run in another thread than the tree's owner: what a snapshot reaches does not change. If
// the snapshot was taken for images only, each leaf left behind is passed (PassLeaf), after which
// the owner may write or free it: the reader never looks back.
#include <array>

#include "base/assert.h"
#include "btree/btree.h"
#include "btree/image.h"
#include "btree/tree.h"

namespace cellar {

using btree_internal::SnapshotState;

class btree_internal::ImageRead {
 public:
  explicit ImageRead(SnapshotState* snapshot)
      : root_(snapshot->content.root),
        height_(snapshot->content.height),
        passing_(snapshot->images_only ? snapshot : nullptr) {}
  ~ImageRead() { NodeArena::Global().Trim(); }

  bool Next(std::string* image) {
    Leaf* const leaf = NextLeaf();
    if (leaf == nullptr) return false;
    AppendLeafImage(leaf, image);
    // The owner copies what it writes meanwhile: let this thread clear the memory for that.
    if (leaves_++ % kPreparedEvery == 0) NodeArena::Global().PrepareChunks(kPreparedChunks);
    if (passing_ != nullptr) PassLeaf(passing_, leaf);
    return true;
  }

 private:
  static constexpr uint64_t kPreparedEvery{64};  // leaves: about as many as are copied meanwhile
  static constexpr size_t kPreparedChunks{3};
  static constexpr uint32_t kAhead{2};  // leaves whose lines are asked for before they are read

  Leaf* NextLeaf() {
    if (root_ == nullptr) return nullptr;
    void* node = root_;
    uint32_t level = 0;
    if (started_) {
      level = height_;
      for (;;) {
        if (level-- == 0) return nullptr;
        if (++index_[level] < nodes_[level]->children) break;
      }
      node = nodes_[level]->pointers()[index_[level]];
      ++level;
    }
    started_ = true;
    for (; level < height_; ++level) {
      nodes_[level] = static_cast<const Inner*>(node);
      index_[level] = 0;
      node = nodes_[level]->pointers()[0];
    }
    if (height_ > 0) {
      const Inner* parent = nodes_[height_ - 1];
      const uint32_t ahead = index_[height_ - 1] + kAhead;
      if (ahead < parent->children) PrefetchLines(parent->pointers()[ahead], 16);
    }
    return static_cast<Leaf*>(node);
  }

  void* root_;
  uint32_t height_;
  SnapshotState* passing_;  // null: it keeps its leaves
  bool started_{false};
  uint64_t leaves_{0};
  std::array<const Inner*, kHeightMax> nodes_{};
  std::array<uint32_t, kHeightMax> index_{};
};

BTreeImageReader::BTreeImageReader(const BTreeSnapshot& snapshot) {
  SnapshotState* const state = snapshot.state_.get();
  CELLAR_ASSERT(state != nullptr);
  CELLAR_ASSERT(!state->images_only || !state->has_reader);
  state->has_reader = true;
  read_ = std::make_unique<btree_internal::ImageRead>(state);
}
BTreeImageReader::~BTreeImageReader() = default;
bool BTreeImageReader::Next(std::string* image) { return read_->Next(image); }

}  // namespace cellar
