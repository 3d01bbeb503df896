// See mutation_check.h.
#include "engine/state/mutation_check.h"

#include <algorithm>

#include "base/text/quote.h"
#include "engine/keys/hyperloglog.h"
#include "engine/state/engine.h"

namespace cellar {
namespace {

// Ids are given out one by one, so none is near the end of its range.
constexpr uint64_t kIdMax{uint64_t{1} << 48};
// The next stamps have to be larger.
constexpr int64_t kStampMax{INT64_MAX - (int64_t{1} << 40)};
constexpr uint64_t kTimestampLast{static_cast<uint64_t>(INT64_MAX)};

Status Wrong(std::string what) {
  return Status::Error(ErrorCode::kCorruption, "a mutation has " + std::move(what));
}

Status WrongIn(std::string what, const Table& table) {
  return Wrong(std::move(what) + " in table " + Quote(table.name()));
}

bool SameOrder(const FamilySchema& a, const FamilySchema& b) {
  const bool same_type = a.fold == FoldKind::kNone || a.type == b.type;
  return a.order == b.order && a.group == b.group && a.fold == b.fold &&
         a.bucket_ms == b.bucket_ms && same_type;
}

bool SameColumn(const IndexColumn& a, const IndexColumn& b) {
  return a.family_id == b.family_id && a.whole_family == b.whole_family &&
         a.qualifier == b.qualifier && a.type == b.type && a.descending == b.descending;
}

bool SameColumns(const std::vector<IndexColumn>& a, const std::vector<IndexColumn>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameColumn);
}

bool SameDefinition(const IndexSchema& a, const IndexSchema& b) {
  return a.unique == b.unique && SameColumns(a.on, b.on) && SameColumns(a.include, b.include);
}

// Does `now` go on from `before`: what has an id keeps what the id stands for, and new ids are new?
bool GoesOnFrom(const TableSchema& before, const TableSchema& now) {
  if (!(now.key == before.key) || now.groups.size() < before.groups.size()) return false;
  if (now.family_id_next < before.family_id_next) return false;
  if (now.index_id_next < before.index_id_next) return false;
  for (size_t i = 0; i < before.groups.size(); ++i) {
    if (now.groups[i].tree_id != before.groups[i].tree_id) return false;
  }
  const auto family_fits = [&](const FamilySchema& family) {
    const FamilySchema* old = before.FindFamilyById(family.id);
    return old == nullptr ? family.id >= before.family_id_next : SameOrder(family, *old);
  };
  const auto index_fits = [&](const IndexSchema& index) {
    const auto old =
        std::find_if(before.indexes.begin(), before.indexes.end(),
                     [&index](const IndexSchema& other) { return other.id == index.id; });
    return old == before.indexes.end() ? index.id >= before.index_id_next
                                       : SameDefinition(index, *old);
  };
  return std::all_of(now.families.begin(), now.families.end(), family_fits) &&
         std::all_of(now.indexes.begin(), now.indexes.end(), index_fits);
}

// The schema that an op carries, nothing behind it.
Result<TableSchema> SchemaOf(std::string_view bytes) {
  TableSchema schema;
  RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
  if (!bytes.empty()) return Wrong("a schema with something behind it");
  return schema;
}

}  // namespace

bool IsBoundOf(const Order& order, std::string_view bound) {
  const size_t key_bytes = order.EncodedSize(bound);
  return key_bytes == 0 || key_bytes == bound.size();
}

bool IsCellValue(std::string_view bytes) {
  thread_local PlainValue plain;
  CellValue cell;
  if (!DecodeCellValue(bytes, &plain, &cell)) return false;
  const auto head = static_cast<uint8_t>(bytes[0]);
  if ((head & ~(kCellTypeMask | kCellFlags)) != 0) return false;
  if ((head & kCellCompressed) != 0 && !IsTextType(cell.type)) return false;
  const bool says_expiry = (head & kCellHasExpiry) != 0;
  if (says_expiry && (cell.expiry_micros <= 0 || cell.expiry_micros == kNoExpiry)) return false;
  const bool is_valid = StoredValueIsValid(cell.type, cell.stored);
  plain.Trim();
  return is_valid;
}

bool IsValueOf(const FamilySchema& family, std::string_view cell_value) {
  // Most are bytes that may be anything, and have no flags.
  constexpr auto kPlainBytes = static_cast<char>(ValueType::kBytes);
  if (cell_value.starts_with(kPlainBytes) && family.fold == FoldKind::kNone) [[likely]]
    return true;
  CellValue cell;
  if (!IsCellValue(cell_value) || !DecodeCellHead(cell_value, &cell)) return false;
  if (family.compression == Compression::kNever && CellHasFlags(cell_value, kCellCompressed))
    return false;
  if (family.is_hll()) return cell.type == ValueType::kHll;
  return cell.type != ValueType::kHll &&
         (family.fold == FoldKind::kNone || cell.type == *family.type);
}

// A key is what its own text is encoded to. Where the encoding is the text and a terminator, its
// shape alone says so.
bool MutationCheck::IsKey(const Order& order, std::string_view encoded, size_t text_bytes_max) {
  if (encoded.empty() || encoded.size() > Order::EncodedBytesMax(text_bytes_max)) return false;
  if (order.is_plain_bytes()) return order.EncodedSize(encoded) == encoded.size();
  text_.clear();
  encoded_.clear();
  return order.Decode(encoded, &text_) && order.Encode(text_, &encoded_).ok() &&
         encoded_ == encoded;
}

