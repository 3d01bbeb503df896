// TypeWalk: finds, a bounded slice at a time, the live cells of a family, or of one row of it, that
// have another type than FAMILY ALTER wants them to have.
//
// It keeps a key, not a cursor, between slices: the table may change meanwhile. What changes behind
// it is somebody else's to look at (store/type_look.h).
//
// A slice ends between two columns when it has examined its cells; when it has gone over its bytes,
// also between two versions of a column. There it goes on behind the last one. Where ranks tell
// which versions live, those before it are counted again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/keys/cell.h"
#include "engine/schema/type_change.h"
#include "engine/table/table.h"
#include "engine/table/version_walk.h"

namespace cellar {

class TypeWalk {
 public:
  // A live cell of another type, at any of its column's versions. Dies with the call.
  struct Cell {
    std::string_view row_key;
    std::string_view qualifier;  // encoded
    int64_t timestamp{0};
    CellValue value;
    TypeChange::Wanted wanted;
  };
  using Visitor = std::function<void(const Cell&)>;

  // Of a slice: what it shows, with something for each version that it passes. The last cell may go
  // beyond that.
  static constexpr size_t kSliceBytesMax{1 << 20};

  // Over the whole table.
  explicit TypeWalk(uint32_t family_id) : family_id_(family_id) {}
  // Over one row.
  TypeWalk(uint32_t family_id, std::string_view row_key);

  // Examines about `cells_max` cells and kSliceBytesMax, and shows those of another type; the
  // visitor changes nothing. Returns how many it has examined. REQUIRES: the family is there.
  uint64_t Step(const Table& table, const TypeChange& change, int64_t now_micros,
                uint64_t cells_max, const Visitor& visit);
  // Rows from here on are still to come.
  bool HasPassed(std::string_view row_key) const { return at_end_ || row_key < from_; }
  // Has it passed a part of the row?
  bool IsIn(std::string_view row_key) const {
    return !at_end_ && row_key < from_ && from_.starts_with(row_key);
  }
  bool at_end() const { return at_end_; }

 private:
  struct Place;
  struct Slice;

  void Locate(const Table& table, const FamilySchema& family, std::string_view key,
              Place* place) const;
  void CountPassed(BTreeCursor& at, size_t column_bytes, VersionWalk* versions) const;
  void VisitColumn(BTreeCursor& at, const Place& place, const TypeChange::Wanted& wanted,
                   VersionWalk versions, Slice* slice);

  const uint32_t family_id_;
  std::string only_;  // the part of the tree that is walked: all keys that begin so
  std::string from_;
  size_t amid_bytes_{0};  // from_ is behind versions of the column that its first bytes name
  bool at_end_{false};
  std::string key_;  // of the column at hand
  PlainValue plain_;
};

}  // namespace cellar
