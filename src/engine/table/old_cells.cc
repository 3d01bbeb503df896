// See old_cells.h.
#include "engine/table/old_cells.h"

#include "engine/keys/timestamp.h"
#include "engine/table/engine.h"
#include "engine/table/read_view.h"
#include "engine/table/table.h"

namespace cellar {
namespace {

// The first key behind all that begin with `prefix`; empty: none is.
std::string EndOf(std::string_view prefix) {
  const KeyBound end = Successor(prefix);
  return end.at_end ? std::string() : end.bytes;
}

std::string ColumnKey(std::string_view row_key, uint32_t family_id, std::string_view qualifier) {
  std::string key(row_key);
  PutFamilyId(&key, family_id);
  key += qualifier;
  return key;
}

}  // namespace

void OldCells::Add(OldCellKind kind, std::string_view key, std::string_view value) {
  list_.push_back(static_cast<char>(kind));
  PutLengthPrefixed(&list_, key);
  PutLengthPrefixed(&list_, value);
  ++list_cells_;
}

void OldCells::TakeNewest(const DecodedOp& op, const Table& table, std::string_view row_key) {
  const FamilySchema* family = table.schema().FindFamilyById(static_cast<uint32_t>(op.id));
  const ReadView view(table, now_micros_);
  const std::optional<CellRead> cell = view.ReadCell(row_key, *family, op.first, kTimestampMax);
  if (!cell) return;
  std::string value;
  PutCellValue(&value, cell->value);
  Add(OldCellKind::kNewest, cell->version, value);
}

void OldCells::TakeReplaced(const DecodedOp& op, const Table& table, std::string_view row_key) {
  const FamilySchema* family = table.schema().FindFamilyById(static_cast<uint32_t>(op.id));
  key_ = ColumnKey(row_key, family->id, op.first);
  const size_t column_bytes = key_.size();
  PutTimestamp(&key_, static_cast<int64_t>(op.replaced));
  const std::optional<std::string_view> value = table.tree(family->group).Get(key_);
  if (value) Add(OldCellKind::kReclaimed, std::string_view(key_).substr(column_bytes), *value);
}

// What stands in [begin, end) of a group's tree, which cuts through no column.
void OldCells::TakeRange(const Table& table, size_t group, std::string_view begin,
                         std::string_view end, size_t prefix_bytes) {
  const TableSchema& schema = table.schema();
  BTreeCursor& at = table.cursor(group);
  std::string column;
  const FamilySchema* family = nullptr;
  uint64_t rank = 0;
  for (at.Seek(begin); at.valid() && (end.empty() || at.key() < end); at.Next()) {
    const std::string_view key = at.key();
    if (column.empty() || !key.starts_with(column)) {
      const size_t row_bytes = schema.key.EncodedSize(key);
      uint32_t id = 0;
      const size_t id_bytes = DecodeFamilyId(key.substr(row_bytes), &id);
      family = schema.FindFamilyById(id);
      const size_t family_bytes = row_bytes + id_bytes;
      column.assign(key.substr(0, family_bytes));
      if (family != nullptr) {
        column.assign(
            key.substr(0, family_bytes + family->order.EncodedSize(key.substr(family_bytes))));
      }
      rank = 0;
    }
    if (family == nullptr) continue;  // gone with its family
    ++rank;
    int64_t timestamp = 0;
    CellValue cell;
    if (!LoadTimestamp(key.substr(column.size()), &timestamp) ||
        !DecodeCellValue(at.value(), &cell)) {
      continue;
    }
    const bool dropped = family->policy.Drops(rank, timestamp, cell.expiry_micros, now_micros_);
    Add(dropped ? OldCellKind::kReclaimed : OldCellKind::kRemoved, key.substr(prefix_bytes),
        at.value());
  }
}

// Of kDeleteCell that version; of kReclaimColumn those that go.
void OldCells::TakeColumn(const DecodedOp& op, const Table& table, std::string_view row_key) {
  const FamilySchema* family = table.schema().FindFamilyById(static_cast<uint32_t>(op.id));
  const bool reclaims = op.op == MutationOp::kReclaimColumn;
  key_ = ColumnKey(row_key, family->id, op.first);
  BTreeCursor& at = table.cursor(family->group);
  uint64_t rank = 0;
  for (at.Seek(key_); at.valid() && at.key().starts_with(key_); at.Next()) {
    ++rank;
    const std::string_view version = at.key().substr(key_.size());
    int64_t timestamp = 0;
    CellValue cell;
    if (!LoadTimestamp(version, &timestamp) || !DecodeCellValue(at.value(), &cell)) continue;
    const int64_t now = reclaims ? static_cast<int64_t>(op.number) : now_micros_;
    const bool dropped = family->policy.Drops(rank, timestamp, cell.expiry_micros, now);
    if (reclaims ? dropped : timestamp == static_cast<int64_t>(op.number)) {
      Add(dropped ? OldCellKind::kReclaimed : OldCellKind::kRemoved, version, at.value());
    }
  }
}

// The cells of the family, or of a range of it; behind the row's key without a range.
void OldCells::TakeFamily(const FamilySchema& family, const Table& table, std::string_view row_key,
                          const DecodedOp* range) {
  const std::string prefix = ColumnKey(row_key, family.id, {});
  std::string begin = prefix;
  std::string end = EndOf(prefix);
  if (range != nullptr) {
    begin += range->first;
    if (!range->second.empty()) end = prefix + std::string(range->second);
  }
  TakeRange(table, family.group, begin, end, range == nullptr ? row_key.size() : prefix.size());
}

void OldCells::Take(const DecodedOp& op, const Table* table, std::string_view row_key) {
  const bool is_change = op.op != MutationOp::kStep && op.op != MutationOp::kTable &&
                         op.op != MutationOp::kRow && op.op != MutationOp::kOldCells;
  if (!is_change) return;
  const uint64_t index = ops_++;
  if (table == nullptr) return;
  list_.clear();
  list_cells_ = 0;
  switch (op.op) {
    case MutationOp::kReplace:
      TakeReplaced(op, *table, row_key);
      TakeNewest(op, *table, row_key);
      break;
    case MutationOp::kPut:
      TakeNewest(op, *table, row_key);
      break;
    case MutationOp::kDeleteCell:
    case MutationOp::kReclaimColumn:
      TakeColumn(op, *table, row_key);
      break;
    case MutationOp::kDeleteRange:
      TakeFamily(*table->schema().FindFamilyById(static_cast<uint32_t>(op.id)), *table, row_key,
                 &op);
      break;
    case MutationOp::kDeleteRow:
      for (const FamilySchema& family : table->schema().families)
        TakeFamily(family, *table, row_key, nullptr);
      break;
    case MutationOp::kDeleteRows:
      for (size_t group = 0; group < table->groups(); ++group)
        TakeRange(*table, group, op.first, op.second, 0);
      break;
    default:
      break;
  }
  if (list_cells_ == 0) return;
  cells_ += list_cells_;
  PutVarint64(&lists_, index);
  PutVarint64(&lists_, list_cells_);
  lists_ += list_;
}

Status OldCells::TakeAll(std::string_view ops, const Table& table) {
  MutationReader reader(ops);
  DecodedOp op;
  std::string_view row_key;
  while (reader.Next(&op)) {
    if (op.op == MutationOp::kRow) row_key = op.first;
    Take(op, &table, row_key);
  }
  return reader.status();
}

}  // namespace cellar
