// Snapshot file to trees: see snapshot_reader.h.
#include "store/snapshot/snapshot_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"

namespace cellar {
namespace {
constexpr size_t kReadBytes = 1 << 20;
}  // namespace

Status SnapshotReader::Corruption(uint64_t offset, std::string_view what) const {
  return Status::Error(ErrorCode::kCorruption,
                       fmt::format("{}: offset {}: {}", path_, offset, what));
}

Result<std::unique_ptr<SnapshotReader>> SnapshotReader::Open(FileSystem& files,
                                                             const std::string& path) {
  ASSIGN_OR_RETURN(auto file, files.OpenForReading(path));
  std::unique_ptr<SnapshotReader> reader(new SnapshotReader(path, std::move(file)));
  RETURN_IF_ERROR(reader->ReadFrame());
  return reader;
}

Result<std::string_view> SnapshotReader::Read(uint64_t offset, size_t size) {
  const bool buffered =
      offset >= buffer_offset_ && offset + size <= buffer_offset_ + buffer_.size();
  if (!buffered) {
    buffer_.resize(std::max(size, kReadBytes));
    buffer_offset_ = offset;
    ASSIGN_OR_RETURN(const size_t n, file_->ReadAt(offset, buffer_.size(), buffer_.data()));
    buffer_.resize(n);
    if (n < size) return Corruption(offset, "the file ends too early");
  }
  return std::string_view(buffer_).substr(offset - buffer_offset_, size);
}

// From both ends to the middle: header, trailer, the footer that it points to, and whether the
// trees fill the file without a gap. So a file that was cut short or never finished is found before
// anything of it is loaded.
Status SnapshotReader::ReadFrame() {
  ASSIGN_OR_RETURN(file_bytes_, file_->Size());
  if (file_bytes_ < kSnapshotHeaderBytes + kSnapshotTrailerBytes)
    return Corruption(0, "too short for a snapshot");
  ASSIGN_OR_RETURN(const std::string_view header_bytes, Read(0, kSnapshotHeaderBytes));
  Result<SnapshotHeader> header = DecodeSnapshotHeader(header_bytes);
  if (!header.ok()) return Corruption(0, header.status().text());
  header_ = *header;

  const uint64_t trailer_offset = file_bytes_ - kSnapshotTrailerBytes;
  ASSIGN_OR_RETURN(const std::string_view trailer_bytes,
                   Read(trailer_offset, kSnapshotTrailerBytes));
  Result<SnapshotTrailer> trailer = DecodeSnapshotTrailer(trailer_bytes);
  if (!trailer.ok()) return Corruption(trailer_offset, trailer.status().text());
  trailer_hash_ = trailer->hash;
  if (trailer->footer_offset < kSnapshotHeaderBytes || trailer->footer_offset > trailer_offset ||
      trailer->footer_bytes != trailer_offset - trailer->footer_offset)
    return Corruption(trailer_offset, "the footer is not where the trailer says");

  ASSIGN_OR_RETURN(const std::string_view footer_bytes,
                   Read(trailer->footer_offset, trailer->footer_bytes));
  if (Hash64(footer_bytes) != trailer->footer_hash)
    return Corruption(trailer->footer_offset, "the checksum of the snapshot footer is wrong");
  Result<SnapshotFooter> footer = DecodeSnapshotFooter(footer_bytes, header_.version);
  if (!footer.ok()) return Corruption(trailer->footer_offset, footer.status().text());
  footer_ = *std::move(footer);
  footer_offset_ = trailer->footer_offset;

  if (!TreesFillFile(footer_, header_.version, trailer->footer_offset))
    return Corruption(trailer->footer_offset, "the trees do not follow one another");
  const uint64_t head_bytes = SnapshotHeadBytes(footer_, header_.version, trailer->footer_offset);
  if (head_bytes == 0) return Status::Ok();
  ASSIGN_OR_RETURN(const std::string_view head, Read(kSnapshotHeaderBytes, head_bytes));
  if (const Status agrees = CheckSnapshotHead(head, footer_); !agrees.ok())
    return Corruption(kSnapshotHeaderBytes, agrees.text());
  return Status::Ok();
}

Status SnapshotReader::CheckAgainst(const SnapshotEntry& entry) const {
  if (header_.lsn != entry.lsn || file_bytes_ != entry.bytes || trailer_hash_ != entry.hash)
    return Corruption(0, "this is not the snapshot that the manifest names");
  return Status::Ok();
}

Status SnapshotReader::ReadBlock(const SnapshotTree& tree, uint64_t offset, Block* block) {
  CELLAR_ASSERT(offset < tree.end_offset);
  const uint64_t left = tree.end_offset - offset;
  if (left < kBlockHeaderBytes) return Corruption(offset, "no room for a block");
  ASSIGN_OR_RETURN(const std::string_view head, Read(offset, kBlockHeaderBytes));
  const BlockHeader header = DecodeBlockHeader(head);
  if (header.images_bytes > left - kBlockHeaderBytes)
    return Corruption(offset, "a block reaches beyond its tree");
  const size_t bytes = kBlockHeaderBytes + header.images_bytes;
  ASSIGN_OR_RETURN(const std::string_view all, Read(offset, bytes));
  if (const Status split = SplitBlock(all, offset, tree.tree_id, &block->images); !split.ok())
    return Corruption(offset, split.text());
  block->offset = offset;
  block->end_offset = offset + bytes;
  return Status::Ok();
}

Status SnapshotReader::VerifyBlocks() {
  Block block;
  for (const SnapshotTree& tree : footer_.trees) {
    for (uint64_t offset = tree.begin_offset; offset < tree.end_offset; offset = block.end_offset)
      RETURN_IF_ERROR(ReadBlock(tree, offset, &block));
  }
  return Status::Ok();
}

namespace {

Status LoadTree(SnapshotReader* reader, const SnapshotTree& entry, BTree* tree,
                const std::function<Status(uint64_t)>& progress) {
  BTreeBulkLoader loader(tree);
  SnapshotReader::Block block;
  uint64_t blocks = 0;
  for (uint64_t offset = entry.begin_offset; offset < entry.end_offset;) {
    RETURN_IF_ERROR(reader->ReadBlock(entry, offset, &block));
    for (const std::string_view image : block.images) RETURN_IF_ERROR(loader.AddImage(image));
    offset = block.end_offset;
    ++blocks;
    RETURN_IF_ERROR(progress(offset));
  }
  RETURN_IF_ERROR(loader.Finish());
  if (blocks != entry.blocks || tree->entries() != entry.entries)
    return Status::Error(
        ErrorCode::kCorruption,
        fmt::format("tree {} holds {} entries in {} blocks instead of {} in {}", entry.tree_id,
                    tree->entries(), blocks, entry.entries, entry.blocks));
  return Status::Ok();
}

}  // namespace

Status LoadSnapshot(SnapshotReader* reader, StateMachine& state,
                    const std::function<Status(uint64_t offset)>& progress) {
  RETURN_IF_ERROR(state.BeginLoad(reader->footer().catalog));
  for (const SnapshotTree& entry : reader->footer().trees) {
    BTree* tree = state.TreeForLoad(entry.tree_id);
    if (tree == nullptr)
      return Status::Error(ErrorCode::kCorruption,
                           fmt::format("the catalog knows no tree {}", entry.tree_id));
    RETURN_IF_ERROR(LoadTree(reader, entry, tree, progress));
  }
  return state.FinishLoad();
}

}  // namespace cellar
