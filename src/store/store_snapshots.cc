// Named snapshots and copies of tables: checked, then logged and carried out like any change of
// the schema. What is due goes by itself, and drop-keep makes snapshots of what is about to go.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/state/snapshot_set.h"
#include "engine/state/table_copy.h"
#include "store/frozen_tables.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

constexpr std::string_view kDroppedPrefix{"dropped."};

Status NoSnapshot(std::string_view keyspace, std::string_view name) {
  return Status::Error(ErrorCode::kNoSnapshot,
                       "no snapshot " + Quote(name) + " in keyspace " + Quote(keyspace));
}

}  // namespace

Status Store::FixedTable(const Table& table) {
  if (!table.frozen()) return ClusterKeeps();
  return Status::Error(ErrorCode::kReadOnly, Quote(table.shown_name()) + " is a snapshot");
}

Status Store::NoTableInSnapshot(std::string_view keyspace, std::string_view word) const {
  std::string_view table;
  std::string_view name;
  const bool names_one = SplitSnapshot(word, &table, &name);
  CELLAR_ASSERT(names_one);
  if (engine_->snapshots().Find(keyspace, name) == nullptr) return NoSnapshot(keyspace, name);
  return Status::Error(ErrorCode::kNoTable, "no table " + Quote(table) + " in snapshot " +
                                                Quote(name) + " of keyspace " + Quote(keyspace));
}

Result<const NamedSnapshot*> Store::FindSnapshot(std::string_view keyspace,
                                                 std::string_view name) const {
  if (!engine_->KeyspaceExists(keyspace))
    return Status::Error(ErrorCode::kNoKeyspace, "no keyspace " + Quote(keyspace));
  const NamedSnapshot* snapshot = engine_->snapshots().Find(keyspace, name);
  if (snapshot == nullptr) return NoSnapshot(keyspace, name);
  return snapshot;
}

int64_t Store::CommitMicros() const {
  return std::max(std::clamp<int64_t>(now_micros_, 0, kCommitTimeMax / 2),
                  journal_->last_commit_micros() + 1);
}

Store::SnapshotIds Store::NextIds() const {
  return {engine_->table_id_next(), engine_->tree_id_next()};
}

// Ids are given in the log, so that every node that applies the record gives the same ones.
uint64_t Store::AddSnapshot(std::string_view keyspace, std::string_view name,
                            const std::vector<const Table*>& tables, int64_t ttl_micros,
                            SnapshotIds* ids) {
  SnapshotDefinition definition{.created_micros = CommitMicros(),
                                .ttl_micros = ttl_micros,
                                .tree_id_first = ids->tree,
                                .table_ids = {}};
  const uint64_t id = ids->table;
  ids->table += 1 + tables.size();
  for (const Table* table : tables) {
    definition.table_ids.push_back(table->id());
    ids->tree += table->groups();
  }
  mutation_.CreateSnapshot(keyspace, name, id, EncodeSnapshotDefinition(definition));
  return id;
}

Status Store::CheckNewSnapshot(std::string_view keyspace, std::string_view name,
                               Overwrite replace) const {
  RETURN_IF_ERROR(CheckKeyspaceOpen(*engine_, keyspace));
  RETURN_IF_ERROR(CheckFeature(Feature::kSnapshots));
  const SnapshotSet& snapshots = engine_->snapshots();
  const NamedSnapshot* old = snapshots.FindAny(keyspace, name);
  if (old != nullptr && !old->hidden && replace == Overwrite::kNo) {
    return Status::Error(ErrorCode::kBusyKey, "snapshot " + Quote(name) +
                                                  " exists already in keyspace " + Quote(keyspace));
  }
  if (IsCursorName(name)) return Status::Ok();
  if (old == nullptr && snapshots.named() >= options_.snapshots_max) {
    return Status::Error(
        ErrorCode::kTooLarge,
        "there are at most " + FormatUint64(options_.snapshots_max) + " snapshots (snapshots-max)");
  }
  return Status::Ok();
}

Status Store::CreateSnapshot(std::string_view keyspace, std::string_view name,
                             const std::vector<const Table*>& tables, int64_t ttl_micros,
                             Overwrite replace) {
  (void)SweepSnapshots();
  RETURN_IF_ERROR(CheckNewSnapshot(keyspace, name, replace));
  const NamedSnapshot* old = engine_->snapshots().FindAny(keyspace, name);
  BeginMutation();
  if (old != nullptr) mutation_.DropSnapshot(old->id);
  SnapshotIds ids = NextIds();
  const uint64_t id = AddSnapshot(keyspace, name, tables, ttl_micros, &ids);
  RETURN_IF_ERROR(CommitSchema(nullptr));
  if (!in_transaction_) NoteSnapshot(id);
  return Status::Ok();
}

