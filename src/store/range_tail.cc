// See range_tail.h.
#include "store/range_tail.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"

namespace cellar {

Status RangeTail::Update(Journal& journal, Lsn applied) {
  const Lsn settled = journal.settled_lsn();
  RETURN_IF_ERROR(index_.Update(journal.CopyManifest(),
                                settled.seq <= applied.seq ? settled : applied, journal.healthy()));
  // Before the records of that moment, which may be in the state that was copied.
  const bool there = placed_ ? index_.IsThere(place_) : index_.begin_micros() < through_.micros + 1;
  if (!there) {
    return Status::Error(ErrorCode::kErr, "the log has not all any more behind record " +
                                              FormatUint64(through_.lsn.epoch) + "-" +
                                              FormatUint64(through_.lsn.seq));
  }
  if (!placed_) place_ = index_.Find(through_.micros + 1);
  placed_ = true;
  return Status::Ok();
}

Result<bool> RangeTail::Next(MutationBuilder* to) {
  CELLAR_ASSERT(placed_);
  ASSIGN_OR_RETURN(const bool known, index_.FindSuperseded());
  if (!known) return false;
  // A set that has come back without its last records has others in their places.
  if (!std::exchange(is_checked_, true) && !index_.IsInForce(through_.lsn)) {
    return Status::Error(ErrorCode::kErr, "record " + FormatUint64(through_.lsn.epoch) + "-" +
                                              FormatUint64(through_.lsn.seq) +
                                              " is not of this log any more");
  }
  const auto visit = [&](const LogRecord& record, int64_t) -> Result<bool> {
    if (!record.is_entry() || record.lsn.seq <= through_.lsn.seq) return true;
    if (record.kind == RecordKind::kCommand) AddOps(record, to);
    through_ = {record.lsn, record.commit_micros};
    return true;
  };
  ASSIGN_OR_RETURN(const LogIndex::Ended ended, index_.ReadPiece(&place_, visit));
  return ended == LogIndex::Ended::kShown;
}

// Records are what this store has applied, so that they can be read.
void RangeTail::AddOps(const LogRecord& record, MutationBuilder* to) {
  MutationReader reader(record.payload);
  int64_t stamp = 0;
  bool read = reader.ReadStamp(&stamp);
  CELLAR_ASSERT(read);
  DecodedOp op;
  bool in_table = false;
  bool in_row = false;
  std::string_view row;
  while (reader.Next(&op)) {
    const auto family = static_cast<uint32_t>(op.id);
    const auto number = static_cast<int64_t>(op.number);
    if (op.op == MutationOp::kTable || op.op == MutationOp::kStep) {
      in_table = op.op == MutationOp::kTable && op.id == table_id_;
      in_row = false;
      (void)to->BeginPart();
      continue;
    }
    if (!in_table) continue;
    if (op.op == MutationOp::kRow) {
      row = op.first;
      in_row = Touches(row);
      continue;
    }
    if (op.op == MutationOp::kDeleteRows) {
      in_row = false;
      const std::string_view begin = std::max<std::string_view>(op.first, tablet_.begin);
      std::string_view end = op.second;
      if (end.empty() || (!tablet_.end.empty() && tablet_.end < end)) end = tablet_.end;
      if (end.empty() || begin < end) to->DeleteRows(table_id_, begin, end);
      (void)to->BeginPart();  // no row is open behind it
      continue;
    }
    if (!in_row) continue;
    to->Row(table_id_, row);
    switch (op.op) {
      case MutationOp::kPut:
        to->Put(family, op.first, number, op.second);
        break;
      case MutationOp::kReplace:
        to->Replace(family, op.first, number, static_cast<int64_t>(op.replaced), op.second);
        break;
      case MutationOp::kAddInput:
      case MutationOp::kMergeState:
        to->Fold(op.op, family, op.first, number, op.second);
        break;
      case MutationOp::kDeleteCell:
        to->DeleteCell(family, op.first, number);
        break;
      case MutationOp::kDeleteRange:
        to->DeleteRange(family, op.first, op.second);
        break;
      case MutationOp::kDeleteRow:
        to->DeleteRow();
        break;
      case MutationOp::kReclaimColumn:
        to->ReclaimColumn(family, op.first, number);
        break;
      default:
        break;  // what feeds tell, and record numbers
    }
  }
  CELLAR_ASSERT(reader.status().ok());
}

}  // namespace cellar
