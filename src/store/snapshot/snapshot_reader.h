// Reads a snapshot file (store/format/snapshot_format.h), verifying every byte of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "engine/state/state_machine.h"
#include "store/format/manifest.h"
#include "store/format/snapshot_format.h"

namespace cellar {

class SnapshotReader {
 public:
  // Opens the file and verifies all but the blocks. kCorruption names file and offset.
  static Result<std::unique_ptr<SnapshotReader>> Open(FileSystem& files, const std::string& path);

  const SnapshotHeader& header() const { return header_; }
  const SnapshotFooter& footer() const { return footer_; }
  uint64_t file_bytes() const { return file_bytes_; }
  uint64_t footer_offset() const { return footer_offset_; }
  // As the manifest names this file.
  SnapshotEntry EntryFor(uint64_t number) const {
    return {.number = number, .lsn = header_.lsn, .bytes = file_bytes_, .hash = trailer_hash_};
  }
  // kCorruption if the manifest means another file than this.
  Status CheckAgainst(const SnapshotEntry& entry) const;

  struct Block {
    uint64_t offset{0};
    uint64_t end_offset{0};
    std::vector<std::string_view> images;  // valid until the next ReadBlock
  };
  // Reads and verifies the block of `tree` that begins at `offset`; its first is at
  // tree.begin_offset. REQUIRES: offset < tree.end_offset.
  Status ReadBlock(const SnapshotTree& tree, uint64_t offset, Block* block);
  // Reads and verifies all blocks.
  Status VerifyBlocks();

 private:
  SnapshotReader(std::string path, std::unique_ptr<ReadableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status ReadFrame();
  // `size` bytes at `offset`, from a buffer that reads ahead.
  Result<std::string_view> Read(uint64_t offset, size_t size);
  Status Corruption(uint64_t offset, std::string_view what) const;

  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  SnapshotHeader header_;
  SnapshotFooter footer_;
  uint64_t file_bytes_{0};
  uint64_t footer_offset_{0};
  uint64_t trailer_hash_{0};
  std::string buffer_;
  uint64_t buffer_offset_{0};
};

// Fills the empty `state` from the snapshot. `progress` is called with the offset reached;
// its error ends the load.
Status LoadSnapshot(SnapshotReader* reader, StateMachine& state,
                    const std::function<Status(uint64_t offset)>& progress);

}  // namespace cellar
