// See applied_changes.h.
// Collect and CollectSchema read the ops of a record into `changes_`; Tell makes messages of them.
#include "commands/session/applied_changes.h"

#include <algorithm>

#include "base/assert.h"
#include "commands/config/config.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "engine/feeds/feed_group.h"
#include "engine/state/engine.h"
#include "engine/state/table_copy.h"

namespace cellar {

void AppliedChanges::BeforeApply(std::string_view payload) {
  changes_.clear();
  if (!host_.services().changes_are_heard()) [[likely]]
    return;
  MutationReader reader(payload);
  int64_t stamp = 0;
  (void)reader.ReadStamp(&stamp);  // what is damaged is refused behind this
  DecodedOp op;
  while (reader.Next(&op)) Collect(op);
  EndRow();
  CELLAR_ASSERT(row_key_.empty());
  table_id_ = 0;
  // Names and schemas are those of this record as far as it was read. The next one begins with what
  // has been applied.
  known_.clear();
  known_feeds_.clear();
}

AppliedChanges::Known* AppliedChanges::Know(uint64_t table_id) {
  const auto known = known_.find(table_id);
  if (known != known_.end()) return &known->second;
  const Table* const table = host_.store().engine().FindTableById(table_id);
  if (table == nullptr) return nullptr;
  Known& made = known_[table_id];
  made.name = {table->keyspace(), table->name()};
  made.schema = table->schema();
  return &made;
}

void AppliedChanges::EndRow() {
  if (row_key_.empty()) return;
  const std::string row_key = std::exchange(row_key_, {});
  const Known* const table = Know(table_id_);
  const bool changed = put_ || deleted_;
  if (table != nullptr && (changed || reclaimed_)) {
    Add(changed ? Kind::kRow : Kind::kReclaimed, table->name, put_ ? "cput" : "cdel");
    changes_.back().row_key = row_key;
  }
  put_ = deleted_ = reclaimed_ = false;
}

// What befalls a row is gathered until the row ends: it becomes one event. kRecordNumber, and what
// says nothing of data, is none.
void AppliedChanges::Collect(const DecodedOp& op) {
  switch (op.op) {
    case MutationOp::kStep:
    case MutationOp::kTable:
      EndRow();
      table_id_ = op.op == MutationOp::kTable ? op.id : 0;
      break;
    case MutationOp::kRow:
      EndRow();
      row_key_ = op.first;
      break;
    case MutationOp::kPut:
    case MutationOp::kReplace:
    case MutationOp::kAddInput:
    case MutationOp::kMergeState:
      put_ = true;
      break;
    case MutationOp::kDeleteCell:
    case MutationOp::kDeleteRange:
    case MutationOp::kDeleteRow:
      deleted_ = true;
      break;
    case MutationOp::kReclaimColumn:
      reclaimed_ = true;
      break;
    case MutationOp::kDeleteRows:
      EndRow();
      // A command that deletes several ranges is one event.
      if (const Known* const table = Know(table_id_);
          table != nullptr && (changes_.empty() || changes_.back().kind != Kind::kCells ||
                               changes_.back().name != table->name)) {
        Add(Kind::kCells, table->name, "cdelrange");
      }
      break;
    case MutationOp::kRecordNumber:
    case MutationOp::kOldCells:
      break;
    case MutationOp::kCreateFeed:
    case MutationOp::kDropFeed:
    case MutationOp::kFeedGroup:
      EndRow();
      table_id_ = 0;
      CollectFeed(op);
      break;
    default:
      EndRow();
      table_id_ = 0;
      CollectSchema(op);
      break;
  }
}

// Runs before the record is applied, so that what it drops still has a name. known_ has the tables
// that this very record creates or renames.
void AppliedChanges::CollectSchema(const DecodedOp& op) {
  if (op.op == MutationOp::kDropKeyspace) {
    for (const Table* const table : host_.store().Tables(op.first))
      Add(Kind::kEvent, {table->keyspace(), table->name()}, "table.drop");
    return;
  }
  if (op.op == MutationOp::kCreateTable) {
    Known& made = known_[op.id];
    made.name = {std::string(op.first), std::string(op.second)};
    std::string_view bytes = op.third;
    (void)DecodeTableSchema(&bytes, &made.schema);
    Add(Kind::kNew, made.name, "new");
    return Add(Kind::kEvent, made.name, "table.create");
  }
  if (op.op == MutationOp::kCreateSnapshot) {
    if (!op.second.empty())
      Add(Kind::kEvent, {std::string(op.first), std::string(op.second)}, "snapshot");
    return;
  }
  if (op.op == MutationOp::kCopyTable) {
    Known& made = known_[op.id];
    made.name = {std::string(op.first), std::string(op.second)};
    CopyDefinition copy;
    (void)DecodeCopyDefinition(op.third, &copy);
    std::string_view bytes = copy.schema;
    (void)DecodeTableSchema(&bytes, &made.schema);
    return Add(Kind::kEvent, made.name, "copy_to");
  }
  Known* const table = Know(op.id);
  if (table == nullptr) return;
  switch (op.op) {
    case MutationOp::kDropTable:
      return Add(Kind::kEvent, table->name, "table.drop");
    case MutationOp::kTruncateTable:
      return Add(Kind::kEvent, table->name, "table.truncate");
    case MutationOp::kRenameTable:
      Add(Kind::kEvent, table->name, "rename_from");
      table->name = {std::string(op.first), std::string(op.second)};
      return Add(Kind::kEvent, table->name, "rename_to");
    case MutationOp::kSetSchema:
      return CollectSchemaOf(op.id, op.first);
    default:
      break;
  }
}

namespace {

// Whether `some` has a name that `others` does not have.
template <typename Named>
bool HasMore(const std::vector<Named>& some, const std::vector<Named>& others) {
  return std::any_of(some.begin(), some.end(), [&others](const Named& one) {
    return std::none_of(others.begin(), others.end(),
                        [&one](const Named& other) { return other.name == one.name; });
  });
}

}  // namespace

void AppliedChanges::CollectSchemaOf(uint64_t table_id, std::string_view bytes) {
  Known* const table = Know(table_id);
  CELLAR_ASSERT(table != nullptr);  // CollectSchema has asked for it
  TableSchema after;
  if (!DecodeTableSchema(&bytes, &after).ok()) return;
  const TableSchema before = std::exchange(table->schema, std::move(after));
  const TableSchema& now = table->schema;
  if (DifferInIndexStatesAlone(before, now)) return;
  std::string_view event = "family.alter";
  if (HasMore(now.families, before.families)) event = "family.add";
  if (HasMore(before.families, now.families)) event = "family.drop";
  if (HasMore(now.indexes, before.indexes)) event = "index.create";
  if (HasMore(before.indexes, now.indexes)) event = "index.drop";
  Add(Kind::kEvent, table->name, event);
}

namespace {

// Empty: entries have been given out or acknowledged, which is no event.
std::string_view EventOfGroup(std::string_view changes) {
  if (changes.empty()) return {};
  switch (FeedGroupChanges::FirstOf(changes)) {
    case FeedGroupChanges::Kind::kCreate:
      return "xgroup-create";
    case FeedGroupChanges::Kind::kDestroy:
      return "xgroup-destroy";
    case FeedGroupChanges::Kind::kSetLast:
      return "xgroup-setid";
    case FeedGroupChanges::Kind::kAddConsumer:
      return "xgroup-createconsumer";
    case FeedGroupChanges::Kind::kDropConsumer:
      return "xgroup-delconsumer";
    default:
      return {};
  }
}

}  // namespace

void AppliedChanges::CollectFeed(const DecodedOp& op) {
  if (op.op == MutationOp::kCreateFeed) {
    const Name& made = known_feeds_[op.id] = {std::string(op.first), std::string(op.second)};
    return Add(Kind::kEvent, made, "feed");
  }
  if (!known_feeds_.contains(op.id)) {
    const Feed* const feed = host_.store().engine().feeds().FindById(op.id);
    if (feed == nullptr) return;
    known_feeds_[op.id] = {feed->keyspace, feed->name};
  }
  const Name& name = known_feeds_[op.id];
  if (op.op == MutationOp::kDropFeed) return Add(Kind::kEvent, name, "del");
  const std::string_view event = EventOfGroup(op.second);
  if (!event.empty()) Add(Kind::kGroup, name, event);
}

void AppliedChanges::Tell(const Change& change) {
  const Name& name = change.name;
  if (change.kind != Kind::kRow && change.kind != Kind::kReclaimed) {
    const uint32_t kind = change.kind == Kind::kEvent ? kNotifyGeneric
                          : change.kind == Kind::kNew ? kNotifyNew
                                                      : kNotifyTable;
    return NotifyTable(host_, kind, change.event, name.keyspace, name.table);
  }
  // By the name that it has now: a record that changes rows and then drops the table tells of that.
  const Table* const table = host_.store().FindTableIfAny(name.keyspace, name.table);
  if (table == nullptr) return;
  NotifyRowKey(host_, change.kind == Kind::kRow ? change.event : std::string_view(), *table,
               change.row_key);
}

void AppliedChanges::AfterApply() {
  if (changes_.empty()) [[likely]]
    return;
  // No client of this node has made the change: NOLOOP keeps it from nobody.
  host_.services().tracking.SetNoWriter();
  const std::vector<Change> changes = std::exchange(changes_, {});
  for (const Change& change : changes) Tell(change);
}

}  // namespace cellar
