// See applied_changes.h.
// Collect and CollectSchema read the ops of a record into `steps_`, as who listens is to be told.
#include "commands/session/applied_changes.h"

#include <algorithm>

#include "base/assert.h"
#include "commands/config/config.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "engine/feeds/feed_group.h"
#include "engine/state/engine.h"
#include "engine/state/snapshot_set.h"
#include "engine/state/table_copy.h"

namespace cellar {
namespace {

// Whoever has sent the command to the leader: who that is its step tells.
constexpr Tracking::Writer kSomebody{.id = 0, .step_micros = -1};

}  // namespace

void AppliedChanges::BeforeApply(std::string_view payload, int64_t commit_micros) {
  steps_.clear();
  if (!host_.services().changes_are_heard()) [[likely]]
    return;
  MutationReader reader(payload);
  int64_t stamp = 0;
  (void)reader.ReadStamp(&stamp);  // what is damaged is refused behind this
  DecodedOp op;
  while (reader.Next(&op)) Collect(op);
  EndRow();
  EndDrops();
  CELLAR_ASSERT(row_key_.empty());
  // The steps of a record are a microsecond apart, the last one has its time (AppendJoined).
  int64_t step_micros = commit_micros - static_cast<int64_t>(steps_.size());
  for (Step& step : steps_) {
    ++step_micros;
    for (Tracking::Change& change : step.changes)
      if (change.writer == kSomebody) change.writer = {.id = 0, .step_micros = step_micros};
  }
  table_id_ = 0;
  rewrites_ = ranges_ = false;
  // Names and schemas are those of this record as far as it was read. The next one begins with what
  // has been applied.
  known_.clear();
  known_feeds_.clear();
  tables_.clear();
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
    EndDrops();
    ranges_ = false;
    // By the name that it has here: what comes behind may rename or drop it.
    std::string name = TrackedTableName(table->name.keyspace, table->name.table) + ':';
    // What retention has dropped is nobody's writing: NOLOOP keeps it from no one.
    const Tracking::Writer writer = changed ? kSomebody : Tracking::Writer{};
    if (table->schema.key.Decode(row_key, &name))
      AddChange({Tracking::Extent::kRow, std::move(name), writer});
    if (changed) AddEvent(kNotifyTable, table->name, put_ ? "cput" : "cdel");
  }
  put_ = deleted_ = reclaimed_ = false;
}

void AppliedChanges::AddChange(Tracking::Change change) {
  if (host_.services().tracking.active()) steps_.back().changes.push_back(std::move(change));
}

void AppliedChanges::AddEvent(uint32_t kind, const Name& name, std::string_view event) {
  if ((host_.services().config.notify_flags & kind) == 0) return;
  steps_.back().events.push_back({std::string(event), name.keyspace, name.table});
}

void AppliedChanges::Add(uint32_t kind, const Name& name, std::string_view event) {
  EndDrops();
  ranges_ = false;
  AddChange({Tracking::Extent::kTable, TrackedTableName(name.keyspace, name.table), kSomebody});
  AddEvent(kind, name, event);
}

int64_t AppliedChanges::CountTables(const std::string& keyspace, int64_t more) {
  const auto [found, is_new] = tables_.try_emplace(keyspace, 0);
  // Asked before anything of the record is applied.
  if (is_new) found->second = static_cast<int64_t>(host_.store().Tables(keyspace).size());
  return found->second += more;
}

void AppliedChanges::AddDrop(const Name& name) {
  ranges_ = false;
  (void)CountTables(name.keyspace, -1);
  drops_.push_back(name);
  AddEvent(kNotifyGeneric, name, "table.drop");
}

void AppliedChanges::EndDrops() {
  if (drops_.empty()) return;
  const std::vector<Name> drops = std::exchange(drops_, {});
  // One alone has a name that says as much.
  const bool flushed =
      drops.size() > 1 && std::all_of(drops.begin(), drops.end(), [this](const Name& name) {
        return CountTables(name.keyspace, 0) == 0;
      });
  if (flushed) return AddChange({Tracking::Extent::kAll, {}, kSomebody});
  for (const Name& name : drops)
    AddChange({Tracking::Extent::kTable, TrackedTableName(name.keyspace, name.table), kSomebody});
}

