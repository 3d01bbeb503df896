// Writing and reading the ops of a mutation.
#include "engine/table/mutation.h"

#include "base/assert.h"
#include "base/coding.h"
#include "base/copy_bytes.h"

namespace cellar {
namespace {

// Takes the fields of an op from the front of its bytes, in two registers: a view whose halves are
// written one by one and which is then copied as a whole is a stall of the processor each time.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  CELLAR_INLINE bool Number(uint64_t* value) {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) [[likely]] {
      *value = static_cast<uint8_t>(*at_++);
      return true;
    }
    std::string_view bytes = rest();
    if (!GetVarint64(&bytes, value)) return false;
    at_ = bytes.data();
    return true;
  }
  CELLAR_INLINE bool Fixed(uint64_t* value) {
    if (static_cast<size_t>(end_ - at_) < sizeof(uint64_t)) return false;
    *value = DecodeFixed64(at_);
    at_ += sizeof(uint64_t);
    return true;
  }
  CELLAR_INLINE bool Bytes(std::string_view* bytes) {
    uint64_t size = 0;
    if (!Number(&size) || size > static_cast<uint64_t>(end_ - at_)) return false;
    *bytes = {at_, size};
    at_ += size;
    return true;
  }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

 private:
  const char* at_;
  const char* const end_;
};

// The layout of each op, as the header shows it.
CELLAR_INLINE bool ReadCellOp(FieldReader* from, DecodedOp* op) {
  switch (op->op) {
    case MutationOp::kTable:
      return from->Number(&op->id);
    case MutationOp::kRow:
      return from->Bytes(&op->first);
    case MutationOp::kPut:
    case MutationOp::kAddInput:
    case MutationOp::kMergeState:
      return from->Number(&op->id) && from->Bytes(&op->first) && from->Fixed(&op->number) &&
             from->Bytes(&op->second);
    case MutationOp::kReplace:
      return from->Number(&op->id) && from->Bytes(&op->first) && from->Fixed(&op->number) &&
             from->Fixed(&op->replaced) && from->Bytes(&op->second);
    case MutationOp::kDeleteCell:
    case MutationOp::kReclaimColumn:
      return from->Number(&op->id) && from->Bytes(&op->first) && from->Number(&op->number);
    case MutationOp::kDeleteRange:
      return from->Number(&op->id) && from->Bytes(&op->first) && from->Bytes(&op->second);
    case MutationOp::kStep:
    case MutationOp::kDeleteRow:
      return true;
    case MutationOp::kDeleteRows:
      return from->Bytes(&op->first) && from->Bytes(&op->second);
    case MutationOp::kRecordNumber:
    case MutationOp::kRewrites:
      return from->Number(&op->number);
    case MutationOp::kPreImages:
      return from->Number(&op->id) && from->Number(&op->number) && from->Bytes(&op->first);
    default:
      return false;
  }
}

bool ReadSchemaOp(FieldReader* from, DecodedOp* op) {
  switch (op->op) {
    case MutationOp::kCreateKeyspace:
    case MutationOp::kDropKeyspace:
    case MutationOp::kTablets:
      return from->Bytes(&op->first);
    case MutationOp::kDropTable:
    case MutationOp::kDropFeed:
    case MutationOp::kDropSnapshot:
      return from->Number(&op->id);
    case MutationOp::kRenameTable:
    case MutationOp::kFeedGroup:
      return from->Number(&op->id) && from->Bytes(&op->first) && from->Bytes(&op->second);
    case MutationOp::kCreateTable:
    case MutationOp::kCreateFeed:
    case MutationOp::kCreateSnapshot:
    case MutationOp::kAdoptSnapshot:
    case MutationOp::kCopyTable:
      return from->Bytes(&op->first) && from->Bytes(&op->second) && from->Number(&op->id) &&
             from->Bytes(&op->third);
    case MutationOp::kSetSchema:
    case MutationOp::kTrimFeed:
    case MutationOp::kFeedHome:
    case MutationOp::kTabletSplit:
    case MutationOp::kTabletMerge:
    case MutationOp::kTabletAssign:
    case MutationOp::kMoveBegin:
    case MutationOp::kMoveCancel:
    case MutationOp::kMoveGive:
    case MutationOp::kMoveDone:
    case MutationOp::kStageBegin:
    case MutationOp::kStageRun:
    case MutationOp::kStageTail:
    case MutationOp::kMoveOwn:
    case MutationOp::kFloor:
    case MutationOp::kPurge:
    case MutationOp::kCut:
    case MutationOp::kNameSnapshot:
    case MutationOp::kOpenAs:
      return from->Number(&op->id) && from->Bytes(&op->first);
    case MutationOp::kTruncateTable:
      return from->Number(&op->id) && from->Number(&op->number);
    case MutationOp::kCatalog:
      return from->Number(&op->number);
    default:
      return false;
  }
}

}  // namespace

void MutationBuilder::Truncate(size_t size) {
  CELLAR_ASSERT(size >= kMutationBeginBytes);
  CELLAR_ASSERT(size <= bytes_.size());
  bytes_.Truncate(size);
  // The ops that named the table and the row may be among those cut off.
  (void)BeginPart();
}

