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
#include "engine/table/version_walk.h"
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

void FeedDecoder::Begin(const LogRecord& record, int64_t before_micros) {
  // A record with schemas leaves others behind: they are looked up again, in the history as it is
  // by then.
  if (outline_.has_schemas) tables_.clear();
  outline_ = {};
  outlined_changes_ = 0;
  passed_ = {};
  ready_at_ = ready_end_ = closed_end_ = 0;
  open_ = false;
  rows_.Clear();
  const bool is_told = record.kind == RecordKind::kCommand && record.commit_micros > floor_micros_;
  phase_ = is_told ? Phase::kOutline : Phase::kDone;
  if (!is_told) return;
  payload_ = record.payload;
  commit_micros_ = record.commit_micros;
  before_micros_ = before_micros;
  base_micros_ = std::max(before_micros, floor_micros_);
  reader_ = MutationReader(payload_);
  int64_t stamp = 0;
  (void)reader_.ReadStamp(&stamp);  // if it is cut short, Next says so
}

// So many ops at a time.
Status FeedDecoder::OutlineOn() {
  constexpr int kOpsAtOnce{64};
  DecodedOp op;
  for (int i = 0; i < kOpsAtOnce; ++i) {
    if (!reader_.Next(&op)) {
      BeginOps();
      return reader_.status();
    }
    if (op.op == MutationOp::kStep) {
      ++outline_.steps;
    } else if (op.op == MutationOp::kTable) {
      outline_.matters = outline_.matters || outline_.has_schemas || TableOf(op.id).covered;
    } else if (op.op == MutationOp::kPreImages) {
      outlined_changes_ += op.number;
    } else if (op.op != MutationOp::kRow) {
      ++outlined_changes_;
      const bool is_schema = op.op >= MutationOp::kCreateKeyspace &&
                             op.op != MutationOp::kFeedGroup && op.op != MutationOp::kFeedHome;
      if (is_schema) outline_.has_schemas = outline_.matters = true;
    }
  }
  work_ += kOpsAtOnce / 8;
  return Status::Ok();
}

void FeedDecoder::BeginOps() {
  phase_ = reader_.status().ok() && outline_.matters ? Phase::kOps : Phase::kDone;
  if (phase_ == Phase::kDone) return;
  if (outline_.steps == 1 && payload_.size() >= kFeedLargeStepBytes)
    outline_.step_micros_more = FeedMicrosOfStep(outlined_changes_) - 1;
  reader_ = MutationReader(payload_);
  int64_t stamp = 0;
  (void)reader_.ReadStamp(&stamp);
  ahead_ = reader_;
  ahead_changes_ = 0;
  change_ = 0;
  part_ = {};
  in_part_ = false;
  next_list_.reset();
  list_ = {};
  skip_cells_ = 0;
  spill_.kind = SpillKind::kNone;
  part_puts_.clear();
  part_folds_.clear();
  step_at_ = 0;
}

// A record that says nothing of the feed's tables is left after a look at its outline. One in which
// the feed begins is read from there on: what the steps before have done to schemas is in the
// history already.
Result<FeedDecoder::Progress> FeedDecoder::Go(const FeedId& after, const FeedId& to,
                                              uint64_t work_max, FeedSink* sink) {
  CELLAR_ASSERT(passed_ <= after);
  after_ = after;
  to_ = to;
  const uint64_t end = work_ + std::min(work_max, UINT64_MAX - work_);
  for (;;) {
    if (!GiveOut(sink)) return Progress::kEnough;
    if (phase_ == Phase::kDone) return Progress::kDone;
    if (work_ >= end) return Progress::kMore;
    RETURN_IF_ERROR(Advance());
  }
}

// A little further; an entry that comes of it waits until the next one, or the end, is known.
Status FeedDecoder::Advance() {
  if (phase_ == Phase::kOutline) return OutlineOn();
  CELLAR_ASSERT(phase_ == Phase::kOps);
  if (spill_.kind != SpillKind::kNone) return SpillOn();
  if (skip_cells_ > 0) return SkipOld();
  if (NeedsPart()) return LookAhead();
  return NextOp();
}

