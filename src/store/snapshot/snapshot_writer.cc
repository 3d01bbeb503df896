// Trees to snapshot file: see snapshot_writer.h.
#include "store/snapshot/snapshot_writer.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/os/background_pace.h"
#include "base/os/object_store.h"
#include "cellar/clock.h"
#include "store/format/snapshot_format.h"

namespace cellar {
namespace {

constexpr uint64_t kWritebackBytes = 512 << 10;
constexpr uint64_t kSyncEveryBytes = 8 << 20;

class SnapshotFileWriter {
 public:
  SnapshotFileWriter(std::unique_ptr<WritableFile> file, SnapshotProgress* progress)
      : file_(std::move(file)), progress_(progress) {}

  Status WriteTree(const StateMachine::TreeSnapshot& tree, SnapshotTree* entry);
  Status Write(std::string_view bytes);
  Status Finish() {
    RETURN_IF_ERROR(file_->Sync());
    file_->DropCache(0, offset_);
    return file_->Close();
  }
  uint64_t offset() const { return offset_; }

 private:
  // Moves whole images from the reader to block_, up to a block's size. Returns how many.
  uint32_t FillBlock(BTreeImageReader* reader);

  std::unique_ptr<WritableFile> file_;
  SnapshotProgress* const progress_;
  BackgroundPace pace_{Clock::System()};
  std::string block_;
  uint64_t offset_{0};
  uint64_t writeback_offset_{0};  // what is before it has begun to be written to the disk
  uint64_t synced_offset_{0};
};

// Every few megabytes are synced: one sync at the end would hold up the log's syncs for as long as
// the disk needs for all of it.
Status SnapshotFileWriter::Write(std::string_view bytes) {
  if (progress_->cancelled.load(std::memory_order_relaxed))
    return Status::Error(ErrorCode::kErr, "the snapshot was abandoned");
  pace_.Pause();
  RETURN_IF_ERROR(file_->WriteAt(offset_, bytes));
  offset_ += bytes.size();
  CELLAR_ASSERT(synced_offset_ <= offset_);
  CELLAR_ASSERT(writeback_offset_ <= offset_);
  if (offset_ - writeback_offset_ >= kWritebackBytes) {
    file_->BeginWriteback(writeback_offset_, offset_ - writeback_offset_);
    writeback_offset_ = offset_;
  }
  if (offset_ - synced_offset_ < kSyncEveryBytes) return Status::Ok();
  RETURN_IF_ERROR(file_->Sync());
  file_->DropCache(synced_offset_, offset_ - synced_offset_);
  synced_offset_ = offset_;
  return Status::Ok();
}

uint32_t SnapshotFileWriter::FillBlock(BTreeImageReader* reader) {
  uint32_t images = 0;
  block_.resize(kBlockHeaderBytes);
  while (block_.size() - kBlockHeaderBytes < kBlockImagesBytes) {
    const size_t length_at = block_.size();
    block_.append(4, '\0');
    if (!reader->Next(&block_)) {
      block_.resize(length_at);
      break;
    }
    CELLAR_ASSERT(block_.size() - length_at - 4 <= UINT32_MAX);
    EncodeFixed32(&block_[length_at], static_cast<uint32_t>(block_.size() - length_at - 4));
    ++images;
  }
  return images;
}

// Leaves as they are, block by block; progress is estimated by bytes, as nobody counts cells here.
Status SnapshotFileWriter::WriteTree(const StateMachine::TreeSnapshot& tree, SnapshotTree* entry) {
  const BTreeSnapshot& snapshot = tree.snapshot;
  const uint64_t cells_before = progress_->cells_done.load(std::memory_order_relaxed);
  *entry = {.tree_id = tree.tree_id,
            .entries = snapshot.entries(),
            .payload_bytes = snapshot.payload_bytes(),
            .begin_offset = offset_};
  BTreeImageReader reader = tree.newer.valid()
                                ? BTreeImageReader(snapshot, tree.newer, tree.version_epoch)
                                : BTreeImageReader(snapshot);
  while (const uint32_t images = FillBlock(&reader)) {
    SealBlock(&block_, images, tree.tree_id, offset_);
    RETURN_IF_ERROR(Write(block_));
    ++entry->blocks;
    // Images are smaller than what they hold, so this errs on the low side.
    const double share = static_cast<double>(offset_ - entry->begin_offset) /
                         static_cast<double>(std::max<uint64_t>(entry->payload_bytes, 1));
    const auto cells =
        static_cast<uint64_t>(std::min(share, 1.0) * static_cast<double>(entry->entries));
    progress_->cells_done.store(cells_before + cells, std::memory_order_relaxed);
  }
  progress_->cells_done.store(cells_before + entry->entries, std::memory_order_relaxed);
  entry->end_offset = offset_;
  return Status::Ok();
}

Result<SnapshotEntry> WriteTemporary(FileSystem& files, const std::string& path,
                                     const SnapshotTask& task,
                                     const StateMachine::StateSnapshot& state,
                                     SnapshotProgress* progress) {
  ASSIGN_OR_RETURN(auto file, files.Create(path));
  SnapshotFileWriter writer(std::move(file), progress);
  RETURN_IF_ERROR(writer.Write(EncodeSnapshotHeader({.lsn = task.lsn,
                                                     .created_micros = task.created_micros,
                                                     .commit_micros = task.commit_micros,
                                                     .salvaged_from = task.salvaged_from})));
  RETURN_IF_ERROR(writer.Write(EncodeSnapshotHead(state.catalog, task.members)));
  SnapshotFooter footer;
  footer.catalog = state.catalog;
  footer.members = task.members;
  for (const StateMachine::TreeSnapshot& tree : state.trees)
    RETURN_IF_ERROR(writer.WriteTree(tree, &footer.trees.emplace_back()));
  const std::string footer_bytes = EncodeSnapshotFooter(footer);
  SnapshotTrailer trailer{.footer_offset = writer.offset(),
                          .footer_bytes = footer_bytes.size(),
                          .footer_hash = Hash64(footer_bytes)};
  RETURN_IF_ERROR(writer.Write(footer_bytes));
  RETURN_IF_ERROR(writer.Write(EncodeSnapshotTrailer(&trailer)));
  RETURN_IF_ERROR(writer.Finish());
  progress->trees = std::move(footer.trees);
  return SnapshotEntry{
      .number = task.number, .lsn = task.lsn, .bytes = writer.offset(), .hash = trailer.hash};
}

}  // namespace

Result<SnapshotEntry> WriteSnapshot(FileSystem& files, const SnapshotTask& task,
                                    const StateMachine::StateSnapshot& state,
                                    SnapshotProgress* progress) {
  const bool is_named = !task.name.empty();
  const std::string path = JoinPath(
      task.directory, is_named ? task.name : FormatFileName(StoreFileKind::kSnapshot, task.number));
  const std::string temporary =
      IsObjectPath(path)  // has its name when it is whole
          ? path
          : JoinPath(task.directory,
                     is_named ? task.name + ".new"
                              : FormatFileName(StoreFileKind::kTemporarySnapshot, task.number));
  // Numbers are not used twice, names are: one may have been left by a process that has died.
  if (is_named) (void)files.Remove(temporary);
  Result<SnapshotEntry> entry = WriteTemporary(files, temporary, task, state, progress);
  Status status = entry.status();
  if (status.ok() && temporary != path) status = files.Rename(temporary, path);
  if (status.ok()) status = files.SyncDirectory(task.directory);
  if (status.ok()) return entry;
  // Whichever of the two there is; no manifest names it yet.
  if (temporary != path) (void)files.Remove(temporary);
  (void)files.Remove(path);
  return status;
}

}  // namespace cellar
