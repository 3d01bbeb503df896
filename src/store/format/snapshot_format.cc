// Encoding of the parts of a snapshot file: see snapshot_format.h.
#include "store/format/snapshot_format.h"

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"

namespace cellar {
namespace {

constexpr std::string_view kHeaderMagic = "CELLRSNP";
constexpr std::string_view kTrailerMagic = "CELLREND";
constexpr size_t kHeaderHashOffset = kSnapshotHeaderBytes - 8;
constexpr size_t kTrailerHashOffset = kSnapshotTrailerBytes - 8;

Status Bad(const char* what) { return Status::Error(ErrorCode::kCorruption, what); }

}  // namespace

SnapshotPart SnapshotPartAt(uint64_t place, uint64_t file_bytes, uint64_t end_bytes) {
  CELLAR_ASSERT(place < file_bytes);
  if (place < kSnapshotHeaderBytes) return {place, kSnapshotHeaderBytes - place};
  const uint64_t behind_end = kSnapshotHeaderBytes + end_bytes;
  if (place < behind_end) return {file_bytes - (behind_end - place), behind_end - place};
  return {place - end_bytes, file_bytes - place};
}

std::string EncodeSnapshotHeader(const SnapshotHeader& header) {
  std::string bytes(kHeaderMagic);
  PutFixed32(&bytes, kSnapshotVersion);
  PutFixed32(&bytes, header.lsn.epoch);
  PutFixed64(&bytes, header.lsn.seq);
  PutFixed64(&bytes, header.created_micros);
  PutFixed64(&bytes, static_cast<uint64_t>(header.commit_micros));
  PutFixed64(&bytes, header.salvaged_from);
  bytes.resize(kHeaderHashOffset, '\0');
  PutFixed64(&bytes, Hash64(bytes));
  CELLAR_ASSERT(bytes.size() == kSnapshotHeaderBytes);
  return bytes;
}

Result<SnapshotHeader> DecodeSnapshotHeader(std::string_view bytes) {
  if (bytes.size() < kSnapshotHeaderBytes) return Bad("shorter than a snapshot header");
  if (bytes.substr(0, kHeaderMagic.size()) != kHeaderMagic) return Bad("not a snapshot");
  if (DecodeFixed64(&bytes[kHeaderHashOffset]) != Hash64(bytes.substr(0, kHeaderHashOffset)))
    return Bad("the checksum of the snapshot header is wrong");
  const uint32_t version = DecodeFixed32(&bytes[8]);
  if (version < kSnapshotVersionMin || version > kSnapshotVersion)
    return Status::Error(ErrorCode::kCorruption,
                         "version " + std::to_string(version) +
                             " of the snapshot format is unknown; this server reads " +
                             std::to_string(kSnapshotVersionMin) + " to " +
                             std::to_string(kSnapshotVersion));
  return SnapshotHeader{.lsn = {DecodeFixed32(&bytes[12]), DecodeFixed64(&bytes[16])},
                        .created_micros = DecodeFixed64(&bytes[24]),
                        .commit_micros = static_cast<int64_t>(DecodeFixed64(&bytes[32])),
                        .salvaged_from = DecodeFixed64(&bytes[40]),
                        .version = version};
}

std::string EncodeSnapshotFooter(const SnapshotFooter& footer) {
  std::string bytes;
  PutLengthPrefixed(&bytes, footer.catalog);
  PutVarint64(&bytes, footer.trees.size());
  for (const SnapshotTree& tree : footer.trees) {
    for (const uint64_t value : {tree.tree_id, tree.entries, tree.payload_bytes, tree.begin_offset,
                                 tree.end_offset, tree.blocks})
      PutVarint64(&bytes, value);
  }
  PutLengthPrefixed(&bytes, footer.members);
  return bytes;
}

Result<SnapshotFooter> DecodeSnapshotFooter(std::string_view bytes, uint32_t version) {
  SnapshotFooter footer;
  std::string_view catalog;
  uint64_t trees = 0;
  if (!GetLengthPrefixed(&bytes, &catalog) || !GetVarint64(&bytes, &trees))
    return Bad("the snapshot footer cannot be read");
  footer.catalog = catalog;
  for (uint64_t i = 0; i < trees; ++i) {
    SnapshotTree tree;
    for (uint64_t* value : {&tree.tree_id, &tree.entries, &tree.payload_bytes, &tree.begin_offset,
                            &tree.end_offset, &tree.blocks})
      if (!GetVarint64(&bytes, value)) return Bad("the snapshot footer cannot be read");
    footer.trees.push_back(tree);
  }
  if (version >= 3) {
    std::string_view members;
    if (!GetLengthPrefixed(&bytes, &members)) return Bad("the snapshot footer cannot be read");
    footer.members = members;
  }
  if (!bytes.empty()) return Bad("the snapshot footer is too long");
  return footer;
}

std::string EncodeSnapshotHead(std::string_view catalog, std::string_view members) {
  std::string image;
  PutLengthPrefixed(&image, catalog);
  PutLengthPrefixed(&image, members);
  std::string block(kBlockHeaderBytes, '\0');
  PutFixed32(&block, static_cast<uint32_t>(image.size()));
  block += image;
  SealBlock(&block, 1, kSnapshotHeadId, kSnapshotHeaderBytes);
  return block;
}

Result<SnapshotHead> DecodeSnapshotHead(std::string_view bytes) {
  if (bytes.size() < kBlockHeaderBytes + 4) return Bad("no snapshot head");
  const BlockHeader header = DecodeBlockHeader(bytes);
  if (header.tree_id != kSnapshotHeadId || header.images != 1 || header.images_bytes < 4 ||
      header.images_bytes > bytes.size() - kBlockHeaderBytes)
    return Bad("no snapshot head");
  const std::string_view block = bytes.substr(0, kBlockHeaderBytes + header.images_bytes);
  if (!VerifyBlock(block, kSnapshotHeaderBytes))
    return Bad("the checksum of the snapshot head is wrong");
  std::string_view image = block.substr(kBlockHeaderBytes + 4);
  std::string_view catalog;
  std::string_view members;
  if (DecodeFixed32(&block[kBlockHeaderBytes]) != image.size() ||
      !GetLengthPrefixed(&image, &catalog) || !GetLengthPrefixed(&image, &members) ||
      !image.empty())
    return Bad("the snapshot head cannot be read");
  return SnapshotHead{std::string(catalog), std::string(members), block.size()};
}

std::string EncodeSnapshotTrailer(SnapshotTrailer* trailer) {
  std::string bytes;
  PutFixed64(&bytes, trailer->footer_offset);
  PutFixed64(&bytes, trailer->footer_bytes);
  PutFixed64(&bytes, trailer->footer_hash);
  bytes += kTrailerMagic;
  trailer->hash = Hash64(bytes);
  PutFixed64(&bytes, trailer->hash);
  CELLAR_ASSERT(bytes.size() == kSnapshotTrailerBytes);
  return bytes;
}

Result<SnapshotTrailer> DecodeSnapshotTrailer(std::string_view bytes) {
  if (bytes.size() != kSnapshotTrailerBytes) return Bad("no snapshot trailer");
  if (bytes.substr(24, kTrailerMagic.size()) != kTrailerMagic) return Bad("no snapshot trailer");
  const uint64_t hash = DecodeFixed64(&bytes[kTrailerHashOffset]);
  if (hash != Hash64(bytes.substr(0, kTrailerHashOffset)))
    return Bad("the checksum of the snapshot trailer is wrong");
  return SnapshotTrailer{.footer_offset = DecodeFixed64(&bytes[0]),
                         .footer_bytes = DecodeFixed64(&bytes[8]),
                         .footer_hash = DecodeFixed64(&bytes[16]),
                         .hash = hash};
}

void SealBlock(std::string* block, uint32_t images, uint64_t tree_id, uint64_t offset) {
  CELLAR_ASSERT(block->size() > kBlockHeaderBytes);
  CELLAR_ASSERT(block->size() - kBlockHeaderBytes <= UINT32_MAX);
  char* at = block->data();
  EncodeFixed32(at + 8, static_cast<uint32_t>(block->size() - kBlockHeaderBytes));
  EncodeFixed32(at + 12, images);
  EncodeFixed64(at + 16, tree_id);
  // The offset is part of the hash: a sound block in a wrong place is damage too.
  EncodeFixed64(at, Hash64(std::string_view(*block).substr(8), offset));
}

BlockHeader DecodeBlockHeader(std::string_view block) {
  CELLAR_ASSERT(block.size() >= kBlockHeaderBytes);
  return {.hash = DecodeFixed64(&block[0]),
          .images_bytes = DecodeFixed32(&block[8]),
          .images = DecodeFixed32(&block[12]),
          .tree_id = DecodeFixed64(&block[16])};
}

bool VerifyBlock(std::string_view block, uint64_t offset) {
  CELLAR_ASSERT(block.size() >= kBlockHeaderBytes);
  return DecodeFixed64(&block[0]) == Hash64(block.substr(8), offset);
}

Status SplitBlock(std::string_view block, uint64_t offset, uint64_t tree_id,
                  std::vector<std::string_view>* images) {
  const auto damaged = [](const char* what) { return Status::Error(ErrorCode::kCorruption, what); };
  if (!VerifyBlock(block, offset)) return damaged("the checksum of a block is wrong");
  const BlockHeader header = DecodeBlockHeader(block);
  if (header.tree_id != tree_id) return damaged("a block of another tree");
  images->clear();
  std::string_view rest = block.substr(kBlockHeaderBytes);
  while (!rest.empty()) {
    uint32_t size = 0;
    if (!GetFixed32(&rest, &size) || size > rest.size())
      return damaged("an image reaches beyond its block");
    images->push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  if (images->size() != header.images) return damaged("a block with a wrong number of images");
  return Status::Ok();
}

uint64_t SnapshotHeadBytes(const SnapshotFooter& footer, uint32_t version, uint64_t footer_offset) {
  if (version < kSnapshotVersionWithHead) return 0;
  const uint64_t end = footer.trees.empty() ? footer_offset : footer.trees[0].begin_offset;
  return end < kSnapshotHeaderBytes ? 0 : end - kSnapshotHeaderBytes;
}

bool TreesFillFile(const SnapshotFooter& footer, uint32_t version, uint64_t footer_offset) {
  const uint64_t head_bytes = SnapshotHeadBytes(footer, version, footer_offset);
  if (version >= kSnapshotVersionWithHead && head_bytes < kBlockHeaderBytes) return false;
  uint64_t offset = kSnapshotHeaderBytes + head_bytes;
  for (const SnapshotTree& tree : footer.trees) {
    if (tree.begin_offset != offset || tree.end_offset < offset) return false;
    offset = tree.end_offset;
  }
  return offset == footer_offset;
}

Status CheckSnapshotHead(std::string_view block, const SnapshotFooter& footer) {
  ASSIGN_OR_RETURN(const SnapshotHead head, DecodeSnapshotHead(block));
  if (head.block_bytes != block.size()) return Bad("the snapshot head ends before the trees begin");
  if (head.catalog != footer.catalog || head.members != footer.members)
    return Bad("the snapshot's head and footer differ");
  return Status::Ok();
}

}  // namespace cellar
