// Checking, deciding and resolving the write of one row.
#include "engine/rows/row_resolver.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/copy_bytes.h"
#include "base/inline.h"
#include "base/text/ascii.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/hyperloglog.h"
#include "engine/keys/time_uuid.h"
#include "engine/table/version_walk.h"

namespace cellar {
namespace {

// What `*` gives. Numbers before the last tablet may be in use by sets that this one knows nothing
// of, so that it begins there at the earliest.
uint64_t RecordNumberNext(const Table& table) {
  const uint64_t next = table.counters().record_number_next;
  if (table.tablets() == nullptr || table.tablets()->owns_all() || table.tablets()->list().empty())
    return next;
  const Order& key = table.schema().key;
  const std::string& begin = table.tablets()->list().back().begin;
  const bool is_number = key.ComponentsSize(begin, 1) == begin.size() && !begin.empty();
  if (!is_number) return next;
  return std::max(next, static_cast<uint64_t>(std::max<int64_t>(1, key.DecodeRecno(begin))));
}

// The name of the column.
std::string ColumnText(const CellPut& put) {
  return std::string(put.family) + ":" + std::string(put.qualifier);
}

[[gnu::cold]] Status ValueTooLarge(size_t bytes, const CellPut& put, uint64_t bytes_max) {
  return Status::Error(ErrorCode::kTooLarge, "value of " + FormatUint64(bytes) +
                                                 " bytes for column " + Quote(ColumnText(put)) +
                                                 ", max-value-bytes is " + FormatUint64(bytes_max));
}

[[gnu::cold]] Status NotTheDeclaredType(ValueType type, const CellPut& put,
                                        const FamilySchema& family, std::string_view qualifier) {
  const bool is_columns = family.FindColumn(qualifier) != nullptr;
  const std::string holder =
      is_columns ? "column " + Quote(ColumnText(put)) : "family '" + family.name + "'";
  const ValueType declared = *TypeOf(family, qualifier);
  return Status::Error(ErrorCode::kWrongType, holder + " holds " +
                                                  std::string(ValueTypeName(declared)) + ", not " +
                                                  std::string(ValueTypeName(type)));
}

// A value that its column does not take: a write may have a thousand columns, so its own is named.
[[gnu::cold]] Status RefusedByColumn(const CellPut& put, const Status& status) {
  return Status::Error(status.code(), "column " + Quote(ColumnText(put)) + ": " + status.text());
}

// A sum that does not fit: Redis' words first, then where it would have gone.
[[gnu::cold]] Status SumTooLarge(const CellPut& put, ValueType type, const Status& status) {
  return Status::Error(status.code(), status.text() + ": column " + Quote(ColumnText(put)) +
                                          " of type " + std::string(ValueTypeName(type)));
}

bool NamesColumn(CellOp::Kind kind) {
  return kind != CellOp::Kind::kDelete && kind != CellOp::Kind::kDeleteRow;
}

// When a cell with these options expires. What would be later than all time is clamped below
// kNoExpiry, which stands for never.
CELLAR_INLINE int64_t ExpiryOf(const PutOptions& options, int64_t now_micros) {
  if (options.expiry_micros)
    return std::clamp<int64_t>(*options.expiry_micros, 1, kTimestampMax - 1);
  if (!options.ttl_micros) return kNoExpiry;
  const auto ttl = static_cast<int64_t>(
      std::min<uint64_t>(*options.ttl_micros, static_cast<uint64_t>(kTimestampMax)));
  return now_micros > kTimestampMax - 1 - ttl ? kTimestampMax - 1 : now_micros + ttl;
}

}  // namespace

// --- check

// Every cell of the write has the row's key in front, so that is encoded once, to the front of
// cell_key_. Columns are written behind it.
CELLAR_INLINE Status RowResolver::BeginRow(const Table& table, std::string_view text) {
  const TableSchema& schema = table.schema();
  char* end = cell_key_.get();
  ForgetRow();
  Status status = EncodeRowKey(schema, text, &end);
  if (!status.ok()) [[unlikely]] {
    char* now_end = cell_key_.get();  // `end` is not given away: it stays in a register
    RETURN_IF_ERROR(EncodeNow(schema.key, text, std::move(status), [&](std::string_view key) {
      return EncodeRowKey(schema, key, &now_end);
    }));
    end = now_end;
  }
  put_.row_bytes = static_cast<size_t>(end - cell_key_.get());
  if (table.clamp() != nullptr) [[unlikely]]
    return table.CheckOwned({cell_key_.get(), put_.row_bytes});
  return Status::Ok();
}

// What is wrong with the request whatever the row holds. All of it comes before Decide and Resolve,
// so that a refused write has read and changed nothing. Filters are compiled last: their errors are
// told only if nothing else is wrong.
Status RowResolver::Check(const TableSchema& schema, const RowWrite& write,
                          const WriteContext& context) {
  conditions_.clear();
  ops_checked_ = 0;
  access_ = write.access;
  asks_existence_ = write.existence != RowWrite::Existence::kAny;
  if (write.ops.size() + write.else_ops.size() > kCellOpsMax) {
    return Status::Error(ErrorCode::kTooLarge, "a write of " + FormatUint64(write.ops.size()) +
                                                   " cells, the limit is " +
                                                   FormatUint64(kCellOpsMax));
  }
  const TableSchema& readable = view_->schema();
  for (const Predicate& predicate : write.conditions) {
    ASSIGN_OR_RETURN(Condition condition, Condition::Compile(readable, predicate));
    conditions_.push_back(std::move(condition));
  }
  RETURN_IF_ERROR(CheckOps(schema, write.ops, context, &ops_checked_));
  size_t all = ops_checked_;
  RETURN_IF_ERROR(CheckOps(schema, write.else_ops, context, &all));
  else_ops_checked_ = all - ops_checked_;
  for (Condition& condition : conditions_) RETURN_IF_ERROR(condition.CompileFilter(readable));
  return Status::Ok();
}

// The elements of checked_ keep the memory of their strings from one write to the next, so they are
// used again instead of being made anew.
Status RowResolver::CheckOps(const TableSchema& schema, const std::vector<CellOp>& ops,
                             const WriteContext& context, size_t* used) {
  for (const CellOp& op : ops) {
    if (*used == checked_.size()) checked_.emplace_back();
    CheckedOp& checked = checked_[(*used)++];
    checked.op = &op;
    checked.family = nullptr;
    RETURN_IF_ERROR(CheckAccess(op));
    if (op.kind == CellOp::Kind::kDelete) {
      ASSIGN_OR_RETURN(checked.columns, ColumnSet::Compile(schema, {&op.selector, 1}));
    }
    if (!NamesColumn(op.kind)) continue;
    RETURN_IF_ERROR(CheckColumn(schema, op, &checked));
    if (op.kind == CellOp::Kind::kPut) {
      RETURN_IF_ERROR(CheckPut(op, context, &checked));
    } else if (CellOp::IsBlind(op.kind) || checked.family->fold != FoldKind::kNone) {
      RETURN_IF_ERROR(CheckFold(op, context, &checked));
    } else if (op.kind == CellOp::Kind::kAppend) {
      if (op.text.size() > context.value_bytes_max) {
        return ValueTooLarge(op.text.size(), op, context.value_bytes_max);
      }
    } else {
      RETURN_IF_ERROR(CheckDelta(op, &checked));
    }
  }
  return Status::Ok();
}

// An op that replies something of the cell, as a sum or a length does, needs the right to read it,
// too.
Status RowResolver::CheckAccess(const CellOp& op) const {
  if (access_ == nullptr) return Status::Ok();
  bool allowed = true;
  switch (op.kind) {
    case CellOp::Kind::kPut:
      // NX and XX tell of cells that are there.
      allowed = access_->MayWrite(op.family) && (!asks_existence_ || access_->MayRead(op.family));
      break;
    case CellOp::Kind::kAdd:
    case CellOp::Kind::kMerge:
      allowed = access_->MayWrite(op.family);
      break;
    case CellOp::Kind::kDelete:
      allowed = access_->MayWrite(op.selector.family);
      break;
    case CellOp::Kind::kDeleteRow:
      allowed = access_->MayWriteAll();
      break;
    default:
      allowed = access_->MayWrite(op.family) && access_->MayRead(op.family);
      break;
  }
  return allowed ? Status::Ok() : NoPermission();
}

Status RowResolver::CheckColumn(const TableSchema& schema, const CellOp& op, CheckedOp* checked) {
  checked->family = schema.FindFamily(op.family);
  if (checked->family == nullptr) [[unlikely]]
    return RequireFamily(schema, op.family).status();
  return EncodeForWrite(checked->family->order, op.qualifier, [&](std::string_view qualifier) {
    checked->qualifier.clear();
    return EncodeQualifier(*checked->family, qualifier, &checked->qualifier);
  });
}

// The value's text as it will be stored. cell->stored borrows from the request, from *buffer or, of
// an hll, from state_.
CELLAR_INLINE Status RowResolver::CheckValue(const CellPut& put, const PutOptions& options,
                                             const Column& column, const WriteContext& context,
                                             ValueBuffer* buffer, CellValue* cell) {
  const std::string_view text = put.text;
  const FamilySchema& family = column.family;
  const std::optional<ValueType> declared = TypeOf(family, column.qualifier);
  if (family.is_hll()) [[unlikely]] {
    cell->expiry_micros = ExpiryOf(options, context.now_micros);
    if (text.size() > context.value_bytes_max)
      return ValueTooLarge(text.size(), put, context.value_bytes_max);
    return CheckState(put, options, family, cell);
  }
  if (options.type && declared && *options.type != *declared) [[unlikely]]
    return NotTheDeclaredType(*options.type, put, family, column.qualifier);
  cell->type = options.type ? *options.type : declared.value_or(ValueType::kBytes);
  if (text.size() > context.value_bytes_max) [[unlikely]]
    return ValueTooLarge(text.size(), put, context.value_bytes_max);
  cell->expiry_micros = ExpiryOf(options, context.now_micros);
  if (cell->type == ValueType::kBytes) {
    cell->stored = text;
    return Status::Ok();
  }
  std::string_view stored;  // its address is given away, so that the usual cell stays in registers
  const Status status = ParseValue(cell->type, text, buffer, &stored);
  cell->stored = stored;
  if (status.ok()) [[likely]]
    return Status::Ok();
  if (cell->type == ValueType::kUuid && EqualsIgnoreCase(text, "now"))
    return ParseValue(ValueType::kUuid, NewTimeUuid(), buffer, &cell->stored);
  return RefusedByColumn(put, status);
}

[[gnu::noinline]] Status RowResolver::CheckState(const CellPut& put, const PutOptions& options,
                                                 const FamilySchema& family, CellValue* cell) {
  if (options.type) {
    return Status::Error(ErrorCode::kWrongType, "family '" + family.name + "' holds hll, not " +
                                                    std::string(ValueTypeName(*options.type)));
  }
  if (!HllCanonical(put.text, &state_)) {
    return RefusedByColumn(
        put, Status::Error(ErrorCode::kBadValue, "the value is no state of a HyperLogLog"));
  }
  cell->type = ValueType::kHll;
  cell->stored = state_;
  return Status::Ok();
}

Status RowResolver::CheckPut(const CellOp& op, const WriteContext& context, CheckedOp* checked) {
  ValueBuffer buffer;
  CellValue cell;
  const Column column{*checked->family, checked->qualifier};
  RETURN_IF_ERROR(CheckValue(op, op, column, context, &buffer, &cell));
  checked->type = cell.type;
  checked->cell_value.clear();
  Pack(*checked->family, &cell);
  PutCellValue(&checked->cell_value, cell);
  return Status::Ok();
}

Status RowResolver::CheckDelta(const CellOp& op, CheckedOp* checked) {
  if (op.kind == CellOp::Kind::kIncrement) return ParseIntegerDelta(op.text, &checked->delta);
  // Of kIncrementAny both forms are read: which one is added is known only when the cell has been
  // read. An integer that is too large is no error yet, since a float may take it.
  checked->delta_kind = ClassifyNumber(op.text);
  checked->delta_fits = true;
  if (op.kind == CellOp::Kind::kIncrementAny && checked->delta_kind == TextNumber::kInteger) {
    checked->delta_fits = ParseIntegerDelta(op.text, &checked->delta).ok();
  }
  return ParseFloatDelta(op.text, &checked->delta_float);
}

// --- decide

// NX and XX are asked of every column of the write, as if each was a condition of its own; then the
// conditions proper.
Result<bool> RowResolver::Decide(const Table& table, const RowWrite& write, const ReadView& view) {
  if (put_.row_bytes == 0) return write.existence != RowWrite::Existence::kXx;  // a row to be made
  if (write.existence != RowWrite::Existence::kAny) {
    const bool wanted = write.existence == RowWrite::Existence::kXx;
    for (size_t i = 0; i < ops_checked_; ++i) {
      const CheckedOp& op = checked_[i];
      if (view.ReadCell(row_key(), *op.family, op.qualifier, kTimestampMax).has_value() != wanted) {
        return false;
      }
    }
  }
  CELLAR_ASSERT(!table.row_is_open());
  return AllHold(conditions_, view, row_key());
}

// --- resolve

// Adds the op of a new version to the mutation, and returns where its value is to be written. Where
// the column has as many versions as its family keeps, and this one is the newest, the op says that
// it replaces the oldest: the tree then changes one entry instead of adding one and leaving one for
// the sweeper. place_ is where WalkColumn found the newest version; it is of use only if the new
// one goes right before that.
CELLAR_INLINE char* RowResolver::BeginVersion(int64_t timestamp, size_t cell_value_bytes) {
  const bool is_first = mutation_->size() == part_begin_;
  const ColumnVersions& versions = column_versions_;
  put_.key_bytes =
      put_.column_bytes + EncodeTimestamp(timestamp, cell_key_.get() + put_.column_bytes);
  put_.timestamp = timestamp;
  const bool is_newest = versions.walked && timestamp > versions.newest_micros;
  put_.replaced.reset();
  if (versions.full && is_newest) put_.replaced = versions.oldest_micros;
  put_.place = is_newest ? &place_ : nullptr;
  char* const to = mutation_->BeginPut(table_->id(), put_, cell_value_bytes);
  put_.cell_value = {to, cell_value_bytes};
  lone_put_end_ = is_first ? mutation_->size() : kNoPut;
  return to;
}

[[gnu::noinline]] void RowResolver::PackCell(const FamilySchema& family, CellValue* cell) {
  if (!IsTextType(cell->type)) return;
  const std::optional<std::string_view> packed = packer_.Pack(family.compression, cell->stored);
  if (!packed) return;
  cell->packed = kCellCompressed;
  cell->stored = *packed;
}

void RowResolver::PutVersion(int64_t timestamp, CellValue cell) {
  Pack(*put_.family, &cell);
  EncodeCellValue(BeginVersion(timestamp, CellValueBytes(cell)), cell);
}

// Counts puts whose timestamp the client has chosen: of those that retention drops at once, or that
// lie far ahead of the clock, nobody would hear otherwise (arrival_watch.h).
[[gnu::noinline]] void RowResolver::WatchArrival(const CellPut& put, int64_t timestamp,
                                                 int64_t expiry_micros) {
  const ColumnVersions& versions = column_versions_;
  const int64_t now = context_->now_micros;
  const bool dead =
      put_.family->policy.Drops(1, timestamp, expiry_micros, now) ||
      (versions.walked && versions.keeps_no_older && timestamp < versions.oldest_micros);
  arrivals_.Note(table_->name(), ColumnText(put), timestamp, dead, now);
}

CELLAR_INLINE Status RowResolver::ResolveValue(const CellPut& put, const PutOptions& options) {
  ValueBuffer buffer;
  CellValue cell;
  const Column column{*put_.family, qualifier()};
  RETURN_IF_ERROR(CheckValue(put, options, column, *context_, &buffer, &cell));
  ReclaimColumn();
  int64_t timestamp = context_->stamp_micros;
  if (!put_.family->is_plain()) [[unlikely]] {
    timestamp = TimestampIn(*put_.family, options.timestamp_micros);
  } else if (options.timestamp_micros) {
    timestamp = *options.timestamp_micros;
  } else {
    stamp_used_ = true;
  }
  if (options.timestamp_micros) WatchArrival(put, timestamp, cell.expiry_micros);
  Pack(*put_.family, &cell);
  EncodeCellValue(BeginVersion(timestamp, CellValueBytes(cell)), cell);
  return Status::Ok();
}

// The put of most cells: bytes, without a type, an expiry or packing, in a family of which
// retention drops nothing. The old versions need not be looked at then. False if it is another one.
CELLAR_INLINE bool RowResolver::PutPlainBytes(std::string_view text) {
  if (!put_.family->takes_plain_bytes || text.size() > context_->value_bytes_max) return false;
  ReclaimColumn();
  stamp_used_ = true;
  char* const to = BeginVersion(context_->stamp_micros, 1 + text.size());
  *to = static_cast<char>(ValueType::kBytes);
  CopyBytes(to + 1, text.data(), text.size());
  return true;
}

// A column that was refused, with a new UUID where its qualifier says `now`; else the refusal. It
// takes none of its callers' variables by address, so that these stay in registers.
[[gnu::cold, gnu::noinline]] Status RowResolver::SetColumnOfNow(const CellPut& put,
                                                                Status refusal) {
  const FamilySchema* family = table_->schema().FindFamily(put.family);
  std::string expanded;
  if (family == nullptr || !ExpandNow(family->order, put.qualifier, &expanded)) return refusal;
  char* end = column_begin();
  RETURN_IF_ERROR(EncodeColumn(table_->schema(), put.family, expanded, &family, &end));
  SetColumn(*family, end);
  return Status::Ok();
}

CELLAR_INLINE Status RowResolver::ResolvePlainPut(std::string_view name, std::string_view text) {
  const FamilySchema* family = nullptr;
  char* end = column_begin();
  if (Status status = table_->EncodeColumn(name, &family, &end); !status.ok()) [[unlikely]] {
    CellPut put;
    (void)SplitColumn(name, &put.family, &put.qualifier);
    RETURN_IF_ERROR(SetColumnOfNow(put, std::move(status)));
  } else {
    SetColumn(*family, end);
  }
  if (PutPlainBytes(text)) [[likely]]
    return Status::Ok();
  CellPut put;
  (void)SplitColumn(name, &put.family, &put.qualifier);
  put.text = text;
  return ResolveValue(put, PutOptions{});
}

CELLAR_INLINE Status RowResolver::ResolvePlainPut(const CellPut& put, const PutOptions& options) {
  const FamilySchema* family = nullptr;
  char* end = column_begin();
  if (Status status = EncodeColumn(table_->schema(), put.family, put.qualifier, &family, &end);
      !status.ok()) [[unlikely]] {
    RETURN_IF_ERROR(SetColumnOfNow(put, std::move(status)));
  } else {
    SetColumn(*family, end);
  }
  return ResolveValue(put, options);
}

// Asked for each put of a row; puts of one family mostly follow one another, so the last answer is
// kept.
bool RowResolver::FamilyIsEmpty() {
  if (looked_at_ == put_.family) return family_is_empty_;
  looked_at_ = put_.family;
  const std::string_view prefix(put_.key, put_.family_bytes);
  family_is_empty_ = !table_->tree(put_.family->group).FindFirst(prefix, &version_key_, &place_);
  return family_is_empty_;
}

template <typename ResolveNth>
// The frame of all puts that go the short way: encodes the row, resolves each put into the
// mutation, and takes all of it back if one is refused.
CELLAR_INLINE Status RowResolver::ResolveEach(const Table& table, std::string_view row,
                                              size_t count, const WriteContext& context,
                                              MutationBuilder* mutation, ResolveNth resolve) {
  CELLAR_DEBUG_ASSERT(!table.schema().key.is_recno());
  CELLAR_DEBUG_ASSERT(count > 0);
  RETURN_IF_ERROR(BeginRow(table, row));
  table_ = &table;
  context_ = &context;
  mutation_ = mutation;
  stamp_used_ = false;
  several_ops_ = count > 1;
  (void)BeginPart();
  Status status = count == 1 ? resolve(0) : ResolveSeveral(count, resolve);
  if (!status.ok()) [[unlikely]]
    mutation_->Truncate(part_begin_);
  return status;
}

// Puts that may stand side by side in the tree are kept for Apply in row_puts_.
template <typename ResolveNth>
[[gnu::noinline]] Status RowResolver::ResolveSeveral(size_t count, ResolveNth resolve) {
  reclaimed_columns_.clear();
  row_puts_.Clear();
  looks_at_families_ = true;
  looked_at_ = nullptr;
  Status status;
  for (size_t i = 0; i < count && status.ok(); ++i) {
    status = resolve(i);
    if (status.ok()) [[likely]]
      row_puts_.Add(put_, mutation_->payload());
  }
  looks_at_families_ = false;
  if (status.ok() && !table_->has_indexes() && row_puts_.Finish())
    row_puts_end_ = mutation_->size();
  return status;
}

Status RowResolver::ResolvePuts(const Table& table, std::string_view row,
                                std::span<const std::string_view> cells,
                                const WriteContext& context, MutationBuilder* mutation) {
  CELLAR_DEBUG_ASSERT(cells.size() % 2 == 0);
  CELLAR_DEBUG_ASSERT(cells.size() / 2 <= kCellOpsMax);
  const auto resolve = [&](size_t i) __attribute__((always_inline)) {
    return ResolvePlainPut(cells[2 * i], cells[2 * i + 1]);
  };
  return ResolveEach(table, row, cells.size() / 2, context, mutation, resolve);
}

Status RowResolver::ResolvePuts(const Table& table, const RowWrite& write,
                                const WriteContext& context, MutationBuilder* mutation) {
  CELLAR_DEBUG_ASSERT(write.IsPlainPut());
  if (write.ops.size() > kCellOpsMax) return Check(table.schema(), write, context);
  const auto resolve = [&](size_t i) __attribute__((always_inline)) {
    return ResolvePlainPut(write.ops[i], write.ops[i]);
  };
  arrivals_.Begin();
  RETURN_IF_ERROR(ResolveEach(table, write.row, write.ops.size(), context, mutation, resolve));
  arrivals_.Keep();
  return Status::Ok();
}

// Conditions are compiled with the view's schema, which lacks the families that the writer may not
// read. The ops are checked with the table's own.
CELLAR_INLINE void RowResolver::BeginView(const Table& table, const RowWrite& write,
                                          const WriteContext& context) {
  own_view_.Bind(table, context.now_micros);
  if (write.access != nullptr) own_view_.Restrict(*write.access);
  table_ = &table;
  view_ = &own_view_;
}

Status RowResolver::CheckRequest(const Table& table, const RowWrite& write,
                                 const WriteContext& context) {
  BeginView(table, write, context);
  return Check(table.schema(), write, context);
}

// The general way, in four steps: the row's key, if it is known already; the check; the decision,
// which chooses between ops and else_ops; and then the chosen ops, one by one. A record number
// (`*`) is given only when it is sure that the write happens, so a refused one leaves no gap. A
// failed op takes back what the ops before it did, in the table and in the mutation.
Status RowResolver::Resolve(Table& table, const RowWrite& write, const WriteContext& context,
                            Known known, const Resolution& to) {
  const auto& [mutation, result, outcome] = to;
  BeginView(table, write, context);
  const ReadView& view = own_view_;
  ForgetRow();
  if (!write.allocates || !table.schema().key.is_recno()) {
    RETURN_IF_ERROR(BeginRow(table, write.row));
  }
  if (known == Known::kNo) RETURN_IF_ERROR(Check(table.schema(), write, context));
  context_ = &context;
  mutation_ = mutation;
  stamp_used_ = false;
  made_versions_.clear();
  result->row.clear();
  const Order& key = table.schema().key;
  uint64_t record_number_next = 0;
  if (write.existence == RowWrite::Existence::kAny && write.conditions.empty()) {
    result->conditions_held = true;
  } else if (put_.row_bytes == 0 && !write.conditions.empty()) {
    // Conditions are asked of the row that `*` would make: it has no cell.
    EncodeRecno(key, kTimestampMax);
    ASSIGN_OR_RETURN(result->conditions_held, Decide(table, write, view));
    ForgetRow();
    if (write.existence == RowWrite::Existence::kXx) result->conditions_held = false;
  } else {
    ASSIGN_OR_RETURN(result->conditions_held, Decide(table, write, view));
  }
  const size_t first = result->conditions_held ? 0 : ops_checked_;
  const size_t count = result->conditions_held ? ops_checked_ : else_ops_checked_;
  result->BeginOps(count);
  if (count == 0) return Status::Ok();
  if (put_.row_bytes == 0) {
    EncodeRecno(key, kTimestampMax);
    RETURN_IF_ERROR(table.CheckOwned(row_key()));
    record_number_next = RecordNumberNext(table);
    if (record_number_next > static_cast<uint64_t>(kTimestampMax)) {
      return Status::Error(ErrorCode::kErr,
                           "no record number is left in table '" + table.name() + "'");
    }
    EncodeRecno(key, static_cast<int64_t>(record_number_next));
    RETURN_IF_ERROR(table.CheckOwned(row_key()));
    result->row = FormatUint64(record_number_next);
  } else if (key.is_recno()) {
    record_number_next = static_cast<uint64_t>(key.DecodeRecno(row_key()));
  }
  const size_t mark = BeginPart();
  arrivals_.Begin();
  Status status = ResolveOps(&table, first, count, result, outcome);
  if (!status.ok()) {
    if (outcome->applied) table.RollBackTo(*outcome->checkpoint);
    mutation->Truncate(mark);
    return status;
  }
  if (key.is_recno() && record_number_next >= table.counters().record_number_next &&
      std::any_of(checked_.begin() + static_cast<ptrdiff_t>(first),
                  checked_.begin() + static_cast<ptrdiff_t>(first + count),
                  [](const CheckedOp& op) { return NamesColumn(op.op->kind); })) {
    // The counter moves behind the largest number in use, so that `*` never meets a row that a
    // client has numbered. A delete makes no row, so it moves nothing. What is applied already must
    // not be applied twice, hence a part of its own.
    const size_t before = outcome->applied ? BeginPart() : mutation->size();
    mutation->RecordNumber(table.id(), record_number_next + 1);
    if (outcome->applied) ApplySince(before);
  }
  outcome->used_stamp = stamp_used_;
  arrivals_.Keep();
  return Status::Ok();
}

// A row key made of a number, at the front of cell_key_ like any other.
void RowResolver::EncodeRecno(const Order& key, int64_t number) {
  std::string encoded;
  key.EncodeRecno(number, &encoded);
  CopyBytes(cell_key_.get(), encoded.data(), encoded.size());
  put_.row_bytes = encoded.size();
}

// Ops that have been resolved a moment ago fit the table: if they do not, that is a bug.
void RowResolver::ApplySince(size_t mark) {
  const Status applied = engine_.ApplyOps(mutation_->Since(mark));
  CELLAR_ASSERT(applied.ok());
}

// Ops of which one may read what another one wrote are applied one by one, on a checkpoint that
// undoes them. Puts and folds read nothing (blind), so they need no checkpoint and are applied
// together by the caller; what they have folded is remembered in pending_.
Status RowResolver::ResolveOps(Table* table, size_t first, size_t count, RowWriteResult* result,
                               Outcome* outcome) {
  const auto end = checked_.begin() + static_cast<ptrdiff_t>(first + count);
  const auto begin = checked_.begin() + static_cast<ptrdiff_t>(first);
  const bool one_by_one = count > 1 && std::any_of(begin, end, [](const CheckedOp& op) {
                            return !CellOp::IsBlind(op.op->kind);
                          });
  has_pending_ = count > 1 && !one_by_one;
  pending_.clear();
  if (one_by_one) {
    outcome->checkpoint = std::make_unique<Table::Checkpoint>(table->TakeCheckpoint());
    outcome->applied = true;
  }
  several_ops_ = count > 1;
  reclaimed_columns_.clear();
  for (size_t i = 0; i < count; ++i) {
    const CheckedOp& op = checked_[first + i];
    const size_t mark = one_by_one ? BeginPart() : mutation_->size();
    // Each op is a step of its own here: retention may drop what the one before has pushed out.
    if (one_by_one) reclaimed_columns_.clear();
    RETURN_IF_ERROR(ResolveOp(op, &result->results[i]));
    if (one_by_one) ApplySince(mark);
  }
  return Status::Ok();
}

Status RowResolver::ResolveOp(const CheckedOp& op, CellOpResult* result) {
  result->kind = op.op->kind;
  switch (op.op->kind) {
    case CellOp::Kind::kPut:
      ResolvePut(op);
      return Status::Ok();
    case CellOp::Kind::kDelete:
      ResolveDelete(op, result);
      return Status::Ok();
    case CellOp::Kind::kDeleteRow:
      ResolveDeleteRow(op, result);
      return Status::Ok();
    case CellOp::Kind::kIncrement:
    case CellOp::Kind::kIncrementFloat:
    case CellOp::Kind::kIncrementAny:
      return ResolveIncrement(op, result);
    case CellOp::Kind::kAppend:
      return ResolveAppend(op, result);
    case CellOp::Kind::kAdd:
    case CellOp::Kind::kMerge:
      return ResolveFold(op, result);
  }
  return Status::Ok();
}

// A column with one version is the usual case and needs no cursor; from the second one on there is
// one.
std::optional<BTree::Match> RowResolver::NextVersion(const BTree::Match& version,
                                                     uint64_t rank) const {
  if (version.is_only) return std::nullopt;
  BTreeCursor& at = table_->cursor(put_.family->group);
  // The first version came from FindFirst, which moves no cursor.
  if (rank == 1) at.Seek(column());
  at.Next();
  if (!at.valid() || at.shared_with_last() < put_.column_bytes) return std::nullopt;
  return BTree::Match{at.key().substr(put_.column_bytes), at.value()};
}

// The newest version is found without a cursor; with most columns there is no other.
std::optional<RowResolver::OldVersion> RowResolver::WalkColumn(Newest newest) {
  const FamilySchema& family = *put_.family;
  const std::string_view column = this->column();
  VersionWalk walk(family.policy, table_->family_is_all_live(family), context_->now_micros);
  std::optional<OldVersion> found;
  bool wanted = newest == Newest::kRead;
  bool reclaims = false;
  ColumnVersions versions;
  versions.walked = true;
  newest_.reset();
  for (std::optional<BTree::Match> version =
           table_->tree(family.group).FindFirst(column, &version_key_, &place_);
       version; version = NextVersion(*version, walk.rank())) {
    walk.Count();
    OldVersion read;
    read.timestamp_micros = StoredTimestamp(version->key_rest);
    ReadStoredHead(version->value, &read.value);
    const Fate fate = walk.FateOf(read.timestamp_micros, read.value.expiry_micros);
    if (fate != Fate::kLive) {
      if (!reclaims && (!several_ops_ || reclaimed_columns_.emplace(column).second)) {
        mutation_->Row(table_->id(), row_key());
        mutation_->ReclaimColumn(family.id, qualifier(), context_->now_micros);
        row_puts_.MarkIncomplete();
      }
      reclaims = true;
      if (fate == Fate::kAllDropped) break;
    } else if (wanted &&
               (wanted_micros_ == kNoVersion || wanted_micros_ == read.timestamp_micros)) {
      wanted = false;
      ReadStoredCell(version->value, &plain_, &read.value);
      value_.assign(read.value.stored);
      read.value.stored = value_;
      found = read;
    }
    if (walk.rank() == 1) {
      versions.newest_micros = read.timestamp_micros;
      if (engine_.tells_old()) [[unlikely]]
        newest_ = version;
    }
    versions.oldest_micros = read.timestamp_micros;
    // Nothing else has to be known then: the reclaim op names no versions, and whoever applies it
    // finds them.
    if (!wanted && (reclaims || walk.all_live())) break;
  }
  versions.full = !reclaims && walk.rank() == family.policy.rank_kept_max();
  versions.keeps_no_older = walk.rank() >= family.policy.rank_kept_max();
  column_versions_ = versions;
  return found;
}

// The newest version of the column is looked for here if no walk of it has met that.
bool RowResolver::TakeOldOfLonePut(PreImages* pre_images) {
  if (!is_lone_put()) return false;
  if (!column_versions_.walked) {
    newest_ = table_->tree(put_.family->group).FindFirst(column(), &version_key_, &place_);
    int64_t timestamp = kNoVersion;
    // The look also finds the place of the put, unless that is older than what stands there.
    if (newest_) timestamp = StoredTimestamp(newest_->key_rest);
    put_.place = timestamp < put_.timestamp ? &place_ : nullptr;
  }
  const BTree::Match met = newest_.value_or(BTree::Match{});
  pre_images->TakeLonePut(put_, *table_, met.key_rest, met.value);
  return true;
}

void RowResolver::ResolvePut(const CheckedOp& op) {
  SetColumn(op);
  ReclaimColumn();
  const int64_t timestamp = TimestampIn(*op.family, op.op->timestamp_micros);
  if (op.op->timestamp_micros)
    WatchArrival(*op.op, timestamp, ExpiryOf(*op.op, context_->now_micros));
  CopyBytes(BeginVersion(timestamp, op.cell_value.size()), op.cell_value.data(),
            op.cell_value.size());
  // A fold behind it in the same command must meet this put, which no tree holds yet.
  if (has_pending_ && op.family->fold != FoldKind::kNone)
    pending_.insert_or_assign(std::string(put_.cell_key()), op.cell_value);
}

void RowResolver::ResolveDelete(const CheckedOp& op, CellOpResult* result) {
  for (const ColumnSet::Family& columns : op.columns.families()) {
    const FamilySchema& family = table_->schema().families[columns.index];
    if (columns.whole) {
      result->count += DeleteCells(family, KeyRange{}, op.op->time);
    }
    for (const KeyRange& range : columns.ranges) {
      result->count += DeleteCells(family, range, op.op->time);
    }
  }
}

void RowResolver::ResolveDeleteRow(const CheckedOp& op, CellOpResult* result) {
  for (const FamilySchema& family : table_->schema().families) {
    result->count += DeleteCells(family, KeyRange{}, op.op->time);
  }
}

// Deletes the cells of `family` in a range of qualifiers and of time; how many were live. Three
// cases, from cheap to dear: all that is stored is live and no time is given: it is counted and one
// op deletes the range. Retention may have dropped some: each is looked at, so that only live ones
// are counted, and one op deletes the range. A time is given: each doomed version gets an op of its
// own, and a column that also holds dropped ones is reclaimed first, so that none of them comes
// back into view when newer ones go.
uint64_t RowResolver::DeleteCells(const FamilySchema& family, const KeyRange& range,
                                  const TimeRange& time) {
  if (range.empty() || view_->entries(family.group) == 0) return 0;
  key_.assign(row_key());
  PutFamilyId(&key_, family.id);
  const size_t family_bytes = key_.size();
  std::string end_key = key_;
  if (range.end.at_end) {
    KeyBound end = Successor(end_key);
    end_key = end.at_end ? std::string() : end.bytes;
  } else {
    end_key += range.end.bytes;
  }
  key_ += range.begin.bytes;
  const bool live = view_->all_live(family);
  uint64_t deleted = 0;
  uint64_t stored = 0;
  VersionWalk walk(family.policy, live, context_->now_micros);
  bool reclaimed = false;
  std::string column;  // family id excluded: the encoded qualifier at hand
  std::vector<int64_t> doomed;
  // Ops of one column follow one another in the log, so its doomed versions wait for its end.
  const auto end_column = [&] {
    for (const int64_t timestamp : doomed) {
      mutation_->Row(table_->id(), row_key());
      mutation_->DeleteCell(family.id, column, timestamp);
    }
    doomed.clear();
  };
  BTreeCursor& at = view_->cursor(family.group);
  for (at.Seek(key_); at.valid() && (end_key.empty() || at.key() < end_key); at.Next(), ++stored) {
    if (live && time.all()) {
      ++deleted;
      continue;
    }
    const std::string_view rest = at.key().substr(family_bytes);
    const size_t qualifier_bytes = family.order.EncodedSize(rest);
    CELLAR_ASSERT(qualifier_bytes > 0);
    if (stored == 0 || rest.substr(0, qualifier_bytes) != column) {
      end_column();
      column.assign(rest.substr(0, qualifier_bytes));
      walk.BeginColumn();
      reclaimed = false;
    }
    walk.Count();
    const int64_t timestamp = StoredTimestamp(rest.substr(qualifier_bytes));
    CellValue cell;
    ReadStoredHead(at.value(), &cell);
    if (walk.FateOf(timestamp, cell.expiry_micros) != Fate::kLive) {
      if (!reclaimed && !time.all()) {
        mutation_->Row(table_->id(), row_key());
        mutation_->ReclaimColumn(family.id, column, context_->now_micros);
        reclaimed = true;
      }
      continue;
    }
    if (timestamp < time.min_micros || timestamp > time.max_micros) continue;
    ++deleted;
    if (!time.all()) doomed.push_back(timestamp);
  }
  end_column();
  if (time.all() && stored > 0) {
    const bool whole = range.begin.bytes.empty() && range.end.at_end;
    const KeyRange told =
        engine_.feeds().empty() || whole ? range : StoredQualifiers(family, family_bytes, end_key);
    mutation_->Row(table_->id(), row_key());
    mutation_->DeleteRange(family.id, told.begin.bytes,
                           told.end.at_end ? std::string_view() : told.end.bytes);
  }
  return deleted;
}

// Feeds tell of ranges in qualifiers, which not every bound of a range has: the smallest one that
// has all that is stored from key_ to `end_key`.
KeyRange RowResolver::StoredQualifiers(const FamilySchema& family, size_t family_bytes,
                                       const std::string& end_key) {
  BTreeCursor& at = view_->cursor(family.group);
  const auto qualifier = [&] {
    const std::string_view rest = at.key().substr(family_bytes);
    return std::string(rest.substr(0, family.order.EncodedSize(rest)));
  };
  at.Seek(key_);
  std::string first = qualifier();
  if (end_key.empty()) {
    at.SeekLast();
  } else {
    at.SeekBefore(end_key);
  }
  return {{std::move(first), false}, Successor(qualifier())};
}

// The new version has the stamp, or is a microsecond younger than the old one, which a client may
// have dated ahead of the clock. A second op on the column replaces the version that the first one
// made. With BUCKET it goes to the beginning of its bucket, and replaces a version that is there.
// The expiry is that of the old version: to increment a cell does not prolong its life.
Status RowResolver::PutNext(const CheckedOp& op, const std::optional<OldVersion>& old,
                            ValueType type, std::string_view stored) {
  MadeVersion* const made = several_ops_ ? FindMadeVersion(op) : nullptr;
  stamp_used_ = true;
  int64_t timestamp = context_->stamp_micros;
  if (made != nullptr && old && old->timestamp_micros == made->timestamp_micros) {
    timestamp = made->timestamp_micros;
  } else if (old) {
    if (old->timestamp_micros == kTimestampMax) {
      return Status::Error(ErrorCode::kErr, "the newest version of column " +
                                                Quote(ColumnText(*op.op)) +
                                                " has the largest possible timestamp");
    }
    timestamp = std::max(timestamp, old->timestamp_micros + 1);
  }
  timestamp = BucketBegin(timestamp, op.family->bucket_ms);
  if (made != nullptr) made->timestamp_micros = timestamp;
  PutVersion(timestamp, {.type = type,
                         .expiry_micros = old ? old->value.expiry_micros : kNoExpiry,
                         .stored = stored});
  return Status::Ok();
}

// What is remembered of the op's column; a new one has made no version yet.
RowResolver::MadeVersion* RowResolver::FindMadeVersion(const CheckedOp& op) {
  std::string column;
  PutFamilyId(&column, op.family->id);
  column.append(op.qualifier);
  const auto made = std::find_if(made_versions_.begin(), made_versions_.end(),
                                 [&](const MadeVersion& m) { return m.column == column; });
  if (made != made_versions_.end()) return &*made;
  return &made_versions_.emplace_back(MadeVersion{std::move(column), kNoVersion});
}

// The type of the sum is decided before the addition. The column's, if one is declared; else that
// of the cell that is there; else of the first delta. Text counts as a number only where no type is
// declared, as in Redis: then an integer stays one, and a fraction makes the sum a float. A
// cell that does not exist counts as zero of that type.
Status RowResolver::ResolveIncrement(const CheckedOp& op, CellOpResult* result) {
  if (op.family->fold != FoldKind::kNone) return ResolveFold(op, result);
  SetColumn(op);
  const std::optional<OldVersion> old = WalkColumn(Newest::kRead);
  const std::optional<ValueType> declared = TypeOf(*op.family, op.qualifier);
  const TextCells text_cells = declared ? TextCells::kRefuse : TextCells::kCount;
  bool as_float = op.op->kind == CellOp::Kind::kIncrementFloat;
  ValueType type = declared.value_or(ValueType::kI64);
  if (old) {
    type = old->value.type;
  } else {
    ValueBuffer zero;
    std::string_view stored;
    if (!declared) {
      const bool whole =
          op.op->kind == CellOp::Kind::kIncrement ||
          (op.op->kind == CellOp::Kind::kIncrementAny && op.delta_kind == TextNumber::kInteger);
      type = whole ? ValueType::kI64 : ValueType::kF64;
    }
    if (IsNumericType(type)) RETURN_IF_ERROR(ParseValue(type, "0", &zero, &stored));
    value_.assign(stored);
  }
  if (op.op->kind == CellOp::Kind::kIncrementAny) {
    as_float =
        IsFloatType(type) || (IsTextType(type) && (op.delta_kind == TextNumber::kFloat ||
                                                   ClassifyNumber(value_) == TextNumber::kFloat));
    const bool counts_integer =
        IsIntegerType(type) || (IsTextType(type) && !declared && !as_float &&
                                ClassifyNumber(value_) == TextNumber::kInteger);
    if (counts_integer && (op.delta_kind != TextNumber::kInteger || !op.delta_fits)) {
      return Status::Error(ErrorCode::kErr,
                           "value is not an integer or out of range: " + Quote(op.op->text) +
                               " for column " + Quote(ColumnText(*op.op)));
    }
  }
  StoredValue sum;
  Status added = as_float ? AddFloat(type, value_, op.delta_float, text_cells, &sum)
                          : AddInteger(type, value_, op.delta, text_cells, &sum);
  if (!added.ok()) [[unlikely]] {
    if (added.code() != ErrorCode::kWrongType) {
      const ValueType sum_type = as_float ? ValueType::kF64 : ValueType::kI64;
      return SumTooLarge(*op.op, IsTextType(type) ? sum_type : type, added);
    }
    return Status::Error(added.code(), "column " + Quote(ColumnText(*op.op)) + " " + added.text());
  }
  result->type = sum.type;
  result->stored.assign(sum.stored);
  return PutNext(op, old, sum.type, sum.stored);
}

// The new value is checked as a put of it would be: a string must still be UTF-8 behind the append,
// and no longer than max-value-bytes.
Status RowResolver::ResolveAppend(const CheckedOp& op, CellOpResult* result) {
  SetColumn(op);
  const std::optional<OldVersion> old = WalkColumn(Newest::kRead);
  const ValueType declared = TypeOf(*op.family, op.qualifier).value_or(ValueType::kBytes);
  const ValueType type = old ? old->value.type : declared;
  if (!IsTextType(type)) {
    return Status::Error(ErrorCode::kWrongType, "column " + Quote(ColumnText(*op.op)) + " holds " +
                                                    std::string(ValueTypeName(type)) +
                                                    ", APPEND takes bytes and string");
  }
  if (!old) value_.clear();
  value_.append(op.op->text);
  if (value_.size() > context_->value_bytes_max) {
    return ValueTooLarge(value_.size(), *op.op, context_->value_bytes_max);
  }
  ValueBuffer buffer;
  std::string_view stored;
  if (const Status status = ParseValue(type, value_, &buffer, &stored); !status.ok()) {
    return RefusedByColumn(*op.op, status);
  }
  result->count = value_.size();
  return PutNext(op, old, type, value_);
}

}  // namespace cellar
