// See snapshot_intake.h.
#include "store/snapshot/snapshot_intake.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

// Behind so much that has been taken out, the rest is moved to the front.
constexpr size_t kMoveBytes{1 << 20};

}  // namespace

SnapshotIntake::SnapshotIntake(const SnapshotEntry& entry, uint64_t end_bytes)
    : entry_(entry), end_bytes_(end_bytes), engine_(std::make_unique<Engine>()) {}

SnapshotIntake::~SnapshotIntake() = default;

Status SnapshotIntake::Corruption(std::string_view what) const {
  return Status::Error(ErrorCode::kCorruption,
                       fmt::format("snapshot, offset {}: {}", offset_, what));
}

void SnapshotIntake::Consume(size_t bytes) {
  begin_ += bytes;
  CELLAR_ASSERT(begin_ <= buffer_.size());
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ >= kMoveBytes) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
}

Result<bool> SnapshotIntake::Step(Clock& clock, int64_t deadline_micros) {
  while (!done_) {
    ASSIGN_OR_RETURN(const bool taken, !footer_          ? TakeFrame()
                                       : head_bytes_ > 0 ? TakeHead()
                                                         : TakeBlock());
    if (!taken) return false;
    if (clock.MonotonicMicros() >= deadline_micros) return true;
  }
  return false;
}

// Header, footer and trailer.
Result<bool> SnapshotIntake::TakeFrame() {
  if (end_bytes_ < kSnapshotTrailerBytes || end_bytes_ > entry_.bytes ||
      entry_.bytes - end_bytes_ < kSnapshotHeaderBytes)
    return Corruption("its parts are larger than it");
  if (rest().size() < kSnapshotHeaderBytes + end_bytes_) return false;
  const std::string_view end = rest().substr(kSnapshotHeaderBytes, end_bytes_);
  ASSIGN_OR_RETURN(const SnapshotHeader header,
                   DecodeSnapshotHeader(rest().substr(0, kSnapshotHeaderBytes)));
  const size_t footer_bytes = end.size() - kSnapshotTrailerBytes;
  ASSIGN_OR_RETURN(const SnapshotTrailer trailer, DecodeSnapshotTrailer(end.substr(footer_bytes)));
  const uint64_t footer_offset = entry_.bytes - end_bytes_;
  if (header.lsn != entry_.lsn || trailer.hash != entry_.hash ||
      trailer.footer_offset != footer_offset || trailer.footer_bytes != footer_bytes)
    return Corruption("it is another one than was announced");
  if (Hash64(end.substr(0, footer_bytes)) != trailer.footer_hash)
    return Corruption("the checksum of its footer is wrong");
  ASSIGN_OR_RETURN(footer_, DecodeSnapshotFooter(end.substr(0, footer_bytes), header.version));
  if (!TreesFillFile(*footer_, header.version, footer_offset))
    return Corruption("the trees do not follow one another");
  RETURN_IF_ERROR(engine_->BeginLoad(footer_->catalog));
  offset_ = kSnapshotHeaderBytes;
  head_bytes_ = SnapshotHeadBytes(*footer_, header.version, footer_offset);
  Consume(kSnapshotHeaderBytes + end_bytes_);
  if (head_bytes_ == 0) RETURN_IF_ERROR(EndTrees());
  return true;
}

Result<bool> SnapshotIntake::TakeHead() {
  if (rest().size() < head_bytes_) return false;
  if (const Status agrees = CheckSnapshotHead(rest().substr(0, head_bytes_), *footer_);
      !agrees.ok())
    return Corruption(agrees.text());
  offset_ += head_bytes_;
  Consume(std::exchange(head_bytes_, 0));
  RETURN_IF_ERROR(EndTrees());
  return true;
}

// Ends those that have all their blocks, and begins the next one.
Status SnapshotIntake::EndTrees() {
  const std::vector<SnapshotTree>& trees = footer_->trees;
  while (tree_ < trees.size()) {
    const SnapshotTree& tree = trees[tree_];
    if (loader_ == nullptr) {
      loading_ = engine_->TreeForLoad(tree.tree_id);
      if (loading_ == nullptr) return Corruption("the catalog does not know a tree");
      loader_ = std::make_unique<BTreeBulkLoader>(loading_);
      blocks_ = 0;
    }
    if (offset_ < tree.end_offset) return Status::Ok();
    RETURN_IF_ERROR(EndTree(tree));
    ++tree_;
  }
  RETURN_IF_ERROR(engine_->FinishLoad());
  if (!rest().empty()) return Corruption("more came than belongs to it");
  done_ = true;
  return Status::Ok();
}

Status SnapshotIntake::EndTree(const SnapshotTree& tree) {
  RETURN_IF_ERROR(loader_->Finish());
  loader_.reset();
  if (blocks_ != tree.blocks || loading_->entries() != tree.entries)
    return Corruption("a tree does not hold what the footer says");
  return Status::Ok();
}

Result<bool> SnapshotIntake::TakeBlock() {
  const SnapshotTree& tree = footer_->trees[tree_];
  const uint64_t left = tree.end_offset - offset_;
  if (left < kBlockHeaderBytes) return Corruption("no room for a block");
  if (rest().size() < kBlockHeaderBytes) return false;
  const BlockHeader header = DecodeBlockHeader(rest());
  if (header.images_bytes > left - kBlockHeaderBytes)
    return Corruption("a block reaches beyond its tree");
  const size_t bytes = kBlockHeaderBytes + header.images_bytes;
  if (rest().size() < bytes) return false;
  if (Status split = SplitBlock(rest().substr(0, bytes), offset_, tree.tree_id, &images_);
      !split.ok())
    return Corruption(split.text());
  for (const std::string_view image : images_) {
    if (Status added = loader_->AddImage(image); !added.ok()) return Corruption(added.text());
  }
  ++blocks_;
  offset_ += bytes;
  Consume(bytes);
  RETURN_IF_ERROR(EndTrees());
  return true;
}

std::unique_ptr<Engine> SnapshotIntake::TakeEngine() {
  // A tree that is laid half can be freed in slices only when it is one.
  if (loader_ != nullptr) (void)loader_->Finish();
  loader_.reset();
  return std::move(engine_);
}

}  // namespace cellar
