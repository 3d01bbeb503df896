// What the entries of an index look like: keys that sort as their ON values do, and values with the
// spans of time in which they are true and the included cells.
//
//   key     | value or qualifier, encoded, for each ON column | row key |
//   value   | flags u8: 1 cells, 2 spans | v count { span }, if spans | { cell }, if cells |
//   span    | v from | v due, 0 for never |
//   cell    | v family id | b qualifier | v timestamp | type u8, 80 if span | span | b value |
//
// An empty value is one without flags: true at every moment, and without cells.
//
// Before all of them, under the empty key, may stand the number of rows that the index leaves out,
// if there are any: flags 2, no spans, v rows. It is an entry that is never there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/cell.h"
#include "engine/keys/order.h"
#include "engine/schema/index_schema.h"
#include "engine/schema/retention.h"

namespace cellar {

// SPEC.md section 10: the ON values of one entry and its row key, texts as long as they are and
// numbers as wide as their type. Even if escapes double all of it, it fits a tree's key.
inline constexpr size_t kIndexEntryBytesMax{64 * 1024};

// Included cells of one entry; more are left to the table.
inline constexpr size_t kIndexIncludedBytesMax{64 * 1024};

// A span of time, [from, due).
struct TimeSpan {
  int64_t from_micros{0};
  int64_t due_micros{kNeverMicros};

  bool always() const { return from_micros == 0 && due_micros == kNeverMicros; }
  bool contains(int64_t now_micros) const {
    return from_micros <= now_micros && now_micros < due_micros;
  }
};

// One cell that an entry holds.
struct IncludedCell {
  uint32_t family_id{0};
  std::string_view qualifier;  // encoded
  int64_t timestamp_micros{0};
  ValueType type{ValueType::kBytes};
  std::string_view stored;
};

// What an entry's value says at one moment.
class EntryReader {
 public:
  // False if the entry is not there at that moment.
  [[nodiscard]] bool Open(std::string_view value, int64_t now_micros);
  // False if it has none of its cells with it: the table has to be read.
  bool holds_cells() const { return holds_cells_; }
  // The next cell of that moment, families by name, qualifiers in order; its views point into the
  // value. False at the end.
  [[nodiscard]] bool Next(IncludedCell* cell);

 private:
  std::string_view rest_;
  int64_t now_micros_{0};
  bool holds_cells_{false};
};

// Appends the front of a value. REQUIRES: spans is not empty.
void PutEntryHead(std::span<const TimeSpan> spans, bool holds_cells, std::string* to);
// Is the entry not there at every moment?
bool HasSpans(std::string_view value);
// What stands under the empty key.
std::string LeftOutMark(uint64_t rows);
uint64_t RowsOfMark(std::string_view mark);
void PutIncludedCell(const IncludedCell& cell, const TimeSpan& span, std::string* to);

// The columns that an entry holds, in the same order; empty if entries hold none.
std::vector<IndexColumn> IncludedColumns(const TableSchema& table, const IndexSchema& index);

// How the values of an index's ON columns are encoded, read and shown. Copied into scans.
class IndexOrder {
 public:
  IndexOrder() = default;
  IndexOrder(const TableSchema& table, const IndexSchema& index);

  size_t columns() const { return columns_.size(); }
  // Appends the encoding of a value as a client names it. BADVALUE if it does not fit.
  Status EncodeValue(size_t column, std::string_view text, std::string* out) const;
  // The bounds `[v (v - +` of a column's values, min <= v <= max, as a range of encodings.
  Result<KeyRange> EncodeRange(size_t column, std::string_view min, std::string_view max) const;
  // Size of all values at the front of an entry's key, or of the first `count` of them; 0 if it is
  // malformed. REQUIRES: count <= columns().
  size_t ValuesSize(std::string_view entry_key) const { return ValuesSize(entry_key, columns()); }
  size_t ValuesSize(std::string_view entry_key, size_t count) const;
  struct Value {
    ValueType type{ValueType::kBytes};
    std::string stored;
  };
  // The values at the front of the beginning of a key, as many as are whole; their size.
  std::vector<Value> DecodeFirst(std::string_view key, size_t* bytes) const;
  // The values at the front of an entry's key; of a qualifier its text.
  std::vector<Value> DecodeValues(std::string_view entry_key) const;

 private:
  struct Column {
    OrderComponent component;  // unless of_qualifiers
    ValueType type{ValueType::kBytes};
  };
  Result<KeyBound> EncodeBound(size_t column, std::string_view text, BoundSide side) const;

  bool of_qualifiers_{false};
  Order qualifiers_;  // with every component turned round if the column is descending
  bool descending_{false};
  std::vector<Column> columns_;
};

}  // namespace cellar
