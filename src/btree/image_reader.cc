// BTreeImageReader: walks the leaves of a snapshot in order and hands out their images.
//
// It may run in another thread than the tree's owner: what a snapshot reaches does not change. If
// the snapshot was taken for images only, each leaf left behind is passed (PassLeaf), after which
// the owner may write or free it: the reader never looks back. Of a version what the next newer one
// has is told as runs of its leaves (version.h).
#include <optional>

#include "base/assert.h"
#include "btree/btree.h"
#include "btree/image.h"
#include "btree/tree.h"

namespace cellar {

using btree_internal::SnapshotState;

class btree_internal::ImageRead {
 public:
  ImageRead(SnapshotState* snapshot, uint64_t value_bytes_max)
      : images_(value_bytes_max),
        newer_images_(value_bytes_max),
        leaves_(snapshot->content.root, snapshot->content.height),
        payload_bytes_(snapshot->content.payload_bytes),
        passing_(snapshot->images_only ? snapshot : nullptr) {}
  ~ImageRead() { NodeArena::Global().Trim(); }

  void SetNewer(const TreeContent& newer, uint64_t epoch) {
    CELLAR_ASSERT(passing_ == nullptr);
    newer_.emplace(newer.root, newer.height);
    epoch_ = epoch;
    NextShared();
  }

  bool Next(std::string* image) {
    if (leaf_ == nullptr) {
      leaf_ = ahead_ != nullptr ? std::exchange(ahead_, nullptr) : leaves_.Next();
      if (leaf_ == nullptr) return false;
      if (leaf_ == shared_) {
        leaf_ = nullptr;
        TakeRun(image);
        return true;
      }
      images_.Begin(leaf_);
    }
    if (!images_.Append(image)) return true;
    // The owner copies what it writes meanwhile: let this thread clear the memory for that.
    if (passed_++ % kPreparedEvery == 0) NodeArena::Global().PrepareChunks(kPreparedChunks);
    if (passing_ != nullptr) PassLeaf(passing_, leaf_);
    leaf_ = nullptr;
    return true;
  }

 private:
  static constexpr uint64_t kPreparedEvery{64};  // leaves: about as many as are copied meanwhile
  static constexpr size_t kPreparedChunks{3};
  static constexpr uint32_t kRunLeavesMax{1 << 20};

  // The next leaf of the newer one that was there by then. Leaves are counted as they will be once
  // they are loaded: as their images.
  void NextShared() {
    do {
      shared_number_ += shared_images_;
      shared_ = newer_->Next();
      shared_images_ = shared_ == nullptr ? 0 : newer_images_.CountOf(shared_);
    } while (shared_ != nullptr && shared_->birth > epoch_);
  }

  void TakeRun(std::string* image) {
    LeafRun run{.first = shared_number_, .count = 0, .payload_bytes = payload_bytes_};
    do {
      run.count += shared_images_;
      ahead_ = leaves_.Next();
      NextShared();
    } while (ahead_ != nullptr && ahead_ == shared_ && shared_number_ == run.first + run.count &&
             run.count < kRunLeavesMax);
    AppendLeafRun(run, image);
  }

  LeafImages images_;
  LeafImages newer_images_;
  LeafWalk leaves_;
  const uint64_t payload_bytes_;
  SnapshotState* passing_;  // null: it keeps its leaves
  uint64_t passed_{0};
  Leaf* leaf_{nullptr};   // the one whose images are being made
  Leaf* ahead_{nullptr};  // the next one, taken already
  std::optional<LeafWalk> newer_;
  uint64_t epoch_{0};
  Leaf* shared_{nullptr};
  uint64_t shared_number_{0};  // leaves of the newer one before it
  uint32_t shared_images_{0};  // that it will be
};

BTreeImageReader::BTreeImageReader(const BTreeSnapshot& snapshot, uint64_t value_bytes_max) {
  SnapshotState* const state = snapshot.state_.get();
  CELLAR_ASSERT(state != nullptr);
  CELLAR_ASSERT(!state->images_only || !state->has_reader);
  state->has_reader = true;
  read_ = std::make_unique<btree_internal::ImageRead>(state, value_bytes_max);
}
BTreeImageReader::BTreeImageReader(const BTreeSnapshot& snapshot, const BTreeSnapshot& newer,
                                   uint64_t epoch, uint64_t value_bytes_max)
    : BTreeImageReader(snapshot, value_bytes_max) {
  CELLAR_ASSERT(!newer.state_->images_only);
  read_->SetNewer(newer.state_->content, epoch);
}
BTreeImageReader::~BTreeImageReader() = default;
bool BTreeImageReader::Next(std::string* image) { return read_->Next(image); }

}  // namespace cellar