Result<uint64_t> FrozenTables::Freeze(std::string_view keyspace,
                                      const std::vector<const Table*>& tables, int64_t ttl_micros) {
  RETURN_IF_ERROR(CheckKeyspaceOpen(*store_.engine_, keyspace));
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kSnapshots));
  store_.BeginMutation();
  Store::SnapshotIds ids = store_.NextIds();
  const uint64_t id = store_.AddSnapshot(keyspace, {}, tables, ttl_micros, &ids);
  RETURN_IF_ERROR(store_.CommitSchema(nullptr));
  if (!store_.in_transaction_) store_.NoteSnapshot(id);
  return id;
}

Status FrozenTables::CheckCursors() const {
  const SnapshotSet& snapshots = store_.engine_->snapshots();
  const uint64_t most = store_.options_.snapshots_max;
  if (snapshots.cursors() < most) return Status::Ok();
  return Status::Error(ErrorCode::kTooLarge,
                       "there are at most " + FormatUint64(most) +
                           " cursors of CSCAN ... SNAPSHOT over several sets (snapshots-max)");
}

Status FrozenTables::Drop(const std::vector<uint64_t>& ids) {
  store_.BeginMutation();
  for (const uint64_t id : ids) store_.mutation_.DropSnapshot(id);
  return store_.CommitSchema(nullptr);
}

// One that had the name is dropped by the same record: there is no moment without a snapshot of
// that name.
Status FrozenTables::Name(uint64_t id, std::string_view name, Store::Overwrite replace) {
  const SnapshotSet& snapshots = store_.engine_->snapshots();
  const NamedSnapshot* const snapshot = snapshots.FindById(id);
  if (snapshot == nullptr)
    return Status::Error(ErrorCode::kNoSnapshot, "the snapshot was dropped while it was made");
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kCuts));
  RETURN_IF_ERROR(store_.CheckNewSnapshot(snapshot->keyspace, name, replace));
  const NamedSnapshot* const old = snapshots.FindAny(snapshot->keyspace, name);
  store_.BeginMutation();
  if (old != nullptr) store_.mutation_.DropSnapshot(old->id);
  store_.mutation_.NameSnapshot(id, name);
  RETURN_IF_ERROR(store_.CommitSchema(nullptr));
  if (!store_.in_transaction_) store_.NoteSnapshot(id);
  return Status::Ok();
}

void Store::NoteSnapshot(uint64_t id) {
  const NamedSnapshot* snapshot = engine_->snapshots().FindById(id);
  if (snapshot == nullptr) return;  // the same record drops it
  for (const auto& [name, table] : snapshot->tables) table->set_last_lsn(schema_lsn_);
}

Status Store::DropSnapshot(const NamedSnapshot& snapshot) {
  BeginMutation();
  mutation_.DropSnapshot(snapshot.id);
  return CommitSchema(nullptr);
}

// Drops what is due (hidden since) and what a copy that has ended without its end has left. They
// are hidden from clients already, so a full disk only delays it.
bool Store::SweepSnapshots() {
  if (following_ || engine_->snapshots().empty()) return false;
  // In a cluster set 0 drops them for all sets.
  const ClusterState& cluster = engine_->cluster();
  if (cluster.active() && (cluster.set != 0 || catalog_.keeper == nullptr)) return false;
  if (has_other_sets() && in_transaction_) return false;
  std::vector<uint64_t> gone;
  for (const NamedSnapshot* snapshot : engine_->snapshots().All()) {
    const bool is_forgotten = snapshot->name.empty() && !copies_.contains(snapshot->id);
    if (snapshot->hidden || is_forgotten) gone.push_back(snapshot->id);
  }
  if (gone.empty()) return false;
  BeginMutation();
  for (const uint64_t id : gone) mutation_.DropSnapshot(id);
  (void)(has_other_sets() ? CommitSchema(nullptr) : CommitLocalSchema(nullptr));
  return false;  // a full disk delays it
}

