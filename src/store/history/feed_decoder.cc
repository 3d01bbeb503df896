// See feed_decoder.h.
#include "store/history/feed_decoder.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text/number.h"
#include "engine/keys/cell.h"
#include "engine/schema/rebuild.h"
#include "engine/state/table_copy.h"
#include "resp/reply_writer.h"

namespace cellar {
namespace {

Status Unreadable(std::string_view what) {
  return Status::Error(ErrorCode::kCorruption, "the log has " + std::string(what));
}

// The key of which `bound` is the successor (Successor in order.h): false if it is of none.
bool DecodePredecessor(const Order& order, std::string_view bound, std::string* text) {
  if (bound.empty() || bound.back() == '\0') return false;
  std::string key(bound);
  key.back() = static_cast<char>(key.back() - 1);
  // Trailing ff have been stripped.
  for (int i = 0; i <= 16; ++i, key.push_back('\xff')) {
    text->clear();
    if (order.EncodedSize(key) == key.size() && order.Decode(key, text)) return true;
  }
  return false;
}

std::string_view BoolText(std::string_view stored) { return stored[0] == '\0' ? "0" : "1"; }

}  // namespace

void FeedEntry::Add(std::string_view name, std::string_view value) {
  const size_t size = fields.size();
  fields.resize(size + ReplyWriter::BulkBytesMax(name.size()) +
                ReplyWriter::BulkBytesMax(value.size()));
  char* end = ReplyWriter::EncodeBulk(fields.data() + size, name);
  end = ReplyWriter::EncodeBulk(end, value);
  fields.resize(static_cast<size_t>(end - fields.data()));
  ++pairs;
}

// --- tables

void FeedDecoder::Set(TableNow* table, std::string keyspace, std::string name,
                      TableSchema schema) const {
  table->is_there = true;
  table->keyspace = std::move(keyspace);
  table->name = std::move(name);
  table->schema = std::move(schema);
  table->covered = table->keyspace == feed_.keyspace && feed_.CoversTable(table->name);
  table->rows_known = true;
  table->prefixes.clear();
  table->families.clear();
  if (!table->covered) return;
  for (const FamilySchema& family : table->schema.families) {
    table->families.emplace(family.id,
                            Family{&family, feed_.CoversFamily(table->name, family.name)});
  }
  for (const std::string& prefix : feed_.prefixes) {
    Result<KeyRange> range = table->schema.key.EncodePrefix(prefix);
    if (range.ok()) table->prefixes.push_back(*std::move(range));
  }
  // A table that was made anew may have keys that no prefix fits.
  table->rows_known = feed_.prefixes.empty() || !table->prefixes.empty();
}

// The table as it was before this record. What the record does to schemas changes it from there on.
FeedDecoder::TableNow& FeedDecoder::TableOf(uint64_t id) {
  const auto [at, fresh] = tables_.try_emplace(id);
  TableNow& table = at->second;
  if (!fresh) return table;
  const TableVersion* version = feeds_.history().At(id, base_micros_);
  if (version == nullptr) return table;
  TableSchema schema;
  std::string_view bytes = version->schema;
  if (!DecodeTableSchema(&bytes, &schema).ok()) return table;
  Set(&table, version->keyspace, version->name, std::move(schema));
  return table;
}

std::string FeedDecoder::Commands(const TableNow& table) const {
  std::string text;
  for (const std::string& command :
       RebuildCommands(table.name, table.schema, [&](const FamilySchema& family) {
         return feed_.CoversFamily(table.name, family.name);
       })) {
    if (!text.empty()) text += '\n';
    text += command;
  }
  return text;
}

// --- records

Result<FeedDecoder::Outline> FeedDecoder::Look(const LogRecord& record) {
  Outline outline;
  MutationReader reader(record.payload);
  int64_t stamp = 0;
  if (!reader.ReadStamp(&stamp)) return reader.status();
  DecodedOp op;
  uint64_t changes = 0;
  while (reader.Next(&op)) {
    if (op.op == MutationOp::kStep) {
      ++outline.steps;
    } else if (op.op == MutationOp::kTable) {
      outline.matters = outline.matters || outline.has_schemas || TableOf(op.id).covered;
    } else if (op.op == MutationOp::kOldCells) {
      changes += op.number;
    } else if (op.op != MutationOp::kRow) {
      ++changes;
      const bool is_schema =
          op.op >= MutationOp::kCreateKeyspace && op.op != MutationOp::kFeedGroup;
      if (is_schema) outline.has_schemas = outline.matters = true;
    }
  }
  if (!reader.status().ok()) return reader.status();
  if (outline.steps == 1 && record.payload.size() >= kFeedLargeStepBytes)
    outline.step_micros_more = FeedMicrosOfStep(changes) - 1;
  return outline;
}

// Steps of one record get a microsecond each, the last one the commit time or one just before it,
// so that ids ascend. A record that says nothing of the feed's tables is left after a look at its
// outline.
Result<bool> FeedDecoder::Decode(const LogRecord& record, int64_t before_micros,
                                 const FeedId& after, const FeedId& to, FeedSink* sink) {
  if (record.kind != RecordKind::kCommand) return true;
  base_micros_ = before_micros;
  ASSIGN_OR_RETURN(const Outline outline, Look(record));
  if (!outline.matters) return true;
  sink_ = sink;
  after_ = after;
  to_ = to;
  ended_ = false;
  has_entry_ = false;
  if (feed_.tells_old_cells()) RETURN_IF_ERROR(FindOldCells(record.payload));
  MutationReader reader(record.payload);
  int64_t stamp = 0;
  (void)reader.ReadStamp(&stamp);
  DecodedOp op;
  int64_t step = 0;
  Status status;
  while (status.ok() && !ended_ && reader.Next(&op)) {
    if (op.op == MutationOp::kStep) {
      EndStep();
      step_micros_ = record.commit_micros - (outline.steps - ++step) - outline.step_micros_more;
      BeginStep(step == 1 ? before_micros : step_micros_ - 1);
    } else {
      status = OnOp(op, reader);
    }
  }
  if (!ended_) EndStep();
  // The next record looks them up again, in the history as it is then.
  if (outline.has_schemas) tables_.clear();
  RETURN_IF_ERROR(std::move(status));
  return !ended_;
}

void FeedDecoder::BeginStep(int64_t before_micros) {
  telling_ = before_micros > feed_.after_micros;
  place_ = 0;
  table_ = nullptr;
}

void FeedDecoder::EndStep() {
  if (has_entry_) GiveOut(false);
}

bool FeedDecoder::Begin(std::string_view op, std::string_view table) {
  if (has_entry_) GiveOut(true);
  // Entries that were given out are counted as well: a place in a step always means the same one.
  const FeedId id = FeedId::Of(step_micros_, place_++);
  if (ended_ || id <= after_) return false;
  if (id > to_) {
    ended_ = true;
    return false;
  }
  has_entry_ = true;
  entry_.Clear(id);
  Add("op", op);
  Add("table", table);
  return true;
}

void FeedDecoder::GiveOut(bool more) {
  if (more) Add("more", "1");
  has_entry_ = false;
  if (!sink_->OnEntry(entry_)) ended_ = true;
}

// --- ops

// Cells of one row and kind are gathered into one entry; any other op ends it.
Status FeedDecoder::OnOp(const DecodedOp& op, const MutationReader& later) {
  if (op.op == MutationOp::kOldCells) return Status::Ok();
  if (op.op != MutationOp::kTable && op.op != MutationOp::kRow) NextChange();
  if (op.op >= MutationOp::kCreateKeyspace) return OnSchemaOp(op, later);
  if (op.op == MutationOp::kTable) {
    table_ = &TableOf(op.id);
    row_key_ = {};
    return Status::Ok();
  }
  if (table_ == nullptr || !table_->covered || !telling_) return Status::Ok();
  switch (op.op) {
    case MutationOp::kRow:
      row_key_ = op.first;
      row_ = Row::kUnknown;
      return Status::Ok();
    case MutationOp::kDeleteRow:
    case MutationOp::kDeleteRows:
      return OnRowOp(op);
    case MutationOp::kPut:
    case MutationOp::kReplace:
    case MutationOp::kAddInput:
    case MutationOp::kMergeState:
    case MutationOp::kDeleteCell:
    case MutationOp::kDeleteRange:
      return OnCellOp(op);
    case MutationOp::kReclaimColumn:
      return feed_.expired ? OnCellOp(op) : Status::Ok();
    default:  // what retention reclaims, and what is no cell
      return Status::Ok();
  }
}

// Whether the feed tells of the row; with its text in row_text_ then.
bool FeedDecoder::RowMatters() {
  if (row_ != Row::kUnknown) return row_ == Row::kMatters;
  row_ = Row::kOther;
  if (!table_->rows_known) return false;
  const auto& prefixes = table_->prefixes;
  if (!prefixes.empty() && std::none_of(prefixes.begin(), prefixes.end(),
                                        [&](const KeyRange& p) { return p.contains(row_key_); })) {
    return false;
  }
  row_text_.clear();
  if (!table_->schema.key.Decode(row_key_, &row_text_)) return false;
  if (feed_.slices > 0 && Hash64(row_text_) % feed_.slices != feed_.slice) return false;
  row_ = Row::kMatters;
  return true;
}

// In the notation of RANGE and COLRANGE: from, to.
Status FeedDecoder::AddBounds(const Order& order, std::string_view begin, std::string_view end) {
  if (!wants_fields_) return Status::Ok();
  if (!begin.empty()) {
    text_ = "[";
    std::string key;
    if (order.EncodedSize(begin) == begin.size() && order.Decode(begin, &key)) {
      text_ += key;
    } else if (DecodePredecessor(order, begin, &key)) {
      text_ = "(" + key;
    } else {
      return Unreadable("a range that is none of keys");
    }
    Add("from", text_);
  }
  if (!end.empty()) {
    text_ = "(";
    std::string key;
    if (order.EncodedSize(end) == end.size() && order.Decode(end, &key)) {
      text_ += key;
    } else if (DecodePredecessor(order, end, &key)) {
      text_ = "[" + key;
    } else {
      return Unreadable("a range that is none of keys");
    }
    Add("to", text_);
  }
  return Status::Ok();
}

// A row, or a range of rows, has gone. Where the record says what was there, its cells are told one
// by one, and with OLD that is all.
Status FeedDecoder::OnRowOp(const DecodedOp& op) {
  if (op.op == MutationOp::kDeleteRow) {
    if (knows_old()) {
      RETURN_IF_ERROR(TellRemoved(row_key_));
      if (feed_.old) return Status::Ok();
    }
    if (RowMatters() && Begin("delrange", table_->name)) Add("row", row_text_);
    return Status::Ok();
  }
  const KeyRange range{{std::string(op.first), false}, {std::string(op.second), op.second.empty()}};
  const auto touches = [&range](const KeyRange& prefix) {
    return range.begin < prefix.end && prefix.begin < range.end;
  };
  const auto& prefixes = table_->prefixes;
  if (!table_->rows_known ||
      (!prefixes.empty() && std::none_of(prefixes.begin(), prefixes.end(), touches))) {
    return Status::Ok();
  }
  if (knows_old()) {
    RETURN_IF_ERROR(TellRemoved({}));
    if (feed_.old) return Status::Ok();
  }
  if (!Begin("delrows", table_->name)) return Status::Ok();
  return AddBounds(table_->schema.key, op.first, op.second);
}

void FeedDecoder::AddColumn(const FamilySchema& family, std::string_view qualifier) {
  if (!wants_fields_) return;
  text_ = family.name;
  text_ += ':';
  (void)family.order.Decode(qualifier, &text_);
  Add("column", text_);
}

void FeedDecoder::AddPlace(const FamilySchema& family, std::string_view qualifier,
                           uint64_t timestamp) {
  Add("row", row_text_);
  AddColumn(family, qualifier);
  Add("ts", FormatUint64(timestamp));
}

void FeedDecoder::AddValue(const CellValue& cell, std::string_view type_name,
                           std::string_view value_name) {
  if (!wants_fields_) return;
  if (!type_name.empty()) Add(type_name, ValueTypeName(cell.type));
  if (IsTextType(cell.type) || cell.type == ValueType::kHll) {
    Add(value_name, cell.stored);  // of hll the state
  } else if (cell.type == ValueType::kBool) {
    Add(value_name, BoolText(cell.stored));
  } else {
    Add(value_name, ValueText(cell.type, cell.stored));
  }
}

void FeedDecoder::AddPut(const FamilySchema& family, const DecodedOp& op) {
  if (!wants_fields_) return;
  AddPlace(family, op.first, op.number);
  CellValue cell;
  (void)DecodeCellValue(op.second, &plain_, &cell);  // it has been applied
  AddValue(cell, "type", "value");
  if (cell.expiry_micros != kNoExpiry) Add("expires", FormatInt64(cell.expiry_micros));
  if (feed_.old) AddOld(family, op);
}

// With OLD a delete becomes the cells that it removed, one entry each; without it, or where the log
// does not hold them, one entry of what it was asked to delete.
Status FeedDecoder::OnCellOp(const DecodedOp& op) {
  const auto family = table_->families.find(static_cast<uint32_t>(op.id));
  if (family == table_->families.end()) return Unreadable("a family that its table has not");
  if (!family->second.covered || !RowMatters()) return Status::Ok();
  const FamilySchema& schema = *family->second.schema;
  switch (op.op) {
    case MutationOp::kReclaimColumn:
      return TellReclaimed(schema, op);
    case MutationOp::kDeleteCell:
      if (knows_old()) {
        RETURN_IF_ERROR(TellRemoved(ColumnKey(schema, op.first)));
        if (feed_.old) return Status::Ok();
      }
      if (Begin("del", table_->name)) AddPlace(schema, op.first, op.number);
      return Status::Ok();
    case MutationOp::kDeleteRange:
      if (knows_old()) {
        RETURN_IF_ERROR(TellRemoved(ColumnKey(schema, {})));
        if (feed_.old) return Status::Ok();
      }
      if (!Begin("delrange", table_->name)) return Status::Ok();
      Add("row", row_text_);
      Add("family", schema.name);
      return AddBounds(schema.order, op.first, op.second);
    case MutationOp::kAddInput:
    case MutationOp::kMergeState: {
      const bool merges = op.op == MutationOp::kMergeState;
      if (!Begin(merges ? "merge" : "add", table_->name)) return Status::Ok();
      AddPlace(schema, op.first, op.number);
      Add("value", op.second);
      return Status::Ok();
    }
    default:
      if (Begin("put", table_->name)) AddPut(schema, op);
      NotePutOfPart(schema, op);
      // The version that it has displaced was live until then.
      return op.op == MutationOp::kReplace ? TellReclaimed(schema, op) : Status::Ok();
  }
}

// --- schemas

// Follows every table, as it was at this place of the log: one that is not covered may be renamed
// into what is. `later` has the ops behind this one: a drop in front of a rename or a copy that
// takes the name is no entry.
Status FeedDecoder::OnSchemaOp(const DecodedOp& op, const MutationReader& later) {
  table_ = nullptr;
  switch (op.op) {
    case MutationOp::kCreateFeed:
      if (op.id == feed_.id) OnCreateFeed(op);
      return Status::Ok();
    case MutationOp::kCreateTable: {
      TableSchema schema;
      std::string_view bytes = op.third;
      RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
      TableNow& table = tables_[op.id];
      Set(&table, std::string(op.first), std::string(op.second), std::move(schema));
      if (table.covered && telling_ && Begin("schema", table.name))
        Add("commands", Commands(table));
      return Status::Ok();
    }
    case MutationOp::kCopyTable:
      return OnCopy(op);
    case MutationOp::kSetSchema:
      return OnSetSchema(op);
    case MutationOp::kRenameTable:
      OnRename(op);
      return Status::Ok();
    case MutationOp::kDropTable: {
      TableNow& table = TableOf(op.id);
      if (table.covered && telling_ && !IsReplacedByRename(op, later))
        (void)Begin("drop", table.name);
      table = TableNow{};
      return Status::Ok();
    }
    case MutationOp::kTruncateTable: {
      const TableNow& table = TableOf(op.id);
      if (table.covered && telling_) (void)Begin("truncate", table.name);
      return Status::Ok();
    }
    case MutationOp::kCreateSnapshot:
      // Its id has place 0 of its step: what the step tells behind it has to be above that.
      if (!op.second.empty()) place_ = std::max<uint64_t>(place_, 1);
      return Status::Ok();
    default:  // keyspaces, and other feeds
      return Status::Ok();
  }
}

void FeedDecoder::OnCreateFeed(const DecodedOp& op) {
  telling_ = true;
  Feed feed;
  FeedSchemas schemas;
  std::string_view rest = op.third;
  if (!DecodeFeedDefinition(&rest, &feed) || !DecodeFeedSchemas(&rest, &schemas)) return;
  for (const auto& [table, commands] : schemas.tables) {
    if (Begin("schema", table)) Add("commands", commands);
  }
}

Status FeedDecoder::OnSetSchema(const DecodedOp& op) {
  TableNow& table = TableOf(op.id);
  if (!table.is_there) return Unreadable("a table that is not there");
  TableSchema schema;
  std::string_view bytes = op.first;
  RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
  const std::string before = table.covered ? Commands(table) : std::string();
  Set(&table, std::move(table.keyspace), std::move(table.name), std::move(schema));
  if (!table.covered || !telling_) return Status::Ok();
  // How far an index has come is nothing to tell.
  const std::string after = Commands(table);
  if (before != after && Begin("schema", table.name)) Add("commands", after);
  return Status::Ok();
}

void FeedDecoder::OnRename(const DecodedOp& op) {
  TableNow& table = TableOf(op.id);
  if (!table.is_there) return;
  const auto name_of = [this](const std::string& keyspace, const std::string& name) {
    return keyspace == feed_.keyspace ? name : keyspace + "/" + name;
  };
  const bool was_covered = table.covered;
  const std::string from = name_of(table.keyspace, table.name);
  Set(&table, std::string(op.first), std::string(op.second), std::move(table.schema));
  if (!telling_ || (!was_covered && !table.covered)) return;
  if (Begin("rename", from)) Add("to", name_of(table.keyspace, table.name));
}

Status FeedDecoder::OnCopy(const DecodedOp& op) {
  CopyDefinition definition;
  TableSchema schema;
  if (!DecodeCopyDefinition(op.third, &definition)) return Unreadable("a copy that means nothing");
  std::string_view bytes = definition.schema;
  RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
  TableNow& table = tables_[op.id];
  Set(&table, std::string(op.first), std::string(op.second), std::move(schema));
  if (!table.covered || !telling_ || !Begin("copy", table.name)) return Status::Ok();
  const bool is_near = definition.source_keyspace == feed_.keyspace;
  Add("from", is_near ? definition.source : definition.source_keyspace + "/" + definition.source);
  Add("at", FeedId::Of(definition.as_at_micros, 0).text());
  return Status::Ok();
}

bool FeedDecoder::IsReplacedByRename(const DecodedOp& drop, MutationReader later) {
  DecodedOp next;
  const bool is_replaced = later.Next(&next) && (next.op == MutationOp::kRenameTable ||
                                                 next.op == MutationOp::kCopyTable);
  if (!is_replaced) return false;
  const TableNow& dropped = TableOf(drop.id);
  return next.first == dropped.keyspace && next.second == dropped.name;
}

}  // namespace cellar