// Steps of one record get a microsecond each, the last one the commit time or one just before it,
// so that ids ascend.
Status FeedDecoder::NextOp() {
  DecodedOp op;
  ++work_;
  if (!reader_.Next(&op)) {
    EndStep();
    phase_ = Phase::kDone;
    return reader_.status();
  }
  if (op.op != MutationOp::kStep) return OnOp(op, reader_);
  EndStep();
  step_micros_ = commit_micros_ - (outline_.steps - ++step_at_) - outline_.step_micros_more;
  BeginStep();
  return Status::Ok();
}

void FeedDecoder::BeginStep() {
  const int64_t before_micros = step_at_ == 1 ? before_micros_ : step_micros_ - 1;
  telling_ = before_micros > feed_.after_micros;
  passing_ = step_micros_ + outline_.step_micros_more <= floor_micros_;
  place_ = 0;
  table_ = nullptr;
  rewrites_ = false;
  unowned_ = false;
}

void FeedDecoder::EndStep() {
  if (feed_.by_row)
    CloseAll(false);
  else if (open_)
    Close(false);
}

// What a whole table has met stands between the changes of rows before it and behind it.
bool FeedDecoder::Begin(std::string_view op, std::string_view table) {
  if (feed_.by_row) EndRows();
  return BeginEntry(op, table);
}

bool FeedDecoder::BeginChange(std::string_view op) {
  if (!feed_.by_row) return BeginEntry(op, table_->name);
  if (rows_.changes() == FeedRows::kChangesMax) CloseAll(true);
  FeedRows::Row& row = rows_.Of(table_->name, row_text_);
  if (++row.changes == 1) {
    row.wanted = BeginEntry("row", table_->name);
    row.entry = current_;
    if (row.wanted) Add("row", row_text_);
  }
  if (!row.wanted) return false;
  current_ = row.entry;
  number_ = FormatUint64(row.changes);
  Add("op", op);
  return true;
}

void FeedDecoder::EndRows() {
  for (const auto& [key, row] : rows_.all())
    if (row.wanted) AddTo(row.entry, "changes", FormatUint64(row.changes));
  rows_.Clear();
}

void FeedDecoder::CloseAll(bool more) {
  EndRows();
  for (; closed_end_ < ready_end_; ++closed_end_)
    if (more || closed_end_ + 1 < ready_end_) AddTo(closed_end_, "more", "1");
  open_ = false;
}

bool FeedDecoder::BeginEntry(std::string_view op, std::string_view table) {
  if (open_ && !feed_.by_row) Close(true);
  // Entries that were given out are counted as well: a place in a step always means the same one.
  const FeedId id = FeedId::Of(step_micros_, place_++);
  if (id <= after_) {
    passed_ = std::max(passed_, id);
    return false;
  }
  if (ready_end_ == ready_.size()) ready_.emplace_back();
  current_ = ready_end_++;
  number_.clear();
  ready_[current_].Clear(id);
  open_ = true;
  work_ += 2;
  Add("op", op);
  Add("table", table);
  return true;
}

// Where rows may still get changes all of the step waits.
bool FeedDecoder::GiveOutClosed(FeedSink* sink) {
  while (ready_at_ < closed_end_) {
    const FeedEntry& entry = ready_[ready_at_];
    if (entry.id > to_) return false;
    ++ready_at_;
    passed_ = std::max(passed_, entry.id);
    if (entry.id > after_ && !sink->OnEntry(entry)) return false;
  }
  if (ready_at_ == ready_end_) ready_at_ = ready_end_ = closed_end_ = 0;
  return true;
}

bool FeedDecoder::GiveOut(FeedSink* sink) {
  if (feed_.by_row) return GiveOutClosed(sink);
  while (ready_at_ < ready_end_) {
    const FeedEntry& entry = ready_[ready_at_];
    if (entry.id > to_) return false;
    if (open_ && ready_at_ + 1 == ready_end_) {
      // Alone it goes to the front, so that few are ever needed.
      if (ready_at_ > 0) std::swap(ready_.front(), ready_[ready_at_]);
      ready_at_ = current_ = 0;
      ready_end_ = 1;
      return true;
    }
    ++ready_at_;
    passed_ = std::max(passed_, entry.id);
    if (entry.id > after_ && !sink->OnEntry(entry)) return false;
  }
  ready_at_ = ready_end_ = 0;
  return true;
}

