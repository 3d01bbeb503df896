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
  explicit ImageRead(SnapshotState* snapshot)
      : leaves_(snapshot->content.root, snapshot->content.height),
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
    Leaf* const leaf = ahead_ != nullptr ? std::exchange(ahead_, nullptr) : leaves_.Next();
    if (leaf == nullptr) return false;
    if (leaf == shared_) {
      TakeRun(image);
      return true;
    }
    AppendLeafImage(leaf, image);
    // The owner copies what it writes meanwhile: let this thread clear the memory for that.
    if (passed_++ % kPreparedEvery == 0) NodeArena::Global().PrepareChunks(kPreparedChunks);
    if (passing_ != nullptr) PassLeaf(passing_, leaf);
    return true;
  }

 private:
  static constexpr uint64_t kPreparedEvery{64};  // leaves: about as many as are copied meanwhile
  static constexpr size_t kPreparedChunks{3};
  static constexpr uint32_t kRunLeavesMax{1 << 20};

  // The next leaf of the newer one that was there by then.
  void NextShared() {
    do {
      shared_ = newer_->Next();
      ++shared_number_;
    } while (shared_ != nullptr && shared_->birth > epoch_);
  }

  void TakeRun(std::string* image) {
    LeafRun run{.first = shared_number_ - 1, .count = 0, .payload_bytes = payload_bytes_};
    do {
      ++run.count;
      ahead_ = leaves_.Next();
      NextShared();
    } while (ahead_ != nullptr && ahead_ == shared_ &&
             shared_number_ - 1 == run.first + run.count && run.count < kRunLeavesMax);
    AppendLeafRun(run, image);
  }

  LeafWalk leaves_;
  const uint64_t payload_bytes_;
  SnapshotState* passing_;  // null: it keeps its leaves
  uint64_t passed_{0};
  Leaf* ahead_{nullptr};  // the next one, taken already
  std::optional<LeafWalk> newer_;
  uint64_t epoch_{0};
  Leaf* shared_{nullptr};
  uint64_t shared_number_{0};  // how many leaves of the newer one have been looked at
};

BTreeImageReader::BTreeImageReader(const BTreeSnapshot& snapshot) {
  SnapshotState* const state = snapshot.state_.get();
  CELLAR_ASSERT(state != nullptr);
  CELLAR_ASSERT(!state->images_only || !state->has_reader);
  state->has_reader = true;
  read_ = std::make_unique<btree_internal::ImageRead>(state);
}
BTreeImageReader::BTreeImageReader(const BTreeSnapshot& snapshot, const BTreeSnapshot& newer,
                                   uint64_t epoch)
    : BTreeImageReader(snapshot) {
  CELLAR_ASSERT(!newer.state_->images_only);
  read_->SetNewer(newer.state_->content, epoch);
}
BTreeImageReader::~BTreeImageReader() = default;
bool BTreeImageReader::Next(std::string* image) { return read_->Next(image); }

}  // namespace cellar
