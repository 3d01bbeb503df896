// Cells as replies: a value by its type, a column's entry in a row's map
// (cellar-query(7), "TYPES IN REPLIES" and "CELL OPTIONS").
//
//   type                RESP2                              RESP3
//   bytes string uuid   bulk string                        bulk string
//   bool                integer                            boolean
//   integers            integer; u64 above 2^63-1 bulk     integer; above 2^63-1 big number
//   f32 f64             bulk string, shortest text         double
//
// RowReply writes one row as a map from column to entry, cell by cell as a scan gives them. An
// entry is the value of the first cell of its column or, when the format asks for more, an array of
// versions, each `[timestamp, value, type, expiry, [label ...]]` with what was asked for.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/copy_bytes.h"
#include "base/inline.h"
#include "commands/arguments/read_arguments.h"
#include "commands/replies/reply_pieces.h"
#include "engine/keys/value.h"
#include "engine/rows/scan.h"
#include "resp/decimal.h"
#include "resp/reply_writer.h"

namespace cellar {

// `stored` is the value's stored form (engine/keys/value.h).
void ReplyTypedValue(ReplyWriter& reply, ValueType type, std::string_view stored);
CELLAR_INLINE void ReplyValue(ReplyWriter& reply, ValueType type, std::string_view stored) {
  if (IsTextType(type)) [[likely]]
    return reply.Bulk(stored);
  if (IsSignedType(type)) return reply.Integer(LoadShortSigned(stored));
  ReplyTypedValue(reply, type, stored);
}

// A value under STATE: an hll as what it is made of, for PFMERGE, MERGE or a put elsewhere.
inline void ReplyState(ReplyWriter& reply, ValueType type, std::string_view stored) {
  if (type == ValueType::kHll) return reply.Bulk(stored);
  ReplyValue(reply, type, stored);
}

// "family:qualifier" as a bulk string, into room that the caller has reserved; returns its end.
inline char* EncodeColumn(char* to, std::string_view family, std::string_view qualifier) {
  to = ReplyWriter::EncodeBulkHeader(to, family.size() + 1 + qualifier.size());
  to = ReplyWriter::EncodeBulkPart(to, family);
  *to++ = ':';
  return ReplyWriter::EncodeBulkEnd(ReplyWriter::EncodeBulkPart(to, qualifier));
}
inline size_t ColumnBytesMax(std::string_view family, std::string_view qualifier) {
  return ReplyWriter::BulkBytesMax(family.size() + 1 + qualifier.size());
}
inline void ReplyColumn(ReplyWriter& reply, std::string_view family, std::string_view qualifier) {
  OutputBuffer& buffer = reply.buffer();
  char* const to = buffer.Reserve(ColumnBytesMax(family, qualifier));
  buffer.CommitTo(EncodeColumn(to, family, qualifier));
}
// A column and its value behind it.
CELLAR_INLINE void ReplyCell(ReplyWriter& reply, std::string_view family,
                             std::string_view qualifier, ValueType type, std::string_view stored) {
  if (IsTextType(type)) [[likely]] {  // both at once
    OutputBuffer& buffer = reply.buffer();
    char* to = buffer.Reserve(ColumnBytesMax(family, qualifier) +
                              ReplyWriter::BulkBytesMax(stored.size()));
    to = EncodeColumn(to, family, qualifier);
    return buffer.CommitTo(ReplyWriter::EncodeBulk(to, stored));
  }
  if (IsSignedType(type)) [[likely]] {
    OutputBuffer& buffer = reply.buffer();
    char* const to =
        buffer.Reserve(ColumnBytesMax(family, qualifier) + ReplyWriter::kIntegerBytesMax);
    return buffer.CommitTo(
        ReplyWriter::EncodeInteger(EncodeColumn(to, family, qualifier), LoadShortSigned(stored)));
  }
  ReplyColumn(reply, family, qualifier);
  ReplyTypedValue(reply, type, stored);
}
inline void ReplyCell(ReplyWriter& reply, const ScanCell& cell) {
  ReplyCell(reply, cell.family, cell.qualifier_text, cell.type, cell.stored);
}

class RowReply {
 public:
  explicit RowReply(CellFormat format) : format_(format), arrays_(format.arrays()) {}

  // Opens the map. REQUIRES: no row is open.
  void Begin(ReplyPieces& reply);
  // Goes on with a map that was opened elsewhere and has so many columns. REQUIRES: the format has
  // no arrays.
  void GoOn(const ReplyPieces::Mark& map, uint64_t columns);
  bool open() const { return open_; }
  // Would Add write this cell? Without arrays only the first cell of a column is shown.
  bool Shows(const ScanCell& cell) const { return cell.column_begins || arrays_; }
  // The scan's cell. REQUIRES: Begin was called, Shows(cell), and the first cell of a row begins a
  // column.
  void Add(ReplyPieces& reply, const Scan& scan) {
    if (arrays_) [[unlikely]]
      return AddToArrays(reply, scan);
    reply.NextPiece();
    ++columns_;
    if (format_.states && scan.cell().type == ValueType::kHll) [[unlikely]] {
      ReplyColumn(reply.writer(), scan.cell().family, scan.cell().qualifier_text);
      return reply.writer().Bulk(scan.cell().stored);
    }
    ReplyCell(reply.writer(), scan.cell());
  }
  // Closes the map. REQUIRES: open().
  void End(ReplyPieces& reply);
  // The row has been taken back from the reply.
  void Abandon() {
    open_ = false;
    versions_ = 0;
  }

 private:
  void AddToArrays(ReplyPieces& reply, const Scan& scan);
  void EndColumn(ReplyPieces& reply);
  void AddVersion(ReplyWriter& reply, const Scan& scan);

  CellFormat format_;
  bool arrays_;  // a column's entry is an array of versions
  bool open_{false};
  ReplyPieces::Mark map_{};
  ReplyPieces::Mark versions_mark_{};
  uint64_t columns_{0};
  uint64_t versions_{0};       // of the open column
  uint64_t columns_guess_{4};  // rows of one table are mostly alike: as many as the last one had
  uint64_t versions_guess_{1};
};

}  // namespace cellar
