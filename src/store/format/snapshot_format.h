// The bytes of a snapshot file, `cellar-<number>.snapshot`. Written in format version 4; 1 to 3 are
// read.
//
// All fixed integers are little-endian; "varint" as in base/coding.h.
//
//   +--------+------+-------+-------+-----+-------+--------+---------+
//   | header | head | block | block | ... | block | footer | trailer |
//   +--------+------+-------+-------+-----+-------+--------+---------+
//
//   offset size  header, 64 bytes
//        0    8  magic "CELLRSNP"
//        8    4  version u32 = 4
//       12    4  epoch u32 of the LSN: the state holds all records up to it and none behind
//       16    8  seq u64 of the LSN
//       24    8  created, microseconds since the Unix epoch
//       32    8  commit time of the LSN, in the same unit; zero in versions 1 and 2
//       40    8  number of the damaged snapshot that this is what is left of; 0: of none
//       48    8  zero
//       56    8  XXH3 of bytes 0..56
//
//   offset size  block, 24 bytes and the images
//        0    8  hash u64: XXH3 of the rest of the block, seed = the block's offset in the file
//        8    4  size u32 of the images in bytes, about 64 KiB; larger if one image is larger
//       12    4  number of images u32
//       16    8  tree id u64
//       24       images, each: size u32, then that many bytes (BTreeImageReader's, see btree/)
//
// The blocks of a tree stand together, its images in key order. The trees stand one behind the
// other.
//
// The head, not there before version 4, is a block too, of tree id 2^64-1 and with one image: the
// catalog and the members as in the footer, each with its length before it. Without a catalog
// nobody can read the rest, and so it is there twice (store/snapshot/snapshot_salvage.h).
//
//                footer
//                catalog: varint length, bytes (the engine's encoding)
//                varint number of trees; of each, all varint:
//                  tree id, entries, payload bytes, offset of its first block, offset behind its
//                  last, number of blocks
//                members of the replica set at the LSN: varint length, bytes; empty without a set.
//                  Not there in versions 1 and 2
//
//   offset size  trailer, 40 bytes, the last of the file
//        0    8  offset u64 of the footer
//        8    8  size u64 of the footer
//       16    8  XXH3 of the footer
//       24    8  magic "CELLREND"
//       32    8  hash u64: XXH3 of bytes 0..32; the manifest repeats it
//
// Version 1 differs from 2 only in that no leaf has a dictionary (btree/nodes/leaf.h).
//
// Every byte of the file is in some hash, and where each part must begin and end is known before it
// is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "cellar/status.h"

namespace cellar {

inline constexpr size_t kSnapshotHeaderBytes{64};
inline constexpr size_t kSnapshotTrailerBytes{40};
inline constexpr size_t kBlockHeaderBytes{24};
inline constexpr size_t kBlockImagesBytes{64 * 1024};  // a block is closed when it holds as much
inline constexpr uint32_t kSnapshotVersion{4};         // written
inline constexpr uint32_t kSnapshotVersionMin{1};      // still read
inline constexpr uint32_t kSnapshotVersionWithHead{4};
inline constexpr uint64_t kSnapshotHeadId{UINT64_MAX};  // where a block has its tree's id

struct SnapshotHeader {
  Lsn lsn;
  uint64_t created_micros{0};
  int64_t commit_micros{0};   // of `lsn`
  uint64_t salvaged_from{0};  // number of a snapshot
  uint32_t version{kSnapshotVersion};
};
struct SnapshotTree {
  uint64_t tree_id{0};
  uint64_t entries{0};
  uint64_t payload_bytes{0};
  uint64_t begin_offset{0};
  uint64_t end_offset{0};
  uint64_t blocks{0};
};
struct SnapshotFooter {
  std::string catalog;
  std::vector<SnapshotTree> trees;
  std::string members;
};
struct SnapshotTrailer {
  uint64_t footer_offset{0};
  uint64_t footer_bytes{0};
  uint64_t footer_hash{0};
  uint64_t hash{0};  // of the trailer itself; filled by both functions below
};
struct BlockHeader {
  uint64_t hash{0};
  uint32_t images_bytes{0};
  uint32_t images{0};
  uint64_t tree_id{0};
};

// A snapshot goes to another machine in this order: header, footer and trailer, blocks. Which part
// of the file stands at `place` in it, and how much of that follows. REQUIRES: place < file_bytes.
struct SnapshotPart {
  uint64_t offset{0};
  uint64_t bytes{0};
};
SnapshotPart SnapshotPartAt(uint64_t place, uint64_t file_bytes, uint64_t end_bytes);

std::string EncodeSnapshotHeader(const SnapshotHeader& header);
Result<SnapshotHeader> DecodeSnapshotHeader(std::string_view bytes);
std::string EncodeSnapshotFooter(const SnapshotFooter& footer);
Result<SnapshotFooter> DecodeSnapshotFooter(std::string_view bytes, uint32_t version);
// The head: the whole block, as it stands behind the header.
std::string EncodeSnapshotHead(std::string_view catalog, std::string_view members);
// Takes it from the front of `bytes`. kCorruption if none is there.
struct SnapshotHead {
  std::string catalog;
  std::string members;
  size_t block_bytes{0};
};
Result<SnapshotHead> DecodeSnapshotHead(std::string_view bytes);
std::string EncodeSnapshotTrailer(SnapshotTrailer* trailer);
Result<SnapshotTrailer> DecodeSnapshotTrailer(std::string_view bytes);

// Completes a block in place: *block is kBlockHeaderBytes of anything, then the images.
void SealBlock(std::string* block, uint32_t images, uint64_t tree_id, uint64_t offset);
BlockHeader DecodeBlockHeader(std::string_view block);
// `block` is the whole block, header included.
bool VerifyBlock(std::string_view block, uint64_t offset);
// The images in a whole block of `tree_id` at `offset`. kCorruption with what is wrong.
Status SplitBlock(std::string_view block, uint64_t offset, uint64_t tree_id,
                  std::vector<std::string_view>* images);
// Whether the trees stand one behind the other from the header, or the head, to the footer.
bool TreesFillFile(const SnapshotFooter& footer, uint32_t version, uint64_t footer_offset);
// The size of the head, by where the trees begin; 0 in versions without one.
uint64_t SnapshotHeadBytes(const SnapshotFooter& footer, uint32_t version, uint64_t footer_offset);
// Whether `block` is the head, and says what the footer says. kCorruption with what is wrong.
Status CheckSnapshotHead(std::string_view block, const SnapshotFooter& footer);

}  // namespace cellar