// --- ops

// Cells of one row and kind are gathered into one entry; any other op ends it.
Status FeedDecoder::OnOp(const DecodedOp& op, const MutationReader& later) {
  if (op.op == MutationOp::kPreImages) return Status::Ok();
  if (op.op != MutationOp::kTable && op.op != MutationOp::kRow) RETURN_IF_ERROR(NextChange());
  if (passing_) return Status::Ok();
  if (op.op == MutationOp::kRewrites) rewrites_ = op.number != 0;
  // What another set has written, or goes on with.
  unowned_ = unowned_ || IsOfUnownedRows(op.op);
  if (unowned_) return Status::Ok();
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
      return rewrites_ && !feed_.old ? Status::Ok() : OnCellOp(op);
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
    if (!knows_old()) return TellDeletion(op);
    TellRemoved(op, row_key_);
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
  if (!knows_old()) return TellDeletion(op);
  TellRemoved(op, {});
  return Status::Ok();
}

// REQUIRES: of an op inside a row, that it was the row at hand.
Status FeedDecoder::TellDeletion(const DecodedOp& op) {
  if (op.op == MutationOp::kDeleteRows) {
    if (!Begin("delrows", table_->name)) return Status::Ok();
    return AddBounds(table_->schema.key, op.first, op.second);
  }
  if (!RowMatters()) return Status::Ok();
  if (op.op == MutationOp::kDeleteRow) {
    if (BeginChange("delrange")) AddRow();
    return Status::Ok();
  }
  const FamilySchema& family = *table_->families.find(static_cast<uint32_t>(op.id))->second.schema;
  if (op.op == MutationOp::kDeleteCell) {
    if (BeginChange("del")) AddPlace(family, op.first, op.number);
    return Status::Ok();
  }
  CELLAR_ASSERT(op.op == MutationOp::kDeleteRange);
  if (!BeginChange("delrange")) return Status::Ok();
  AddRow();
  Add("family", family.name);
  return AddBounds(family.order, op.first, op.second);
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
  AddRow();
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
  ReadStoredCell(op.second, &plain_, &cell);  // it has been applied
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
      TellReclaimed(schema, op);
      return Status::Ok();
    case MutationOp::kDeleteCell:
    case MutationOp::kDeleteRange:
      if (!knows_old()) return TellDeletion(op);
      TellRemoved(
          op, ColumnKey(schema, op.op == MutationOp::kDeleteCell ? op.first : std::string_view()));
      return Status::Ok();
    case MutationOp::kAddInput:
    case MutationOp::kMergeState: {
      const bool merges = op.op == MutationOp::kMergeState;
      NoteFoldOfPart(schema, op);
      if (!BeginChange(merges ? "merge" : "add")) return Status::Ok();
      AddPlace(schema, op.first, op.number);
      Add("value", op.second);
      return Status::Ok();
    }
    default:
      if (BeginChange("put")) AddPut(schema, op);
      NotePutOfPart(schema, op);
      // The version that it has displaced was live until then.
      if (op.op == MutationOp::kReplace) TellReclaimed(schema, op);
      return Status::Ok();
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
      if (table.covered && tells_tables() && Begin("schema", table.name))
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
      if (table.covered && tells_tables() && !IsReplacedByRename(op, later))
        (void)Begin("drop", table.name);
      table = TableNow{};
      return Status::Ok();
    }
    case MutationOp::kTruncateTable: {
      const TableNow& table = TableOf(op.id);
      if (table.covered && tells_tables()) (void)Begin("truncate", table.name);
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
  // In front of the first feed, in its step: what is dropped by then has no history.
  if (!table.is_there && !telling_) return Status::Ok();
  if (!table.is_there) return Unreadable("a table that is not there");
  TableSchema schema;
  std::string_view bytes = op.first;
  RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
  const std::string before = table.covered ? Commands(table) : std::string();
  Set(&table, std::string(table.keyspace), std::string(table.name), std::move(schema));
  if (!table.covered || !tells_tables()) return Status::Ok();
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
  if (!tells_tables() || (!was_covered && !table.covered)) return;
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
  if (!table.covered || !tells_tables() || !Begin("copy", table.name)) return Status::Ok();
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