void MutationBuilder::Table(uint64_t table_id) {
  CELLAR_ASSERT(table_id > 0);
  if (table_id_ == table_id) return;
  Op(MutationOp::kTable);
  Number(table_id);
  table_id_ = table_id;
  row_begin_ = 0;
}

void MutationBuilder::Row(uint64_t table_id, std::string_view row_key) {
  if (IsInRow(table_id, row_key)) return;
  bytes_.CommitTo(WriteRow(bytes_.Reserve(RowBytesMax(row_key.size())), table_id, row_key));
}

void MutationBuilder::AddPut(uint32_t family_id, std::string_view qualifier, int64_t timestamp,
                             const std::optional<int64_t>& replaced, std::string_view cell_value) {
  CELLAR_ASSERT(row_begin_ != 0);
  char* const to = WritePut(bytes_.Reserve(PutBytesMax(qualifier.size(), cell_value.size())),
                            family_id, qualifier, timestamp, replaced, cell_value.size());
  CopyBytes(to, cell_value.data(), cell_value.size());
  bytes_.CommitTo(to + cell_value.size());
}

void MutationBuilder::Put(uint32_t family_id, std::string_view qualifier, int64_t timestamp,
                          std::string_view cell_value) {
  AddPut(family_id, qualifier, timestamp, std::nullopt, cell_value);
}

void MutationBuilder::Replace(uint32_t family_id, std::string_view qualifier, int64_t timestamp,
                              int64_t replaced, std::string_view cell_value) {
  AddPut(family_id, qualifier, timestamp, replaced, cell_value);
}

void MutationBuilder::Fold(MutationOp op, uint32_t family_id, std::string_view qualifier,
                           int64_t timestamp, std::string_view input) {
  CELLAR_ASSERT(row_begin_ != 0);
  CELLAR_ASSERT(timestamp >= 0);
  Op(op);
  Number(family_id);
  Bytes(qualifier);
  EncodeFixed64(bytes_.Grow(sizeof(uint64_t)), static_cast<uint64_t>(timestamp));
  Bytes(input);
}

void MutationBuilder::DeleteCell(uint32_t family_id, std::string_view qualifier,
                                 int64_t timestamp) {
  CELLAR_ASSERT(row_begin_ != 0);
  Op(MutationOp::kDeleteCell);
  Number(family_id);
  Bytes(qualifier);
  Number(static_cast<uint64_t>(timestamp));
}

void MutationBuilder::DeleteRange(uint32_t family_id, std::string_view begin,
                                  std::string_view end) {
  CELLAR_ASSERT(row_begin_ != 0);
  Op(MutationOp::kDeleteRange);
  Number(family_id);
  Bytes(begin);
  Bytes(end);
}

void MutationBuilder::DeleteRow() {
  CELLAR_ASSERT(row_begin_ != 0);
  Op(MutationOp::kDeleteRow);
}

void MutationBuilder::ReclaimColumn(uint32_t family_id, std::string_view qualifier,
                                    int64_t now_micros) {
  CELLAR_ASSERT(row_begin_ != 0);
  CELLAR_ASSERT(now_micros >= 0);
  Op(MutationOp::kReclaimColumn);
  Number(family_id);
  Bytes(qualifier);
  Number(static_cast<uint64_t>(now_micros));
}

void MutationBuilder::DeleteRows(uint64_t table_id, std::string_view begin, std::string_view end) {
  Table(table_id);
  Op(MutationOp::kDeleteRows);
  Bytes(begin);
  Bytes(end);
}

void MutationBuilder::RecordNumber(uint64_t table_id, uint64_t next) {
  Table(table_id);
  Op(MutationOp::kRecordNumber);
  Number(next);
}

void MutationBuilder::PreImages(uint64_t ops, uint64_t cells, std::string_view lists) {
  Op(MutationOp::kPreImages);
  Number(ops);
  Number(cells);
  Bytes(lists);
}

void MutationBuilder::Rewrites(Edge edge) {
  Op(MutationOp::kRewrites);
  Number(static_cast<uint64_t>(edge));
}

void MutationBuilder::CreateKeyspace(std::string_view name) {
  Op(MutationOp::kCreateKeyspace);
  Bytes(name);
}

void MutationBuilder::DropKeyspace(std::string_view name) {
  Op(MutationOp::kDropKeyspace);
  Bytes(name);
}

void MutationBuilder::CreateTable(std::string_view keyspace, std::string_view name,
                                  uint64_t table_id, std::string_view schema) {
  Op(MutationOp::kCreateTable);
  Bytes(keyspace);
  Bytes(name);
  Number(table_id);
  Bytes(schema);
}

void MutationBuilder::DropTable(uint64_t table_id) {
  Op(MutationOp::kDropTable);
  Number(table_id);
}

void MutationBuilder::RenameTable(uint64_t table_id, std::string_view keyspace,
                                  std::string_view name) {
  Op(MutationOp::kRenameTable);
  Number(table_id);
  Bytes(keyspace);
  Bytes(name);
}

