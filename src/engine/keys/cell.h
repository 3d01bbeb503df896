// A cell as one entry of a locality group's tree.
//
//   key    | row key (order-encoded) | family id (1 or 5 bytes) | qualifier (order-encoded) | ~ts |
//   value  | type (4 bits) + flags (4 bits) | expiry i64, if flag kCellHasExpiry | stored value |
//
// Every component is prefix-free, so all cells of a row, a family, a column or a super column are
// one range of keys, and the newest version of a column stands first. The encodings of row keys and
// qualifiers are Order's, that of the timestamp is timestamp.h's, stored values are value.h's, or,
// with flag kCellCompressed, packed ones of compression.h.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "base/copy_bytes.h"
#include "base/inline.h"
#include "base/key_buffer.h"
#include "engine/keys/compression.h"
#include "engine/keys/value.h"

namespace cellar {

inline constexpr int64_t kNoExpiry{std::numeric_limits<int64_t>::max()};

// Ids below 0xe0 take one byte, others a marker and four: memcmp order is numeric order.
inline constexpr uint32_t kFamilyIdShortMax{0xe0};

inline void PutFamilyId(std::string* to, uint32_t id) {
  if (id < kFamilyIdShortMax) {
    to->push_back(static_cast<char>(id));
    return;
  }
  char bytes[5] = {static_cast<char>(0xe0)};
  StoreLittleEndian(bytes + 1, __builtin_bswap32(id));
  to->append(bytes, 5);
}
inline constexpr size_t kFamilyIdBytesMax{5};
inline size_t FamilyIdBytes(uint32_t id) { return id < kFamilyIdShortMax ? 1 : kFamilyIdBytesMax; }
// Writes to where kFamilyIdBytesMax bytes are; the end of it.
inline char* EncodeFamilyId(char* to, uint32_t id) {
  if (id < kFamilyIdShortMax) [[likely]] {
    *to = static_cast<char>(id);
    return to + 1;
  }
  *to = static_cast<char>(0xe0);
  StoreLittleEndian(to + 1, __builtin_bswap32(id));
  return to + kFamilyIdBytesMax;
}
CELLAR_INLINE void PutFamilyId(KeyBuffer* to, uint32_t id) {
  to->CommitTo(EncodeFamilyId(to->Reserve(kFamilyIdBytesMax), id));
}

// Size of the family id at the front of `bytes`, 0 if it is cut short. Sets *id.
inline size_t DecodeFamilyId(std::string_view bytes, uint32_t* id) {
  if (bytes.empty()) return 0;
  const auto first = static_cast<uint8_t>(bytes[0]);
  if (first < kFamilyIdShortMax) {
    *id = first;
    return 1;
  }
  if (bytes.size() < 5) return 0;
  *id = __builtin_bswap32(LoadLittleEndian<uint32_t>(bytes.data() + 1));
  return 5;
}

inline constexpr uint8_t kCellTypeMask{0x0f};
inline constexpr uint8_t kCellHasExpiry{0x10};
inline constexpr uint8_t kCellCompressed{0x20};
inline constexpr uint8_t kCellFlags{kCellHasExpiry | kCellCompressed};

// What the value of a tree's entry says. `stored` borrows from the entry, or from who unpacked it.
struct CellValue {
  ValueType type{ValueType::kBytes};
  // For those who write a cell: kCellCompressed if `stored` is packed. Nothing when it is read.
  uint8_t packed{0};
  int64_t expiry_micros{kNoExpiry};  // the cell is dropped when now >= this
  std::string_view stored;
};

inline void PutCellValue(std::string* to, const CellValue& cell) {
  auto head = static_cast<uint8_t>(static_cast<uint8_t>(cell.type) | cell.packed);
  if (cell.expiry_micros != kNoExpiry) head |= kCellHasExpiry;
  to->push_back(static_cast<char>(head));
  if (cell.expiry_micros != kNoExpiry) {
    PutFixed64(to, static_cast<uint64_t>(cell.expiry_micros));
  }
  to->append(cell.stored);
}

inline size_t CellValueBytes(const CellValue& cell) {
  return 1 + (cell.expiry_micros == kNoExpiry ? 0 : sizeof(uint64_t)) + cell.stored.size();
}
// Writes CellValueBytes(cell) bytes: what PutCellValue appends.
CELLAR_INLINE void EncodeCellValue(char* to, const CellValue& cell) {
  auto head = static_cast<uint8_t>(static_cast<uint8_t>(cell.type) | cell.packed);
  if (cell.expiry_micros != kNoExpiry) {
    head |= kCellHasExpiry;
    EncodeFixed64(to + 1, static_cast<uint64_t>(cell.expiry_micros));
    *to = static_cast<char>(head);
    to += sizeof(uint64_t);
  } else {
    *to = static_cast<char>(head);
  }
  CopyBytes(to + 1, cell.stored.data(), cell.stored.size());
}

// A value that was packed is in *plain afterwards. False if `bytes` is not a cell's value (only a
// damaged file can say so).
[[nodiscard]] CELLAR_INLINE bool DecodeCellValue(std::string_view bytes, PlainValue* plain,
                                                 CellValue* cell) {
  if (bytes.empty()) return false;
  const auto head = static_cast<uint8_t>(bytes[0]);
  cell->type = static_cast<ValueType>(head & kCellTypeMask);
  bytes.remove_prefix(1);
  cell->expiry_micros = kNoExpiry;
  if ((head & kCellFlags) != 0) {
    if ((head & kCellHasExpiry) != 0) {
      uint64_t expiry = 0;
      if (!GetFixed64(&bytes, &expiry)) return false;
      cell->expiry_micros = static_cast<int64_t>(expiry);
    }
    if ((head & kCellCompressed) != 0) return plain->Unpack(bytes, &cell->stored);
  }
  cell->stored = bytes;
  return true;
}

// DecodeCellValue for those who ask for type and expiry alone: nothing is unpacked, and `stored` is
// what stands there.
[[nodiscard]] inline bool DecodeCellHead(std::string_view bytes, CellValue* cell) {
  if (bytes.empty()) return false;
  const auto head = static_cast<uint8_t>(bytes[0]);
  cell->type = static_cast<ValueType>(head & kCellTypeMask);
  bytes.remove_prefix(1);
  cell->expiry_micros = kNoExpiry;
  if ((head & kCellHasExpiry) != 0) {
    uint64_t expiry = 0;
    if (!GetFixed64(&bytes, &expiry)) return false;
    cell->expiry_micros = static_cast<int64_t>(expiry);
  }
  cell->stored = bytes;
  return true;
}

inline bool CellHasFlags(std::string_view bytes, uint8_t flags) {
  return !bytes.empty() && (static_cast<uint8_t>(bytes[0]) & flags) != 0;
}

}  // namespace cellar