// What befalls a row is gathered until the row ends: it becomes one event. kRecordNumber, and what
// says nothing of data, is none.
void AppliedChanges::Collect(const DecodedOp& op) {
  if (steps_.empty() && op.op != MutationOp::kStep) steps_.emplace_back();
  switch (op.op) {
    case MutationOp::kStep:
      EndRow();
      EndDrops();
      steps_.emplace_back();
      table_id_ = 0;
      ranges_ = false;
      break;
    case MutationOp::kTable:
      EndRow();
      ranges_ = ranges_ && table_id_ == op.id;
      table_id_ = op.id;
      break;
    case MutationOp::kRow:
      EndRow();
      row_key_ = op.first;
      break;
    case MutationOp::kPut:
    case MutationOp::kReplace:
    case MutationOp::kAddInput:
    case MutationOp::kMergeState:
      // Cells that a change of types has rewritten are no event; readers must read them again.
      (rewrites_ ? reclaimed_ : put_) = true;
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
      if (const Known* const table = Know(table_id_); table != nullptr && !ranges_)
        Add(kNotifyTable, table->name, "cdelrange");
      ranges_ = true;
      break;
    case MutationOp::kRewrites:
      rewrites_ = op.number != 0;
      break;
    case MutationOp::kRecordNumber:
    case MutationOp::kPreImages:
      break;
    case MutationOp::kCreateFeed:
    case MutationOp::kDropFeed:
    case MutationOp::kFeedGroup:
    case MutationOp::kFeedHome:
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
    EndDrops();
    AddChange({Tracking::Extent::kAll, {}, kSomebody});
    tables_[std::string(op.first)] = 0;
    for (const Table* const table : host_.store().Tables(op.first))
      AddEvent(kNotifyGeneric, {table->keyspace(), table->name()}, "table.drop");
    return;
  }
  if (op.op == MutationOp::kCreateTable) {
    Known& made = known_[op.id];
    made.name = {std::string(op.first), std::string(op.second)};
    std::string_view bytes = op.third;
    (void)DecodeTableSchema(&bytes, &made.schema);
    (void)CountTables(made.name.keyspace, 1);
    AddEvent(kNotifyNew, made.name, "new");
    return Add(kNotifyGeneric, made.name, "table.create");
  }
  if (op.op == MutationOp::kCreateSnapshot) {
    if (!op.second.empty())
      Add(kNotifyGeneric, {std::string(op.first), std::string(op.second)}, "snapshot");
    return;
  }
  if (op.op == MutationOp::kNameSnapshot) {
    const NamedSnapshot* const named = host_.store().engine().snapshots().FindById(op.id);
    if (named != nullptr && !IsCursorName(op.first))
      Add(kNotifyGeneric, {named->keyspace, std::string(op.first)}, "snapshot");
    return;
  }
  if (op.op == MutationOp::kCopyTable) {
    Known& made = known_[op.id];
    made.name = {std::string(op.first), std::string(op.second)};
    CopyDefinition copy;
    (void)DecodeCopyDefinition(op.third, &copy);
    std::string_view bytes = copy.schema;
    (void)DecodeTableSchema(&bytes, &made.schema);
    (void)CountTables(made.name.keyspace, 1);
    return Add(kNotifyGeneric, made.name, "copy_to");
  }
  Known* const table = Know(op.id);
  if (table == nullptr) return;
  switch (op.op) {
    case MutationOp::kDropTable:
      return AddDrop(table->name);
    case MutationOp::kTruncateTable:
      return Add(kNotifyGeneric, table->name, "table.truncate");
    case MutationOp::kRenameTable:
      Add(kNotifyGeneric, table->name, "rename_from");
      (void)CountTables(table->name.keyspace, -1);
      table->name = {std::string(op.first), std::string(op.second)};
      (void)CountTables(table->name.keyspace, 1);
      return Add(kNotifyGeneric, table->name, "rename_to");
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
  std::string_view event = before.placement != now.placement ? "table.alter" : "family.alter";
  if (HasMore(now.families, before.families)) event = "family.add";
  if (HasMore(before.families, now.families)) event = "family.drop";
  if (HasMore(now.indexes, before.indexes)) event = "index.create";
  if (HasMore(before.indexes, now.indexes)) event = "index.drop";
  Add(kNotifyGeneric, table->name, event);
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
    return Add(kNotifyGeneric, made, "feed");
  }
  if (op.op == MutationOp::kFeedHome) return;
  const uint64_t id = FeedOfGroups(op.id);
  if (!known_feeds_.contains(id)) {
    const Feed* const feed = host_.store().engine().feeds().FindById(id);
    if (feed == nullptr) return;
    known_feeds_[id] = {feed->keyspace, feed->name};
  }
  const Name& name = known_feeds_[id];
  if (op.op == MutationOp::kDropFeed) return Add(kNotifyGeneric, name, "del");
  const std::string_view event = EventOfGroup(op.second);
  if (!event.empty()) Add(kNotifyTable, name, event);
}

void AppliedChanges::AfterApply() {
  if (steps_.empty()) [[likely]]
    return;
  const std::vector<Step> steps = std::exchange(steps_, {});
  for (const Step& step : steps) {
    host_.services().tracking.Tell(host_, step.changes);
    TableEvents::Tell(host_, step.events);
  }
}

}  // namespace cellar
