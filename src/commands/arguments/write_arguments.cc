// See write_arguments.h.
#include "commands/arguments/write_arguments.h"

#include <string>

#include "base/assert.h"
#include "base/inline.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "engine/keys/value.h"

namespace cellar {
namespace {

[[gnu::cold]] Status ExpiryTwice() {
  return SyntaxErrorBecause("EXPIREAT excludes TTL: a cell expires once");
}

}  // namespace

Status TakeValueOptions(ArgumentCursor* at, PutOptions* options) {
  while (at->left() >= 2) {
    if (at->TakeWord("AS")) {
      const std::string_view name = at->Take();
      if (options->type.has_value()) return RepeatedOption("AS");
      ASSIGN_OR_RETURN(options->type, ParseValueType(name));
    } else if (at->TakeWord("TS")) {
      if (options->timestamp_micros.has_value()) return RepeatedOption("TS");
      ASSIGN_OR_RETURN(options->timestamp_micros, ParseTimestamp(at->Take()));
    } else if (at->TakeWord("TTL")) {
      if (options->ttl_micros.has_value()) return RepeatedOption("TTL");
      if (options->expiry_micros.has_value()) return ExpiryTwice();
      ASSIGN_OR_RETURN(options->ttl_micros, ParseTtlMicros(at->Take()));
    } else if (at->TakeWord("EXPIREAT")) {
      if (options->expiry_micros.has_value()) return RepeatedOption("EXPIREAT");
      if (options->ttl_micros.has_value()) return ExpiryTwice();
      ASSIGN_OR_RETURN(options->expiry_micros, ParseTimestamp(at->Take()));
    } else {
      return Status::Ok();
    }
  }
  return Status::Ok();
}

Status NotNextColumn(std::string_view word) {
  if (EqualsIgnoreCase(word, "AS")) return IncompleteOption("AS", "type");
  if (EqualsIgnoreCase(word, "TS")) return IncompleteOption("TS", "time");
  if (EqualsIgnoreCase(word, "TTL")) return IncompleteOption("TTL", "duration");
  if (EqualsIgnoreCase(word, "EXPIREAT")) return IncompleteOption("EXPIREAT", "time");
  for (const std::string_view option : {"NX", "XX", "IF"}) {
    if (EqualsIgnoreCase(word, option)) {
      return SyntaxErrorBecause(std::string(option) + " comes before the first column");
    }
  }
  return UnexpectedWord(word, "a column (family:qualifier), AS, TS, TTL or EXPIREAT");
}

Status NoValue(std::string_view family, std::string_view qualifier) {
  std::string column(family);
  column.append(":").append(qualifier);
  return SyntaxErrorBecause("no value for " + Quote(column));
}

namespace {

// `column value [AS type] [TS time] [TTL duration | EXPIREAT time]`
Status TakePut(ArgumentCursor* at, std::vector<CellOp>* ops) {
  std::string_view family;
  std::string_view qualifier;
  if (at->left() < 2) return IncompleteOption("PUT", "column value");
  if (!TakeColumn(at, &family, &qualifier)) return UnexpectedWord(at->Peek(), kColumnForm);
  return TakeValueOptions(at, &AddPut(family, qualifier, at->Take(), ops));
}

// COLPREFIX, COLRANGE, a column or a family.
Result<ColumnSelector> TakeSelector(ArgumentCursor* at) {
  if (at->TakeWord("COLPREFIX")) return TakeColumnPrefix(at);
  if (at->TakeWord("COLRANGE")) return TakeColumnRange(at);
  ASSIGN_OR_RETURN(const std::string_view word,
                   at->TakeAny("DEL", "column|family, COLPREFIX or COLRANGE"));
  return ParseSelector(word);
}

// A delta that is no number is wrong whatever the cell holds.
Status ParseDelta(CellOp::Kind kind, std::string_view text) {
  int128_t integer = 0;
  double number = 0;
  switch (kind) {
    case CellOp::Kind::kIncrement:
      return ParseIntegerDelta(text, &integer);
    case CellOp::Kind::kIncrementFloat:
    case CellOp::Kind::kIncrementAny:
      // Of any cell too: an integer beyond 64 bits is one for float cells, and what the cell is, is
      // not known here.
      return ParseFloatDelta(text, &number);
    default:
      return Status::Ok();
  }
}

Status CheckDelta(const CellOp& op) {
  const Status status = ParseDelta(op.kind, op.text);
  if (status.ok()) return Status::Ok();
  const std::string column = std::string(op.family).append(":").append(op.qualifier);
  return Status::Error(status.code(), status.text() + " for column " + Quote(column));
}

// `column delta`, `column bytes`
Status TakeColumnOp(ArgumentCursor* at, CellOp::Kind kind, std::vector<CellOp>* ops) {
  CellOp& op = ops->emplace_back();
  op.kind = kind;
  if (at->left() < 2) {
    return kind == CellOp::Kind::kAppend ? IncompleteOption("APPEND", "column bytes")
                                         : IncompleteOption("INCR", "column delta");
  }
  RETURN_IF_ERROR(ParseColumn(at->Take(), &op.family, &op.qualifier));
  op.text = at->Take();
  return CheckDelta(op);
}

// `column input [TS time]`
Status TakeFold(ArgumentCursor* at, CellOp::Kind kind, std::string_view name,
                std::vector<CellOp>* ops) {
  std::string_view family;
  std::string_view qualifier;
  if (at->left() < 2) {
    return IncompleteOption(name, kind == CellOp::Kind::kAdd ? "column input" : "column state");
  }
  if (!TakeColumn(at, &family, &qualifier)) return UnexpectedWord(at->Peek(), kColumnForm);
  CellOp& op = AddPut(family, qualifier, at->Take(), ops);
  op.kind = kind;
  if (!at->TakeWord("TS")) return Status::Ok();
  if (at->done()) return IncompleteOption("TS", "time");
  ASSIGN_OR_RETURN(op.timestamp_micros, ParseTimestamp(at->Take()));
  if (!at->done() && EqualsIgnoreCase(at->Peek(), "TS")) return RepeatedOption("TS");
  return Status::Ok();
}

// `DEL selector [TIME min max]`
Status TakeDelete(ArgumentCursor* at, std::vector<CellOp>* ops) {
  CellOp& op = ops->emplace_back();
  op.kind = CellOp::Kind::kDelete;
  ASSIGN_OR_RETURN(op.selector, TakeSelector(at));
  if (!at->TakeWord("TIME")) return Status::Ok();
  if (at->left() < 2) return IncompleteOption("TIME", "min max");
  const std::string_view min = at->Take();
  ASSIGN_OR_RETURN(op.time, ParseTimeRange(min, at->Take()));
  return Status::Ok();
}

// One op of CMUTATE.
Status TakeOp(ArgumentCursor* at, std::vector<CellOp>* ops) {
  if (at->TakeWord("PUT")) return TakePut(at, ops);
  if (at->TakeWord("DEL")) return TakeDelete(at, ops);
  if (at->TakeWord("INCR")) return TakeColumnOp(at, CellOp::Kind::kIncrementAny, ops);
  if (at->TakeWord("APPEND")) return TakeColumnOp(at, CellOp::Kind::kAppend, ops);
  if (at->TakeWord("ADD")) return TakeFold(at, CellOp::Kind::kAdd, "ADD", ops);
  if (at->TakeWord("MERGE")) return TakeFold(at, CellOp::Kind::kMerge, "MERGE", ops);
  if (at->TakeWord("DELROW")) {
    ops->emplace_back().kind = CellOp::Kind::kDeleteRow;
    return Status::Ok();
  }
  if (EqualsIgnoreCase(at->Peek(), "IF")) {
    return SyntaxErrorBecause("IF must come before the first op");
  }
  return UnexpectedWord(at->Peek(), "PUT, ADD, MERGE, DEL, DELROW, INCR, APPEND or ELSE");
}

Status TakeCondition(ArgumentCursor* at, RowWrite* write) {
  ASSIGN_OR_RETURN(const Predicate predicate, TakePredicate(at));
  write->conditions.push_back(predicate);
  return Status::Ok();
}

// Whether the first family to delete from that the table does not have is called TIME.
bool MissesTime(const TableSchema& schema, const std::vector<CellOp>& ops) {
  for (const CellOp& op : ops) {
    if (op.kind != CellOp::Kind::kDelete || schema.FindFamily(op.selector.family) != nullptr)
      continue;
    return op.selector.kind == ColumnSelector::Kind::kFamily &&
           EqualsIgnoreCase(op.selector.family, "TIME");
  }
  return false;
}

}  // namespace

Status HintAtTime(Status refusal, const TableSchema& schema, const RowWrite& write) {
  CELLAR_ASSERT(!refusal.ok());
  if (refusal.code() != ErrorCode::kNoFamily) return refusal;
  if (!MissesTime(schema, write.ops) && !MissesTime(schema, write.else_ops)) return refusal;
  return Status::Error(refusal.code(),
                       refusal.text() + " -- the option TIME takes min and max, at the end");
}

Status TakePutOption(ArgumentCursor* at, RowWrite* write) {
  const bool nx = at->TakeWord("NX");
  if (nx || at->TakeWord("XX")) {
    if (write->existence != RowWrite::Existence::kAny) {
      return SyntaxErrorBecause("one NX or XX, not two");
    }
    write->existence = nx ? RowWrite::Existence::kNx : RowWrite::Existence::kXx;
    return Status::Ok();
  }
  if (at->TakeWord("IF")) return TakeCondition(at, write);
  if (at->done()) return SyntaxErrorBecause("no column and value");
  return UnexpectedWord(at->Peek(), "a column (family:qualifier), NX, XX or IF");
}

Status ParseDelete(ArgumentCursor at, RowWrite* write) {
  CELLAR_ASSERT(write->ops.empty());
  TimeRange time;
  while (!at.done()) {
    // An option only as the third word from the end; anywhere else it is the name of a family.
    if (at.left() == 3 && EqualsIgnoreCase(at.Peek(), "TIME")) {
      at.Take();
      const std::string_view min = at.Take();
      ASSIGN_OR_RETURN(time, ParseTimeRange(min, at.Take()));
    } else if (at.TakeWord("IF")) {
      RETURN_IF_ERROR(TakeCondition(&at, write));
    } else {
      CellOp& op = write->ops.emplace_back();
      op.kind = CellOp::Kind::kDelete;
      ASSIGN_OR_RETURN(op.selector, TakeSelector(&at));
    }
  }
  // Nothing is selected: the row itself is meant.
  if (write->ops.empty()) write->ops.emplace_back().kind = CellOp::Kind::kDeleteRow;
  for (CellOp& op : write->ops) op.time = time;
  return Status::Ok();
}

Status ParseAdd(ArgumentCursor at, RowWrite* write) {
  CELLAR_ASSERT(write->ops.empty());
  while (at.TakeWord("IF")) RETURN_IF_ERROR(TakeCondition(&at, write));
  do {
    if (at.left() == 1) {
      std::string_view family;
      std::string_view qualifier;
      if (TakeColumn(&at, &family, &qualifier)) {
        return SyntaxErrorBecause("no input for " +
                                  Quote(std::string(family) + ":" + std::string(qualifier)));
      }
      return UnexpectedWord(at.Peek(), "a column (family:qualifier) or TS");
    }
    RETURN_IF_ERROR(TakeFold(&at, CellOp::Kind::kAdd, "CADD", &write->ops));
  } while (!at.done());
  return Status::Ok();
}

Status ParseMutate(ArgumentCursor at, RowWrite* write) {
  CELLAR_ASSERT(write->ops.empty());
  while (at.TakeWord("IF")) RETURN_IF_ERROR(TakeCondition(&at, write));
  bool in_else = false;
  while (!at.done()) {
    if (at.TakeWord("ELSE")) {
      if (in_else) return RepeatedOption("ELSE");
      if (write->conditions.empty()) return SyntaxErrorBecause("ELSE needs an IF before all ops");
      in_else = true;
    } else {
      RETURN_IF_ERROR(TakeOp(&at, in_else ? &write->else_ops : &write->ops));
    }
  }
  if (write->ops.empty() && write->else_ops.empty()) {
    return SyntaxErrorBecause("nothing to do: no PUT, ADD, MERGE, DEL, DELROW, INCR or APPEND");
  }
  return Status::Ok();
}

bool IsOpWord(std::string_view word) {
  for (const std::string_view op : {"PUT", "ADD", "MERGE", "DEL", "DELROW", "INCR", "APPEND"}) {
    if (EqualsIgnoreCase(word, op)) return true;
  }
  return false;
}

Status ParseUpdateOps(ArgumentCursor at, RowWrite* write) {
  CELLAR_ASSERT(write->ops.empty());
  if (at.done())
    return SyntaxErrorBecause("nothing to do: no PUT, ADD, MERGE, DEL, DELROW, INCR or APPEND");
  while (!at.done()) {
    if (!IsOpWord(at.Peek()))
      return UnexpectedWord(at.Peek(), "PUT, ADD, MERGE, DEL, DELROW, INCR or APPEND");
    RETURN_IF_ERROR(TakeOp(&at, &write->ops));
  }
  return Status::Ok();
}

Status ParseColumnOp(ArgumentCursor at, CellOp::Kind kind, RowWrite* write) {
  CELLAR_ASSERT(at.left() == 2);
  return TakeColumnOp(&at, kind, &write->ops);
}

namespace {

[[gnu::cold]] Status NotDeleteRange(ArgumentCursor at) {
  if (at.TakeWord("PREFIX")) return SyntaxErrorBecause("PREFIX takes a prefix and nothing else");
  if (at.TakeWord("RANGE")) return SyntaxErrorBecause("RANGE takes min max and nothing else");
  return UnexpectedWord(at.Peek(), "PREFIX, RANGE or ALL");
}

}  // namespace

Status ParseDeleteRange(ArgumentCursor at, RowOptions* rows) {
  if (at.TakeWord("ALL")) {
    return at.done() ? Status::Ok() : SyntaxErrorBecause("ALL takes nothing else");
  }
  RowSelector& selector = rows->rows.emplace_back();
  if (at.left() == 2 && at.TakeWord("PREFIX")) {
    selector.kind = RowSelector::Kind::kPrefix;
    selector.first = at.Take();
    return Status::Ok();
  }
  if (at.left() != 3 || !at.TakeWord("RANGE")) return NotDeleteRange(at);
  selector.kind = RowSelector::Kind::kRange;
  selector.first = at.Take();
  selector.second = at.Take();
  RETURN_IF_ERROR(CheckBound(selector.first));
  return CheckBound(selector.second);
}

}  // namespace cellar