// drop-keep: a snapshot of what is about to go, in the same record. Where there is no room for it,
// the oldest one of its kind makes way; without such a one the drop is refused, as it could not be
// taken back.
Status Store::KeepDropped(const Table& table, SnapshotIds* ids) {
  if (options_.drop_keep_micros == 0) return Status::Ok();
  // A snapshot is of all sets, and some do not know what that is.
  if (has_other_sets() && (!CheckFeature(Feature::kCuts).ok() || !catalog_.keeper->KnowCuts()))
    return Status::Ok();
  RETURN_IF_ERROR(CheckFeature(Feature::kSnapshots));
  const SnapshotSet& snapshots = engine_->snapshots();
  const bool is_full = snapshots.named() >= options_.snapshots_max;
  if (is_full || (memory_is_short_ && memory_is_short_())) {
    const NamedSnapshot* oldest = nullptr;
    for (const NamedSnapshot* snapshot : snapshots.All()) {
      const bool is_older = oldest == nullptr || snapshot->created_micros < oldest->created_micros;
      if (snapshot->name.starts_with(kDroppedPrefix) && is_older) oldest = snapshot;
    }
    if (oldest == nullptr) {
      return Status::Error(ErrorCode::kTooLarge,
                           "drop-keep has no room for a snapshot of " + Quote(table.name()) +
                               ": there are as many snapshots, or there is as much memory in use, "
                               "as may be");
    }
    mutation_.DropSnapshot(oldest->id);
  }
  int64_t micros = CommitMicros();
  std::string name;
  do {
    name = std::string(kDroppedPrefix) + table.name() + "." + FormatInt64(micros++);
  } while (snapshots.FindAny(table.keyspace(), name) != nullptr);
  (void)AddSnapshot(table.keyspace(), name, {&table}, options_.drop_keep_micros, ids);
  return Status::Ok();
}

// --- copies

// A table is copied from a frozen one, in slices, into trees that nobody sees. One record then
// makes the table, and the engine takes the prepared trees for it. A copy that ends before leaves
// at most a snapshot without a name, which the sweeper drops.
class CopyChange final : public SlicedChange {
 public:
  CopyChange(Store& store, Table& source, uint64_t snapshot_id, std::string_view keyspace,
             std::string_view name, Store::Overwrite replace)
      : store_(store),
        lineage_(store.engine_->lineage()),
        source_id_(source.id()),
        snapshot_id_(snapshot_id),
        keyspace_(keyspace),
        name_(name),
        replace_(replace),
        copy_(std::make_unique<TableCopy>(source)) {
    if (snapshot_id_ != 0) store_.copies_.insert(snapshot_id_);
  }

  // What was not finished is dropped by the sweeper.
  ~CopyChange() override {
    if (snapshot_id_ != 0) store_.copies_.erase(snapshot_id_);
    if (copy_ != nullptr) store_.engine_->TakeGarbage(copy_->GiveUp());
  }

  bool done() const override { return done_; }
  uint64_t rows() const override { return copied_; }
  size_t memory_bytes() const override { return copy_ == nullptr ? 0 : copy_->memory_bytes(); }

  Status Step(uint64_t cells_max) override {
    CELLAR_ASSERT(!done_);
    CELLAR_ASSERT(copy_ != nullptr);
    constexpr uint64_t kSliceBytes{128 << 10};
    if (!copy_->Step(cells_max == kUnlimited ? UINT64_MAX : kSliceBytes)) return Status::Ok();
    done_ = true;
    return Finish();
  }

 private:
  Status Finish() {
    Engine& engine = *store_.engine_;
    if (lineage_ != engine.lineage()) {
      return Status::Error(ErrorCode::kNoTable, "all data has been replaced while this went on");
    }
    const Table* source = engine.FindFrozenById(source_id_);
    if (source == nullptr) {
      return Status::Error(ErrorCode::kNoSnapshot, "the snapshot was dropped while it was copied");
    }
    if (!engine.KeyspaceExists(keyspace_))
      return Status::Error(ErrorCode::kNoKeyspace, "no keyspace " + Quote(keyspace_));
    if (engine.feeds().Find(keyspace_, name_) != nullptr) return Status::WrongKind();
    Table* old = engine.FindTable(keyspace_, name_);
    if (old != nullptr && replace_ == Store::Overwrite::kNo) return Status::Ok();
    if (old == nullptr && engine.cluster().active()) RETURN_IF_ERROR(CheckTabletsFit(engine, 1));
    if (PlacementOf(*source).any()) RETURN_IF_ERROR(store_.CheckFeature(Feature::kPlacement));
    store_.BeginMutation();
    Store::SnapshotIds ids = store_.NextIds();
    if (old != nullptr) {
      RETURN_IF_ERROR(store_.KeepDropped(*old, &ids));
      store_.mutation_.DropTable(old->id());
    }
    store_.mutation_.CopyTable(keyspace_, name_, ids.table, Definition(*source, ids));
    store_.AssignCopy(ids.table, *source);
    if (snapshot_id_ != 0) store_.mutation_.DropSnapshot(snapshot_id_);
    engine.PrepareCopy(std::move(copy_));
    const Status committed = store_.CommitSchema(nullptr);
    if (!committed.ok()) engine.PrepareCopy(nullptr);
    RETURN_IF_ERROR(committed);
    copied_ = 1;
    Table* made = engine.FindTableById(ids.table);
    CELLAR_ASSERT(made != nullptr);
    if (store_.in_transaction_)
      store_.transaction_tables_.insert(ids.table);
    else
      made->set_last_lsn(store_.schema_lsn_);
    store_.BeginIndexes(*made);
    return Status::Ok();
  }

