// Folds, the part of RowResolver that sees to aggregate families: ADD and MERGE, INCR in a sum, and
// the buckets of timestamps.
//
//   sum min max   the cell is read, and the mutation puts the result
//   hll           the mutation holds the input or state: it is folded in where it is applied. Where
//                 there is no cell, it puts the state; where nothing changes, it says nothing
//
// Several folds and puts of one command on one cell see each other, although none is applied before
// all are resolved: what they put is kept in pending_.
#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/fold.h"
#include "engine/keys/hyperloglog.h"
#include "engine/rows/row_resolver.h"
#include "engine/table/version_walk.h"

namespace cellar {
namespace {

std::string ColumnText(const CellPut& put) {
  return std::string(put.family) + ":" + std::string(put.qualifier);
}

Status RefusedByColumn(const CellPut& put, const Status& status) {
  return Status::Error(status.code(), "column " + Quote(ColumnText(put)) + ": " + status.text());
}

// What the op is called where it does not fit.
std::string_view OpName(CellOp::Kind kind) {
  switch (kind) {
    case CellOp::Kind::kAdd:
      return "ADD";
    case CellOp::Kind::kMerge:
      return "MERGE";
    case CellOp::Kind::kAppend:
      return "APPEND";
    default:
      return "an increment";
  }
}

Status NotInFamily(const CellOp& op, const FamilySchema& family) {
  std::string text = "family '" + family.name + "' ";
  if (family.fold == FoldKind::kNone) {
    text += "has no AGGREGATE";
  } else {
    text += "is an aggregate (" + std::string(FoldKindName(family.fold));
    if (family.type) text += " of " + std::string(ValueTypeName(*family.type));
    text += ")";
  }
  return Status::Error(ErrorCode::kWrongType,
                       text + " and does not take " + std::string(OpName(op.kind)));
}

Status BadInput(const CellOp& op, std::string_view what) {
  return Status::Error(ErrorCode::kBadValue, "column " + Quote(ColumnText(op)) + ": " +
                                                 Quote(op.text) + " is " + std::string(what));
}

// Can the family take it at all?
bool FamilyTakes(CellOp::Kind kind, const FamilySchema& family) {
  if (family.fold == FoldKind::kNone) return false;
  if (CellOp::IsBlind(kind)) return true;
  if (family.fold != FoldKind::kSum || kind == CellOp::Kind::kAppend) return false;
  if (kind == CellOp::Kind::kIncrementAny) return true;
  return IsFloatType(*family.type) == (kind == CellOp::Kind::kIncrementFloat);
}

}  // namespace

// What can be refused without a look at the cell. *checked borrows the op's text.
Status RowResolver::CheckFold(const CellOp& op, const WriteContext& context, CheckedOp* checked) {
  const FamilySchema& family = *checked->family;
  if (!FamilyTakes(op.kind, family)) return NotInFamily(op, family);
  if (op.text.size() > context.value_bytes_max) {
    return Status::Error(ErrorCode::kTooLarge, "input of " + FormatUint64(op.text.size()) +
                                                   " bytes for column " + Quote(ColumnText(op)) +
                                                   ", max-value-bytes is " +
                                                   FormatUint64(context.value_bytes_max));
  }
  checked->input = op.text;
  if (family.is_hll()) {
    if (op.kind == CellOp::Kind::kAdd || HllCanonical(op.text, &checked->cell_value)) {
      return Status::Ok();
    }
    return RefusedByColumn(
        op, Status::Error(ErrorCode::kBadValue, "the value is no state of a HyperLogLog"));
  }
  checked->type = *family.type;
  if (family.fold == FoldKind::kSum && op.kind != CellOp::Kind::kMerge) {
    return CheckSumDelta(op, checked);
  }
  const Status parsed = ParseValue(*family.type, op.text, &checked->cell_value);
  if (!parsed.ok()) return RefusedByColumn(op, parsed);
  if (family.fold != FoldKind::kSum) return Status::Ok();
  if (IsFloatType(*family.type)) {
    checked->delta_float = DecodeValue(*family.type, checked->cell_value).floating;
  } else {
    checked->delta = LoadInteger(*family.type, checked->cell_value);
  }
  return Status::Ok();
}

Status RowResolver::CheckSumDelta(const CellOp& op, CheckedOp* checked) {
  if (IsFloatType(checked->type)) {
    if (ParseDouble(op.text, &checked->delta_float) == NumberError::kNone) return Status::Ok();
    return BadInput(op, "no number");
  }
  const Status parsed = ParseIntegerDelta(op.text, &checked->delta);
  if (parsed.ok()) return Status::Ok();
  if (op.kind != CellOp::Kind::kAdd) return RefusedByColumn(op, parsed);
  return BadInput(op, "no integer, or beyond 64 bits");
}

int64_t RowResolver::TimestampIn(const FamilySchema& family, const std::optional<int64_t>& said) {
  if (said) return BucketBegin(*said, family.bucket_ms);
  if (family.fold != FoldKind::kNone && family.bucket_ms == 0) return 0;
  stamp_used_ = true;
  return BucketBegin(context_->stamp_micros, family.bucket_ms);
}

// The cell that an input is folded into: of the same timestamp. One that an op before made in this
// write is not in the tree yet, and is taken from pending_.
RowResolver::FoundCell RowResolver::FindCell(int64_t timestamp) {
  FoundCell found;
  const FamilySchema& family = *put_.family;
  // As BeginVersion puts it there.
  const std::string_view key(
      cell_key_.get(),
      put_.column_bytes + EncodeTimestamp(timestamp, cell_key_.get() + put_.column_bytes));
  if (has_pending_) {
    key_.assign(key);
    if (const auto pending = pending_.find(key_); pending != pending_.end()) {
      found.is_pending = true;
      CellValue cell;
      ReadStoredCell(pending->second, &plain_, &cell);
      if (cell.expiry_micros == kNoExpiry || cell.expiry_micros > context_->now_micros) {
        found.cell = cell;
      }
      return found;
    }
  }
  if (!table_->family_is_all_live(family)) return found;  // the walk has looked for it
  // No key begins with another one.
  const std::optional<BTree::Match> stored =
      table_->tree(family.group).FindFirst(key, &version_key_, &place_);
  if (!stored || !stored->key_rest.empty()) return found;
  CellValue cell;
  ReadStoredCell(stored->value, &plain_, &cell);
  found.cell = cell;
  return found;
}

void RowResolver::NotePending(const CellValue& cell) {
  if (!has_pending_) return;
  std::string& pending = pending_[std::string(put_.cell_key())];
  pending.clear();
  PutCellValue(&pending, cell);
}

// The cell that is folded into may be one that an earlier op of the same write has put
// (is_pending), and is looked for there first. A fold that changes nothing writes nothing: its
// count is 0, and the timestamp that it would have taken stays free.
Status RowResolver::ResolveFold(const CheckedOp& op, CellOpResult* result) {
  SetColumn(op);
  lone_put_end_ = kNoPut;  // put_ is of another column now, and perhaps nothing is put there
  const bool stamp_was_used = stamp_used_;
  const int64_t timestamp = TimestampIn(*op.family, op.op->timestamp_micros);
  column_versions_.walked = false;
  std::optional<OldVersion> walked;
  const bool all_live = table_->family_is_all_live(*op.family);
  if (!all_live) {
    wanted_micros_ = timestamp;
    walked = WalkColumn(Newest::kRead);
    wanted_micros_ = kNoVersion;
  }
  FoundCell found = FindCell(timestamp);
  if (walked && !found.is_pending) found.cell = walked->value;
  if (op.op->timestamp_micros) {
    WatchArrival(*op.op, timestamp, found.cell ? found.cell->expiry_micros : kNoExpiry);
  }
  result->folded = true;
  if (op.family->is_hll()) {
    FoldHll(op, timestamp, found.cell, found.is_pending, result);
    if (result->count == 0) stamp_used_ = stamp_was_used;
    return Status::Ok();
  }
  StoredValue folded;
  RETURN_IF_ERROR(FoldNumber(op, found.cell, &folded));
  result->type = folded.type;
  result->stored.assign(folded.stored);
  // No cell takes the timestamp: what was reclaimed here must not use it up, which the sweeper may
  // have done before.
  if (found.cell && found.cell->stored == result->stored) {
    stamp_used_ = stamp_was_used;
    return Status::Ok();
  }
  result->count = 1;
  const CellValue cell{.type = folded.type,
                       .expiry_micros = found.cell ? found.cell->expiry_micros : kNoExpiry,
                       .stored = result->stored};
  PutVersion(timestamp, cell);
  if (all_live && !found.is_pending) put_.place = &place_;  // FindCell has noted it
  NotePending(cell);
  return Status::Ok();
}

// What the cell becomes. `folded` may borrow from the cell and from the op.
Status RowResolver::FoldNumber(const CheckedOp& op, const std::optional<CellValue>& cell,
                               StoredValue* folded) {
  const ValueType type = *op.family->type;
  folded->type = type;
  if (op.family->fold != FoldKind::kSum) {
    const bool replaces = !cell || FoldReplaces(op.family->fold, type, cell->stored, op.cell_value);
    folded->stored = replaces ? std::string_view(op.cell_value) : cell->stored;
    return Status::Ok();
  }
  ValueBuffer zero;
  std::string_view start;
  if (cell) {
    start = cell->stored;
  } else {
    RETURN_IF_ERROR(ParseValue(type, "0", &zero, &start));
  }
  const Status added = IsFloatType(type)
                           ? AddFloat(type, start, op.delta_float, TextCells::kRefuse, folded)
                           : AddInteger(type, start, op.delta, TextCells::kRefuse, folded);
  if (added.ok()) return Status::Ok();
  return Status::Error(added.code(), added.text() + ": column " + Quote(ColumnText(*op.op)) +
                                         " of type " + std::string(ValueTypeName(type)));
}

// The mutation gets the input and not the new state, which the engine makes when it carries the op
// out: an ADD costs no copy of the state. An input that the stored state has already changes
// nothing; of a state that an earlier op of the write has put that is not asked.
void RowResolver::FoldHll(const CheckedOp& op, int64_t timestamp,
                          const std::optional<CellValue>& cell, bool is_pending,
                          CellOpResult* result) {
  const bool merges = op.op->kind == CellOp::Kind::kMerge;
  if (!cell) {
    result->count = 1;
    if (!merges) state_ = HllStateOf(HllInputOf(op.input));
    const CellValue begun{.type = ValueType::kHll,
                          .expiry_micros = kNoExpiry,
                          .stored = merges ? std::string_view(op.cell_value) : state_};
    PutVersion(timestamp, begun);
    NotePending(begun);
    return;
  }
  if (!is_pending) {
    if (merges) {
      if (!HllMerge(cell->stored, op.cell_value, &state_)) return;
    } else {
      const HllInput input = HllInputOf(op.input);
      if (HllRegister(cell->stored, input.index) >= input.rank) return;
    }
  }
  result->count = 1;
  mutation_->Row(table_->id(), row_key());
  mutation_->Fold(merges ? MutationOp::kMergeState : MutationOp::kAddInput, op.family->id,
                  qualifier(), timestamp, merges ? std::string_view(op.cell_value) : op.input);
}

}  // namespace cellar
