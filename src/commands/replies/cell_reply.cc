// See cell_reply.h.
#include "commands/replies/cell_reply.h"

#include <string>

#include "base/assert.h"
#include "base/text/number.h"
#include "engine/keys/cell.h"
#include "engine/keys/hyperloglog.h"

namespace cellar {
void ReplyTypedValue(ReplyWriter& reply, ValueType type, std::string_view stored) {
  // A sketch is shown as the count that it stands for; its bytes are for STATE (ReplyState).
  if (type == ValueType::kHll) return reply.Unsigned(HllEstimate(stored));
  const TypedValue value = DecodeValue(type, stored);
  if (IsSignedType(type)) return reply.Integer(value.signed_integer);
  if (IsUnsignedType(type)) return reply.Unsigned(value.unsigned_integer);
  switch (type) {
    case ValueType::kBool:
      return reply.Boolean(value.boolean);
    case ValueType::kF64:
      return reply.Double(value.floating);
    case ValueType::kF32:
      // The shortest text of the float, not of the double that it is widened to.
      return reply.DoubleText(FormatFloat(static_cast<float>(value.floating)));
    case ValueType::kUuid:
      return reply.Bulk(ValueText(type, stored));
    default:
      CELLAR_ASSERT(IsTextType(type));
      return reply.Bulk(stored);
  }
}

void RowReply::Begin(ReplyPieces& reply) {
  CELLAR_ASSERT(!open_);
  open_ = true;
  columns_ = 0;
  versions_ = 0;
  map_ = reply.BeginMap(columns_guess_);
}

void RowReply::GoOn(const ReplyPieces::Mark& map, uint64_t columns) {
  CELLAR_ASSERT(!open_);
  CELLAR_ASSERT(!arrays_);
  open_ = true;
  map_ = map;
  columns_ = columns;
}

void RowReply::AddToArrays(ReplyPieces& reply, const Scan& scan) {
  CELLAR_ASSERT(open_);
  const ScanCell& cell = scan.cell();
  if (cell.column_begins) {
    // The scan says where a column begins, not where it ends: that is here, or at the end of the
    // row.
    EndColumn(reply);
    reply.NextPiece();
    ++columns_;
    ReplyColumn(reply.writer(), cell.family, cell.qualifier_text);
    versions_mark_ = reply.BeginArray(versions_guess_);
  }
  CELLAR_ASSERT(columns_ > 0);
  reply.NextPiece();
  AddVersion(reply.writer(), scan);
  ++versions_;
}

void RowReply::AddVersion(ReplyWriter& reply, const Scan& scan) {
  const ScanCell& cell = scan.cell();
  reply.Array(2 + (format_.types ? 1 : 0) + (format_.expiries ? 1 : 0) + (format_.labels ? 1 : 0));
  reply.Integer(cell.timestamp_micros);
  if (format_.states)
    ReplyState(reply, cell.type, cell.stored);
  else
    ReplyValue(reply, cell.type, cell.stored);
  if (format_.types) reply.Bulk(ValueTypeName(cell.type));
  if (format_.expiries) {
    if (scan.expiry_micros() == kNoExpiry) {
      reply.Null();
    } else {
      reply.Integer(scan.expiry_micros());
    }
  }
  if (!format_.labels) return;
  if (cell.labels == nullptr) return reply.Array(0);
  reply.Array(cell.labels->size());
  for (const std::string& label : *cell.labels) reply.Bulk(label);
}

void RowReply::EndColumn(ReplyPieces& reply) {
  // No column is open: it is the row's first one, or the format has no arrays.
  if (versions_ == 0) return;
  reply.EndArray(versions_mark_, versions_);
  versions_guess_ = versions_;
  versions_ = 0;
}

void RowReply::End(ReplyPieces& reply) {
  CELLAR_ASSERT(open_);
  EndColumn(reply);
  reply.EndMap(map_, columns_);
  columns_guess_ = columns_;
  open_ = false;
}

}  // namespace cellar