  // A snapshot of before there was a cluster does not say what a UNIQUE index needs in one.
  Placement PlacementOf(const Table& source) const {
    Placement placement = source.schema().placement;
    placement.whole =
        placement.whole || (store_.engine_->cluster().active() && HasUnique(source.schema()));
    return placement;
  }

  std::string Definition(const Table& source, const Store::SnapshotIds& ids) const {
    CopyDefinition definition{.source_id = source_id_,
                              .tree_id_first = ids.tree,
                              .source_keyspace = source.keyspace(),
                              .source = snapshot_id_ != 0 ? source.name() : source.shown_name(),
                              .as_at_micros = source.ReadTime(0),
                              .schema = {}};
    TableSchema schema = source.schema();
    schema.placement = PlacementOf(source);
    uint64_t tree_id = ids.tree;
    for (GroupSchema& group : schema.groups) group.tree_id = tree_id++;
    EncodeTableSchema(schema, &definition.schema);
    return EncodeCopyDefinition(definition);
  }

  Store& store_;
  const uint64_t lineage_;
  const uint64_t source_id_;
  const uint64_t snapshot_id_;  // of its own; 0: the source is one that clients know
  const std::string keyspace_;
  const std::string name_;
  const Store::Overwrite replace_;
  std::unique_ptr<TableCopy> copy_;  // null when the table is made
  bool done_{false};
  uint64_t copied_{0};
};

Result<std::unique_ptr<SlicedChange>> Store::CopyTable(Table& source, std::string_view keyspace,
                                                       std::string_view name, Overwrite replace) {
  RETURN_IF_ERROR(CheckKeyspaceOpen(*engine_, keyspace));
  RETURN_IF_ERROR(CheckFeature(Feature::kSnapshots));
  Table* frozen = &source;
  uint64_t snapshot_id = 0;
  // A snapshot without a name holds the source still; the record of the copy drops it.
  if (!source.frozen()) {
    BeginMutation();
    SnapshotIds ids = NextIds();
    const std::string source_name = source.name();
    snapshot_id = AddSnapshot(source.keyspace(), {}, {&source}, 0, &ids);
    copies_.insert(snapshot_id);
    const Status committed = CommitSchema(nullptr);
    if (!committed.ok()) copies_.erase(snapshot_id);
    RETURN_IF_ERROR(committed);
    const NamedSnapshot* const made = engine_->snapshots().FindById(snapshot_id);
    CELLAR_ASSERT(made != nullptr);
    frozen = made->Find(source_name);
  }
  CELLAR_ASSERT(frozen != nullptr);
  return std::unique_ptr<SlicedChange>(
      std::make_unique<CopyChange>(*this, *frozen, snapshot_id, keyspace, name, replace));
}

std::unique_ptr<SlicedChange> FrozenTables::Copy(Table& frozen, uint64_t snapshot_id,
                                                 std::string_view keyspace, std::string_view name,
                                                 Store::Overwrite replace) {
  return std::make_unique<CopyChange>(store_, frozen, snapshot_id, keyspace, name, replace);
}

// --- snapshot files

Store::FamilyOnDisk Store::OnDisk(const Table& table, const FamilySchema& family) {
  const NewestSnapshot& newest = journal_->newest_snapshot();
  FamilyOnDisk found;
  if (table.frozen()) return found;
  if (!divided_file_ || divided_file_->number != journal_->newest_snapshots()) {
    divided_file_ = DividedFile{.number = journal_->newest_snapshots()};
    Engine catalog;
    // What has been written, or loaded, can be read.
    if (newest.file_bytes > 0 && catalog.BeginLoad(newest.catalog).ok()) {
      std::vector<Engine::TreeInFile> trees;
      for (const SnapshotTree& tree : newest.trees)
        trees.push_back({tree.tree_id, tree.end_offset - tree.begin_offset});
      divided_file_->families = catalog.DivideFile(trees, newest.file_bytes);
    }
  }
  const auto is_it = [&](const auto& part) {
    return part.table_id == table.id() && part.family_id == family.id;
  };
  const auto& families = divided_file_->families;
  const auto on_disk = std::find_if(families.begin(), families.end(), is_it);
  if (on_disk != families.end()) found.snapshot_bytes = on_disk->bytes;
  const auto logged = std::find_if(newest.logged.begin(), newest.logged.end(), is_it);
  const uint64_t before = logged == newest.logged.end() ? 0 : logged->bytes;
  const uint64_t now = table.family_counters(family).logged_bytes;
  // A table that was truncated counts anew.
  found.log_bytes = now < before ? now : now - before;
  return found;
}

}  // namespace cellar