void MutationBuilder::SetSchema(uint64_t table_id, std::string_view schema) {
  Op(MutationOp::kSetSchema);
  Number(table_id);
  Bytes(schema);
}

void MutationBuilder::TruncateTable(uint64_t table_id, uint64_t tree_id_first) {
  Op(MutationOp::kTruncateTable);
  Number(table_id);
  Number(tree_id_first);
}

void MutationBuilder::CreateFeed(std::string_view keyspace, std::string_view name, uint64_t feed_id,
                                 std::string_view definition) {
  Op(MutationOp::kCreateFeed);
  Bytes(keyspace);
  Bytes(name);
  Number(feed_id);
  Bytes(definition);
}

void MutationBuilder::DropFeed(uint64_t feed_id) {
  Op(MutationOp::kDropFeed);
  Number(feed_id);
}

void MutationBuilder::TrimFeed(uint64_t feed_id, std::string_view trim) {
  Op(MutationOp::kTrimFeed);
  Number(feed_id);
  Bytes(trim);
}

void MutationBuilder::SetFeedHome(uint64_t feed_id, std::string_view home) {
  Op(MutationOp::kFeedHome);
  Number(feed_id);
  Bytes(home);
}

void MutationBuilder::ChangeFeedGroup(uint64_t feed_id, std::string_view group,
                                      std::string_view changes) {
  Op(MutationOp::kFeedGroup);
  Number(feed_id);
  Bytes(group);
  Bytes(changes);
}

void MutationBuilder::CreateSnapshot(std::string_view keyspace, std::string_view name,
                                     uint64_t snapshot_id, std::string_view definition) {
  Op(MutationOp::kCreateSnapshot);
  Bytes(keyspace);
  Bytes(name);
  Number(snapshot_id);
  Bytes(definition);
}

void MutationBuilder::DropSnapshot(uint64_t snapshot_id) {
  Op(MutationOp::kDropSnapshot);
  Number(snapshot_id);
}

void MutationBuilder::NameSnapshot(uint64_t snapshot_id, std::string_view name) {
  Op(MutationOp::kNameSnapshot);
  Number(snapshot_id);
  Bytes(name);
}

void MutationBuilder::AdoptSnapshot(std::string_view keyspace, std::string_view name,
                                    uint64_t snapshot_id, std::string_view adopted) {
  Op(MutationOp::kAdoptSnapshot);
  Bytes(keyspace);
  Bytes(name);
  Number(snapshot_id);
  Bytes(adopted);
}

void MutationBuilder::CopyTable(std::string_view keyspace, std::string_view name, uint64_t table_id,
                                std::string_view copy) {
  Op(MutationOp::kCopyTable);
  Bytes(keyspace);
  Bytes(name);
  Number(table_id);
  Bytes(copy);
}

void MutationBuilder::SetTablets(std::string_view state) {
  Op(MutationOp::kTablets);
  Bytes(state);
}

void MutationBuilder::SplitTablet(uint64_t table_id, std::string_view bound) {
  Op(MutationOp::kTabletSplit);
  Number(table_id);
  Bytes(bound);
}

void MutationBuilder::MergeTablets(uint64_t table_id, std::string_view row_key) {
  Op(MutationOp::kTabletMerge);
  Number(table_id);
  Bytes(row_key);
}

void MutationBuilder::SetCatalog(uint64_t number) {
  Op(MutationOp::kCatalog);
  Number(number);
}

void MutationBuilder::Cut(uint64_t catalog, std::string_view mark) {
  Op(MutationOp::kCut);
  Number(catalog);
  Bytes(mark);
}

void MutationBuilder::AssignTablets(uint64_t table_id, std::string_view tablets) {
  Op(MutationOp::kTabletAssign);
  Number(table_id);
  Bytes(tablets);
}

void MutationBuilder::Move(MutationOp op, uint64_t id, std::string_view body) {
  Op(op);
  Number(id);
  Bytes(body);
}

void MutationBuilder::AppendOps(std::string_view ops) {
  CopyBytes(bytes_.Grow(ops.size()), ops.data(), ops.size());
  (void)BeginPart();
}

bool MutationReader::ReadStamp(int64_t* stamp) {
  uint64_t value = 0;
  if (!GetFixed64(&rest_, &value) || value > static_cast<uint64_t>(INT64_MAX)) return Damaged();
  *stamp = static_cast<int64_t>(value);
  return true;
}

bool MutationReader::Damaged() {
  status_ = Status::Error(ErrorCode::kCorruption, "a mutation is malformed");
  return false;
}

// An op that is not known is damage: a log of a newer version must not be carried out in part.
bool MutationReader::Next(DecodedOp* op) {
  if (rest_.empty() || !status_.ok()) return false;
  op->op = static_cast<MutationOp>(rest_[0]);
  FieldReader fields(rest_.substr(1));
  const bool good =
      op->op < MutationOp::kCreateKeyspace ? ReadCellOp(&fields, op) : ReadSchemaOp(&fields, op);
  rest_ = fields.rest();
  return good || Damaged();
}

}  // namespace cellar
