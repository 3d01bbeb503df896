// See pre_images.h.
#include "engine/state/pre_images.h"

#include "engine/keys/timestamp.h"
#include "engine/state/engine.h"
#include "engine/table/read_view.h"
#include "engine/table/table.h"
#include "engine/table/version_walk.h"

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

// Emptied, with the room of an ordinary mutation.
void Clear(std::string* bytes) {
  constexpr size_t kKeptBytes{1 << 20};
  bytes->clear();
  if (bytes->capacity() > kKeptBytes) bytes->shrink_to_fit();
}

}  // namespace

void PreImages::Begin(int64_t now_micros, Taken taken) {
  now_micros_ = now_micros;
  taken_ = taken;
  ops_ = 0;
  cells_ = 0;
  overflows_ = false;
  Clear(&lists_);
  Clear(&list_);
}

void PreImages::Add(OldCellKind kind, std::string_view key, std::string_view value) {
  if (overflows_) [[unlikely]]
    return;
  const size_t size = list_.size();
  const size_t bytes = size + 1 + 2 * kVarint64BytesMax + key.size() + value.size();
  if (lists_.size() + bytes > kBytesMax) [[unlikely]] {
    // More than a record may hold: all of it is given up, since a part would pass for the whole,
    // and the change is refused.
    overflows_ = true;
    Clear(&lists_);
    Clear(&list_);
    return;
  }
  list_.resize(bytes);
  char* end = list_.data() + size;
  *end++ = static_cast<char>(kind);
  end = EncodeLengthPrefixed(end, key);
  end = EncodeLengthPrefixed(end, value);
  list_.resize(static_cast<size_t>(end - list_.data()));
  ++list_cells_;
}

// The newest version is mostly live, and with one version kept it is the one that is replaced.
bool PreImages::AddNewest(const FamilySchema& family, std::string_view version,
                          std::string_view value, const std::optional<int64_t>& replaced) {
  const int64_t timestamp = StoredTimestamp(version);
  CellValue cell;
  ReadStoredHead(value, &cell);
  if (family.policy.Drops(1, timestamp, cell.expiry_micros, now_micros_)) return false;
  Add(OldCellKind::kNewest, version, value);
  if (!replaced) return true;
  if (*replaced != timestamp) return false;
  Add(OldCellKind::kReclaimed, version, {});
  return true;
}

void PreImages::AddNewestLive(const Table& table, const FamilySchema& family,
                              std::string_view row_key, std::string_view qualifier) {
  // AddNewest may have found it, and only the replaced version is missing.
  if (list_cells_ > 0) return;
  const ReadView view(table, now_micros_);
  const std::optional<CellRead> live = view.ReadCell(row_key, family, qualifier, kTimestampMax);
  if (!live) return;
  std::string value;
  PutCellValue(&value, live->value);
  Add(OldCellKind::kNewest, live->version, value);
}

void PreImages::AddReplaced(const Table& table, const FamilySchema& family, std::string_view column,
                            int64_t replaced) {
  std::string key(column);
  PutTimestamp(&key, replaced);
  const std::optional<std::string_view> value = table.tree(family.group).Get(key);
  if (value) Add(OldCellKind::kReclaimed, std::string_view(key).substr(column.size()), *value);
}

void PreImages::TakeNewest(const DecodedOp& op, const Table& table, std::string_view row_key) {
  const FamilySchema* family = table.schema().FindFamilyById(static_cast<uint32_t>(op.id));
  key_ = ColumnKey(row_key, family->id, op.first);
  BTreeFinger finger;
  BTree::Match newest;
  std::string scratch;
  if (!table.tree(family->group).GetFirst(key_, &scratch, &finger, &newest)) return;
  std::optional<int64_t> replaced;
  if (op.op == MutationOp::kReplace) replaced = static_cast<int64_t>(op.replaced);
  if (AddNewest(*family, newest.key_rest, newest.value, replaced)) return;
  AddNewestLive(table, *family, row_key, op.first);
  if (replaced) AddReplaced(table, *family, key_, *replaced);
}

void PreImages::TakeLonePut(const ResolvedPut& put, const Table& table, std::string_view version,
                            std::string_view value) {
  ops_ = 1;
  list_.clear();
  list_cells_ = 0;
  if (version.empty()) return;
  if (!AddNewest(*put.family, version, value, put.replaced)) {
    AddNewestLive(table, *put.family, put.row_key(), put.qualifier());
    if (put.replaced) AddReplaced(table, *put.family, put.column(), *put.replaced);
  }
  EndList(0);
}

void PreImages::EndList(uint64_t op) {
  if (list_cells_ == 0 || overflows_) return;
  cells_ += list_cells_;
  PutVarint64(&lists_, op);
  PutVarint64(&lists_, list_cells_);
  lists_ += list_;
}

// What stands in [begin, end) of a group's tree, which cuts through no column.
void PreImages::TakeRange(const Table& table, size_t group, std::string_view begin,
                          std::string_view end, size_t prefix_bytes) {
  const TableSchema& schema = table.schema();
  BTreeCursor& at = table.cursor(group);
  std::string column;
  const FamilySchema* family = nullptr;
  VersionWalk walk;
  for (at.Seek(begin); at.valid() && (end.empty() || at.key() < end); at.Next()) {
    if (overflows_) [[unlikely]]
      return;
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
        walk = VersionWalk(family->policy, false, now_micros_);
      }
    }
    if (family == nullptr) continue;  // gone with its family
    walk.Count();
    CellValue cell;
    ReadStoredHead(at.value(), &cell);
    const Fate fate = walk.FateOf(StoredTimestamp(key.substr(column.size())), cell.expiry_micros);
    Add(fate == Fate::kLive ? OldCellKind::kRemoved : OldCellKind::kReclaimed,
        key.substr(prefix_bytes), at.value());
  }
}

// Of kDeleteCell that version; of kReclaimColumn those that go.
void PreImages::TakeColumn(const DecodedOp& op, const Table& table, std::string_view row_key) {
  const FamilySchema* family = table.schema().FindFamilyById(static_cast<uint32_t>(op.id));
  const bool reclaims = op.op == MutationOp::kReclaimColumn;
  key_ = ColumnKey(row_key, family->id, op.first);
  BTreeCursor& at = table.cursor(family->group);
  at.Seek(key_);
  const auto number = static_cast<int64_t>(op.number);  // a time, or the timestamp of a version
  ColumnWalk versions(at, key_, {family->policy, false, reclaims ? number : now_micros_});
  while (versions.Next()) {
    const bool dropped = versions.fate() != Fate::kLive;
    if (reclaims ? dropped : versions.timestamp_micros() == number) {
      Add(dropped ? OldCellKind::kReclaimed : OldCellKind::kRemoved, versions.version(),
          versions.value());
    }
  }
}

// The cells of the family, or of a range of it; behind the row's key without a range.
void PreImages::TakeFamily(const FamilySchema& family, const Table& table, std::string_view row_key,
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

// Every change is counted, also those that have nothing to list: the number is how a reader knows
// to which op a list belongs.
void PreImages::Take(const DecodedOp& op, const Table* table, std::string_view row_key) {
  const bool is_change = op.op != MutationOp::kStep && op.op != MutationOp::kTable &&
                         op.op != MutationOp::kRow && op.op != MutationOp::kPreImages;
  if (!is_change) return;
  const uint64_t index = ops_++;
  if (table == nullptr) return;
  list_.clear();
  list_cells_ = 0;
  switch (op.op) {
    case MutationOp::kReplace:
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
  EndList(index);
}

Status PreImages::TakeAll(std::string_view ops, const Table& table) {
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