Status MutationCheck::CheckStamp(int64_t stamp) const {
  return stamp <= kStampMax ? Status::Ok() : Wrong("a stamp at the end of time");
}

// Before each op of a record from a log: what does not pass no client can have made. What the
// engine checks itself when it applies the op is not asked twice.
Status MutationCheck::Check(const DecodedOp& op, const Table* table) {
  switch (op.op) {
    case MutationOp::kRow:
    case MutationOp::kDeleteRows:
    case MutationOp::kRecordNumber:
      return table == nullptr ? Status::Ok() : CheckRow(op, *table);
    case MutationOp::kPut:
    case MutationOp::kReplace:
    case MutationOp::kAddInput:
    case MutationOp::kMergeState:
    case MutationOp::kDeleteCell:
    case MutationOp::kDeleteRange:
    case MutationOp::kReclaimColumn:
      return table == nullptr ? Status::Ok() : CheckCell(op, *table);
    case MutationOp::kRewrites:
      return op.number <= static_cast<uint64_t>(MutationBuilder::Edge::kBegin)
                 ? Status::Ok()
                 : Wrong("an edge of rewrites that is neither");
    case MutationOp::kCreateKeyspace:
      return IsName(op.first) ? Status::Ok() : Wrong("an impossible name of a keyspace");
    case MutationOp::kRenameTable:
      return IsName(op.second) ? Status::Ok() : Wrong("an impossible name of a table");
    case MutationOp::kCreateTable:
      return CheckNewTable(op);
    case MutationOp::kSetSchema:
      return CheckNewSchema(op);
    case MutationOp::kTruncateTable:
      return op.number >= engine_.tree_id_next() && op.number < kIdMax
                 ? Status::Ok()
                 : Wrong("the number of a tree that is not free");
    default:
      return Status::Ok();
  }
}

Status MutationCheck::CheckRow(const DecodedOp& op, const Table& table) {
  const Order& key = table.schema().key;
  if (op.op == MutationOp::kRecordNumber) {
    const bool fits = key.is_recno() && op.number > 0 && op.number <= kTimestampLast + 1;
    return fits ? Status::Ok() : WrongIn("an impossible record number", table);
  }
  if (op.op == MutationOp::kDeleteRows) {
    const bool fits = IsBoundOf(key, op.first) && IsBoundOf(key, op.second) &&
                      (op.second.empty() || op.first < op.second);
    return fits ? Status::Ok() : WrongIn("a range that is none of rows", table);
  }
  return IsKey(key, op.first, kRowKeyBytesMax) ? Status::Ok()
                                               : WrongIn("a malformed row key", table);
}

// A cell's qualifier, bounds or value as this version would have encoded them.
Status MutationCheck::CheckCell(const DecodedOp& op, const Table& table) {
  if (op.id > UINT32_MAX) return Status::Ok();  // told by whoever applies it
  const FamilySchema* family = table.schema().FindFamilyById(static_cast<uint32_t>(op.id));
  if (family == nullptr) return Status::Ok();
  if (op.op == MutationOp::kDeleteRange) {
    const bool fits = IsBoundOf(family->order, op.first) && IsBoundOf(family->order, op.second);
    return fits ? Status::Ok() : WrongIn("a range that is none of columns", table);
  }
  if (!IsKey(family->order, op.first, kQualifierBytesMax)) {
    return WrongIn("a malformed qualifier of family '" + family->name + "'", table);
  }
  const bool puts = op.op == MutationOp::kPut || op.op == MutationOp::kReplace;
  const bool merges = op.op == MutationOp::kMergeState;
  if ((merges || op.op == MutationOp::kAddInput) &&
      (!family->is_hll() || (merges && !HllIsCanonical(op.second)))) {
    return WrongIn("an input that family '" + family->name + "' does not take", table);
  }
  if (puts && !IsValueOf(*family, op.second)) {
    return WrongIn("a malformed value of family '" + family->name + "'", table);
  }
  return Status::Ok();
}

// The trees of groups from `groups_known` on are new ones.
Status MutationCheck::CheckNewTrees(const TableSchema& schema, size_t groups_known) const {
  uint64_t tree_id_next = engine_.tree_id_next();
  for (size_t i = groups_known; i < schema.groups.size(); ++i) {
    const uint64_t tree_id = schema.groups[i].tree_id;
    if (tree_id < tree_id_next || tree_id > kIdMax) {
      return Wrong("the number of a tree that is not free");
    }
    tree_id_next = tree_id + 1;
  }
  return Status::Ok();
}

Status MutationCheck::CheckNewTable(const DecodedOp& op) const {
  if (!IsName(op.second)) return Wrong("an impossible name of a table");
  if (op.id < engine_.table_id_next() || op.id > kIdMax) {
    return Wrong("the number of a table that is not free");
  }
  ASSIGN_OR_RETURN(const TableSchema schema, SchemaOf(op.third));
  return CheckNewTrees(schema, 0);
}

Status MutationCheck::CheckNewSchema(const DecodedOp& op) const {
  const Table* table = engine_.FindTableById(op.id);
  if (table == nullptr) return Status::Ok();
  ASSIGN_OR_RETURN(const TableSchema schema, SchemaOf(op.first));
  if (!GoesOnFrom(table->schema(), schema)) {
    return WrongIn("a schema that cannot follow the one before it", *table);
  }
  return CheckNewTrees(schema, table->groups());
}

}  // namespace cellar
