// Compression of cells' values: COMPRESS lz4|zstd of a family.
//
//   cell    | type + flags (cell.h), kCellCompressed set | expiry, if any | packed value |
//   packed  | varint: bytes of the plain value * 2 + codec (0 lz4, 1 zstd) | what the codec made |
//
// A value of type bytes or string is packed where a client's word becomes a mutation (RowResolver),
// once, if it has kPackedBytesMin bytes and packing saves an eighth. The packed bytes are the
// cell's from then on: in the tree, in the log, on their way to followers, in snapshot files,
// copies and named snapshots, so none of these packs anything, and replay gives the same bytes
// whatever the library's version is. Numbers, UUIDs and states of HyperLogLogs stay as they are,
// and so do the cells that an index holds (INCLUDE).
//
// A packed cell is read at one place, DecodeCellValue, which unpacks it into the reader's
// PlainValue and gives a view of that. Whoever reads cells has one; the view dies with its next
// cell, as one of a tree's leaf does with the next step of the cursor. Who asks for no values says
// so (SetWanted), who needs no more than type and expiry calls DecodeCellHead. A plain cell costs
// what it did: the bit is tested together with that of the expiry.
//
// ALTER changes what new writes do. A family that was ever to be compressed may hold packed cells,
// so its schema says so for good (kNone after kLz4). Such a schema has a bit that servers before
// this do not know: they refuse the catalog, or the record of the log, instead of showing packed
// bytes. A replica set takes COMPRESS at feature level 4 only; a follower of an older version stops
// at the record that brings the schema, with its complaint in the log.
//
// What comes from a disk or a peer is unpacked once when it comes (IsCellValue), behind the
// checksums. The length that it claims is believed only as far as its codec could reach it, and up
// to the largest value there can be.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

// The numbers are part of the formats on disk: never change one.
enum class Compression : uint8_t {
  kNever = 0,  // no cell of the family is packed
  kNone = 1,   // nothing is packed any more; older cells may be
  kLz4 = 2,
  kZstd = 3,
};
inline constexpr uint8_t kCompressionCount{4};

inline constexpr size_t kPackedBytesMin{128};          // of a plain value: smaller ones stay
inline constexpr size_t kPlainBytesMax{512ULL << 20};  // the largest max-value-bytes

constexpr bool Packs(Compression compression) { return compression >= Compression::kLz4; }

// "none", "lz4", "zstd".
std::string_view CompressionName(Compression compression);
// COMPRESS's word, in any case; an error that names all if there is no such one. `none` is kNever.
Result<Compression> ParseCompression(std::string_view word);
// What a family's is when it is to be `wanted` from now on.
constexpr Compression AlterCompression(Compression before, Compression wanted) {
  if (Packs(wanted) || before == Compression::kNever) return wanted;
  return Compression::kNone;
}

// Bytes that a large value leaves with those who have packed or unpacked it.
inline constexpr size_t kPackBufferKeptBytes{1 << 20};

// Room that is made anew when it is too small, and not kept when it was large. Its content is lost
// whenever some is asked for.
class PackBuffer {
 public:
  PackBuffer() = default;
  ~PackBuffer() { Free(); }
  PackBuffer(const PackBuffer&) = delete;
  PackBuffer& operator=(const PackBuffer&) = delete;

  char* Room(size_t bytes);
  // Nobody needs the content: a large one goes.
  void Trim() {
    if (capacity_ > kPackBufferKeptBytes) [[unlikely]]
      Free();
  }
  // Of all that there are in the process.
  static size_t held_bytes() { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  void Free();

  static inline std::atomic<size_t> held_bytes_{0};
  std::unique_ptr<char[]> bytes_;
  size_t capacity_{0};
};

// The value of the cell that was read last, if it was packed.
class PlainValue {
 public:
  // *plain is a view of this, which dies with the next one. False, and then nothing is said of
  // *plain, if `packed` is not what Pack gives. O(plain bytes).
  [[nodiscard]] bool Unpack(std::string_view packed, std::string_view* plain);
  // Nobody looks at values: what is unpacked is empty, and costs nothing.
  void SetWanted(bool wanted) { wanted_ = wanted; }
  // Nobody looks at the last one any more.
  void Trim() { buffer_.Trim(); }

 private:
  PackBuffer buffer_;
  bool wanted_{true};
};

// Packs values, one at a time.
class ValuePacker {
 public:
  // A view of this, which dies with the next one; nullopt if the value stays plain.
  // REQUIRES: Packs(compression), plain.size() <= kPlainBytesMax.
  std::optional<std::string_view> Pack(Compression compression, std::string_view plain);

 private:
  PackBuffer buffer_;
};

// Bytes of the plain value behind a packed one; 0 if it says nothing that can be true.
size_t PlainBytesOf(std::string_view packed);

}  // namespace cellar
