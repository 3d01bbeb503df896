// See catalog_changes.h.
#include "store/catalog_changes.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/feeds/merged_id.h"
#include "engine/state/snapshot_set.h"
#include "engine/state/table_copy.h"
#include "store/move_changes.h"
#include "store/policy_changes.h"
#include "store/requests.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

Status DoesNotFit(std::string_view what) {
  return Status::Error(ErrorCode::kCorruption,
                       "a change of the cluster's schema does not fit: " + std::string(what));
}

// What may be part of a change that goes to other sets; false: it may not.
bool AddSchemaOp(const DecodedOp& op, MutationBuilder* to) {
  switch (op.op) {
    case MutationOp::kCreateKeyspace:
      to->CreateKeyspace(op.first);
      return true;
    case MutationOp::kDropKeyspace:
      to->DropKeyspace(op.first);
      return true;
    case MutationOp::kCreateTable:
      to->CreateTable(op.first, op.second, op.id, op.third);
      return true;
    case MutationOp::kDropTable:
      to->DropTable(op.id);
      return true;
    case MutationOp::kRenameTable:
      to->RenameTable(op.id, op.first, op.second);
      return true;
    case MutationOp::kSetSchema:
      to->SetSchema(op.id, op.first);
      return true;
    case MutationOp::kTruncateTable:
      to->TruncateTable(op.id, op.number);
      return true;
    case MutationOp::kCreateSnapshot:
      to->CreateSnapshot(op.first, op.second, op.id, op.third);
      return true;
    case MutationOp::kAdoptSnapshot:
      to->AdoptSnapshot(op.first, op.second, op.id, op.third);
      return true;
    case MutationOp::kDropSnapshot:
      to->DropSnapshot(op.id);
      return true;
    case MutationOp::kNameSnapshot:
      to->NameSnapshot(op.id, op.first);
      return true;
    case MutationOp::kCopyTable:
      to->CopyTable(op.first, op.second, op.id, op.third);
      return true;
    case MutationOp::kCreateFeed:
      to->CreateFeed(op.first, op.second, op.id, op.third);
      return true;
    case MutationOp::kDropFeed:
      to->DropFeed(op.id);
      return true;
    case MutationOp::kFeedHome:
      to->SetFeedHome(op.id, op.first);
      return true;
    default:
      return false;
  }
}

}  // namespace

void EncodeCatalogChange(const CatalogChange& change, std::string* to) {
  PutVarint64(to, change.number);
  PutLengthPrefixed(to, change.ops);
  PutVarint64(to, change.parts.size());
  for (const CatalogChange::Part& part : change.parts) {
    PutVarint64(to, part.table_id);
    PutVarint64(to, part.set);
    PutLengthPrefixed(to, part.tablets);
  }
  if (change.cut.is_cut()) EncodeCutMark(change.cut, to);
}

bool DecodeCatalogChange(std::string_view from, CatalogChange* change) {
  std::string_view ops;
  uint64_t parts = 0;
  if (!GetVarint64(&from, &change->number) || !GetLengthPrefixed(&from, &ops) ||
      !GetVarint64(&from, &parts))
    return false;
  change->ops = ops;
  change->parts.clear();
  for (uint64_t i = 0; i < parts; ++i) {
    CatalogChange::Part part;
    std::string_view tablets;
    if (!GetVarint64(&from, &part.table_id) || !GetVarint64(&from, &part.set) ||
        !GetLengthPrefixed(&from, &tablets))
      return false;
    part.tablets = tablets;
    change->parts.push_back(std::move(part));
  }
  change->cut = {};
  return from.empty() || (DecodeCutMark(&from, &change->cut) && from.empty());
}

void CatalogChanges::SetKeeper(Store& store, CatalogKeeper* keeper) {
  store.catalog_.keeper = keeper;
}

// Of an index that both have, this set's own state: it has built it, or is about to. Of a new one
// the state of a new one.
Result<std::string> CatalogChanges::OwnSchema(const DecodedOp& op) {
  const bool creates = op.op == MutationOp::kCreateTable;
  std::string_view bytes = creates ? op.third : op.first;
  TableSchema schema;
  RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
  const Table* const table = creates ? nullptr : store_.engine_->FindTableById(op.id);
  if (!creates && table == nullptr) return DoesNotFit("a table that is not there");
  for (GroupSchema& group : schema.groups) {
    const GroupSchema* own = nullptr;
    if (table != nullptr) {
      for (const GroupSchema& other : table->schema().groups)
        if (other.name == group.name) own = &other;
    }
    group.tree_id = own == nullptr ? tree_id_next_++ : own->tree_id;
  }
  for (IndexSchema& index : schema.indexes) {
    const IndexSchema* own = nullptr;
    if (table != nullptr) {
      for (const IndexSchema& other : table->schema().indexes)
        if (other.id == index.id) own = &other;
    }
    index.state = own == nullptr ? IndexState::kBuilding : own->state;
    index.judged = own != nullptr && own->judged && index.judged;
    index.failure = own == nullptr ? Status::Ok() : own->failure;
  }
  if (table != nullptr) PolicyChanges::TakeOver(*table, &schema);
  std::string encoded;
  EncodeTableSchema(schema, &encoded);
  return encoded;
}

// It tells of what this set has in its log behind the last record of now.
Result<std::string> CatalogChanges::OwnFeed(const DecodedOp& op) const {
  Feed feed;
  std::string_view bytes = op.third;
  if (!DecodeFeedDefinition(&bytes, &feed)) return DoesNotFit("a feed that cannot be read");
  if (feed.home != FeedHome{}) RETURN_IF_ERROR(CheckWholeGroups());
  feed.rows_only = true;
  feed.home.awaits = false;
  feed.after_micros = last_commit_micros();
  std::string encoded = EncodeFeedDefinition(feed);
  EncodeFeedSchemas({}, &encoded);
  return encoded;
}

// Ids of tables are those of all sets, ids of trees this one's.
Status CatalogChanges::AddSnapshotOp(const DecodedOp& op, bool* taken) {
  const Engine& engine = *store_.engine_;
  *taken = true;
  if (op.op == MutationOp::kCreateSnapshot) {
    SnapshotDefinition definition;
    if (!DecodeSnapshotDefinition(op.third, &definition))
      return DoesNotFit("a snapshot that cannot be read");
    definition.tree_id_first = tree_id_next_;
    for (const uint64_t id : definition.table_ids) {
      const Table* const table = engine.FindTableById(id);
      if (table == nullptr) return DoesNotFit("a table that is not there");
      tree_id_next_ += table->groups();
    }
    store_.mutation_.CreateSnapshot(op.first, op.second, op.id,
                                    EncodeSnapshotDefinition(definition));
    return Status::Ok();
  }
  if (op.op == MutationOp::kAdoptSnapshot) {
    AdoptedSnapshot adopted;
    if (!DecodeAdoptedSnapshot(op.third, &adopted))
      return DoesNotFit("a snapshot that cannot be read");
    adopted.tree_id_first = tree_id_next_;
    for (const AdoptedSnapshot::Part& part : adopted.tables) {
      TableSchema schema;
      std::string_view bytes = part.schema;
      RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
      tree_id_next_ += schema.groups.size();
    }
    store_.mutation_.AdoptSnapshot(op.first, op.second, op.id, EncodeAdoptedSnapshot(adopted));
    return Status::Ok();
  }
  if (op.op == MutationOp::kCopyTable) {
    CopyDefinition definition;
    const Table* const source = DecodeCopyDefinition(op.third, &definition)
                                    ? engine.FindFrozenById(definition.source_id)
                                    : nullptr;
    if (source == nullptr) return DoesNotFit("a copy of what is not there");
    definition.tree_id_first = tree_id_next_;
    TableSchema schema = source->schema();
    TableSchema told;
    std::string_view told_bytes = definition.schema;
    RETURN_IF_ERROR(DecodeTableSchema(&told_bytes, &told));
    schema.placement = told.placement;
    for (GroupSchema& group : schema.groups) group.tree_id = tree_id_next_++;
    definition.schema.clear();
    EncodeTableSchema(schema, &definition.schema);
    store_.mutation_.CopyTable(op.first, op.second, op.id, EncodeCopyDefinition(definition));
    store_.AssignCopy(op.id, *source);
    return Status::Ok();
  }
  *taken = op.op == MutationOp::kDropSnapshot || op.op == MutationOp::kNameSnapshot;
  if (*taken) (void)AddSchemaOp(op, &store_.mutation_);
  return Status::Ok();
}

// Set 0 knows of splits only when it is told: one that was made here before the change has come is
// taken back by it. What moves, or has parts elsewhere, stays: then set 0 has known of the parts.
Status CatalogChanges::KeepTogether(uint64_t table_id, std::string_view encoded) {
  const Table* const table = store_.engine_->FindTableById(table_id);
  TableSchema schema;
  RETURN_IF_ERROR(DecodeTableSchema(&encoded, &schema));
  if (table == nullptr || table->tablets() == nullptr) return Status::Ok();
  if (schema.placement == table->schema().placement) return Status::Ok();
  const Result<std::vector<Tablet>> joined = JoinedTablets(*store_.engine_, *table, schema);
  if (!joined.ok() || joined->size() == table->tablets()->list().size()) return Status::Ok();
  std::string bytes;
  Tablets::Make(*joined)->Encode(&bytes);
  store_.mutation_.AssignTablets(table_id, bytes);
  return Status::Ok();
}

Status CatalogChanges::AddOps(std::string_view ops, std::vector<uint64_t>* tables) {
  MutationReader reader(ops);
  DecodedOp op;
  tree_id_next_ = store_.engine_->tree_id_next();
  while (reader.Next(&op)) {
    bool taken = false;
    RETURN_IF_ERROR(AddSnapshotOp(op, &taken));
    if (op.op == MutationOp::kCopyTable) tables->push_back(op.id);
    if (taken) continue;
    if (op.op == MutationOp::kTruncateTable) {
      const Table* const table = store_.engine_->FindTableById(op.id);
      if (table == nullptr) return DoesNotFit("a table that is not there");
      store_.mutation_.TruncateTable(op.id, tree_id_next_);
      tree_id_next_ += table->groups();
    } else if (op.op == MutationOp::kCreateTable || op.op == MutationOp::kSetSchema) {
      ASSIGN_OR_RETURN(const std::string schema, OwnSchema(op));
      DecodedOp own = op;
      (op.op == MutationOp::kCreateTable ? own.third : own.first) = schema;
      (void)AddSchemaOp(own, &store_.mutation_);
      if (op.op == MutationOp::kSetSchema) RETURN_IF_ERROR(KeepTogether(op.id, schema));
    } else if (op.op == MutationOp::kFeedHome) {
      RETURN_IF_ERROR(CheckWholeGroups());
      (void)AddSchemaOp(op, &store_.mutation_);
    } else if (op.op == MutationOp::kCreateFeed) {
      ASSIGN_OR_RETURN(const std::string feed, OwnFeed(op));
      store_.mutation_.CreateFeed(op.first, op.second, op.id, feed);
    } else if (!AddSchemaOp(op, &store_.mutation_)) {
      return DoesNotFit("an operation that is no part of one");
    }
    const bool of_table = op.op == MutationOp::kCreateTable || op.op == MutationOp::kSetSchema ||
                          op.op == MutationOp::kTruncateTable || op.op == MutationOp::kRenameTable;
    if (of_table) tables->push_back(op.id);
  }
  return reader.status();
}

// What is said elsewhere may not fit: then nothing is logged, and nothing has changed.
Status CatalogChanges::Carry(Of of, const std::function<bool()>& fits) {
  CELLAR_ASSERT(!store_.following_);
  RETURN_IF_ERROR(store_.journal_->Reserve(store_.mutation_.size()));
  store_.OpenTransaction(Store::Atomicity::kAll);
  store_.engine_->SetCommitTime(store_.journal_->last_commit_micros() + 1);
  // Checked as a record that is read: what passes here passes at the next start.
  const Status applied = store_.engine_->Apply(store_.mutation_.payload());
  if (!applied.ok() || (fits != nullptr && !fits())) {
    store_.RollBackTransaction();
    return DoesNotFit(applied.ok() ? std::string_view("it is larger than one can be")
                                   : std::string_view(applied.text()));
  }
  store_.transaction_schema_ = of == Of::kSchema;
  ++store_.transaction_changes_;
  store_.CommitTransaction();
  return Status::Ok();
}

void CatalogChanges::Begin(const std::vector<uint64_t>& tables, std::string_view ops) {
  MutationReader reader(ops);
  DecodedOp op;
  while (reader.Next(&op)) {
    const bool of_snapshot = op.op == MutationOp::kCreateSnapshot ||
                             op.op == MutationOp::kNameSnapshot ||
                             op.op == MutationOp::kAdoptSnapshot;
    if (of_snapshot) store_.NoteSnapshot(op.id);
    if (op.op == MutationOp::kCreateFeed) store_.feed_log_->NoteFeed();
  }
  for (const uint64_t id : tables) {
    Table* const table = store_.engine_->FindTableById(id);
    if (table == nullptr) continue;
    table->set_last_lsn(store_.schema_lsn_);
    store_.BeginIndexes(*table);
  }
}

bool CatalogChanges::NothingIsGiven(const Engine& engine) {
  const auto& out = engine.cluster().moves.out();
  return std::none_of(out.begin(), out.end(), [](const auto& move) { return move.second.given; });
}

int64_t CatalogChanges::last_commit_micros() const { return store_.journal_->last_commit_micros(); }

Status CatalogChanges::LogQuiet(const Feed& feed) {
  CELLAR_ASSERT(!store_.following_ && !store_.in_transaction_);
  store_.BeginMutation();
  store_.mutation_.TrimFeed(feed.id, EncodeFeedTrim(feed.through_micros, feed.dropped));
  return store_.CommitMutation(nullptr, 0);
}

Status CatalogChanges::CheckWholeGroups() const {
  return store_.CheckFeature(Feature::kWholeGroups);
}

Status CatalogChanges::MoveHome(const Feed& feed, const FeedHome& home) {
  CELLAR_ASSERT(!store_.following_);
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kWholeGroups));
  if (store_.has_other_sets() && !store_.catalog_.keeper->KnowHomes()) return HomesUnknown();
  FeedHome numbered = home;
  numbered.move = home.from ? store_.engine_->cluster().catalog + 1 : 0;
  store_.BeginMutation();
  store_.mutation_.SetFeedHome(feed.id, EncodeFeedHome(numbered));
  return store_.CommitSchema(nullptr);
}

Status CatalogChanges::HomesUnknown() {
  return Status::Error(
      ErrorCode::kTryAgain,
      "not all sets of the cluster have said that they know homes of feeds: one is "
      "away, or has members of an earlier version");
}

Status CatalogChanges::TakeGroup(const Feed& feed, std::string_view group,
                                 std::string_view changes) {
  CELLAR_ASSERT(!store_.following_ && feed.home.awaits);
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kWholeGroups));
  const uint64_t whole = WholeFeedGroups(feed.id);
  FeedGroupChanges gone;
  if (store_.engine_->feeds().groups().Find(whole, group) != nullptr) gone.Destroy();
  store_.BeginMutation();
  store_.mutation_.ChangeFeedGroup(whole, group, gone.bytes() + std::string(changes));
  // What another set says may be no group, or one that is larger than any.
  return Carry(Of::kGroup, [&] {
    const FeedGroups& groups = store_.engine_->feeds().groups();
    const FeedGroup* const taken = groups.Find(whole, group);
    return taken != nullptr && taken->pending.size() <= kFeedPendingMax &&
           taken->consumers.size() <= kFeedConsumersMax &&
           groups.Of(whole)->size() <= kFeedGroupsMax;
  });
}

// Only this set waits for them.
Status CatalogChanges::NoteArrived(const Feed& feed) {
  CELLAR_ASSERT(!store_.following_ && feed.home.awaits);
  FeedHome home = feed.home;
  home.awaits = false;
  store_.BeginMutation();
  store_.mutation_.SetFeedHome(feed.id, EncodeFeedHome(home));
  return store_.CommitMutation(nullptr, 1);
}

Status CatalogChanges::MakeWhole() {
  const FeedSet& feeds = store_.engine_->feeds();
  const uint64_t set = store_.engine_->cluster().set;
  const auto id_of = [set](const FeedId& id) {
    return id == FeedId{} || !IsOwnId(id) ? id : MergedIdOf(set, id);
  };
  for (const Feed* const feed : feeds.All()) {
    const uint64_t whole = WholeFeedGroups(feed->id);
    const FeedGroups::OfFeed* const groups = feeds.groups().Of(feed->id);
    if (groups == nullptr || feeds.groups().Of(whole) != nullptr || feed->home.set != set) continue;
    RETURN_IF_ERROR(store_.CheckFeature(Feature::kWholeGroups));
    store_.BeginMutation();
    FeedGroupChanges gone;
    gone.Destroy();
    for (const auto& [name, group] : *groups) {
      store_.mutation_.ChangeFeedGroup(whole, name, ChangesOf(*group, id_of).bytes());
      store_.mutation_.ChangeFeedGroup(feed->id, name, gone.bytes());
    }
    RETURN_IF_ERROR(store_.CommitMutation(nullptr, groups->size()));
  }
  return Status::Ok();
}

void CatalogChanges::RaiseCommitTime(int64_t micros) {
  const int64_t wanted = std::min(micros, store_.now_micros_ + kAheadMicrosMax);
  const int64_t more = wanted - 1 - store_.journal_->last_commit_micros();
  if (more > 0) store_.journal_->SkipMicros(more);
}

Status CatalogChanges::MakeCut(const CutMark& mark, const std::function<Status()>& make) {
  CELLAR_ASSERT(mark.is_cut() && store_.in_transaction_);
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kCuts));
  CELLAR_ASSERT(mark.time_micros > last_commit_micros());
  RaiseCommitTime(mark.time_micros);
  store_.catalog_.cut = mark;
  Status status;
  if (make != nullptr) {
    status = make();
  } else {
    store_.BeginMutation();
    status = store_.CommitSchema(nullptr);
  }
  store_.catalog_.cut = {};
  return status;
}

Status CatalogChanges::Apply(const CatalogChange& change, bool* fits) {
  const ClusterState& cluster = store_.engine_->cluster();
  CELLAR_ASSERT(cluster.active() && cluster.set != 0);
  CELLAR_ASSERT(change.number == cluster.catalog + 1);
  CELLAR_ASSERT(!store_.in_transaction_);
  if (change.cut.is_cut()) RETURN_IF_ERROR(store_.CheckFeature(Feature::kCuts));
  *fits =
      NothingIsGiven(*store_.engine_) &&
      (!change.cut.is_cut() || (last_commit_micros() < change.cut.time_micros &&
                                change.cut.time_micros <= store_.now_micros_ + kAheadMicrosMax));
  store_.BeginMutation();
  std::vector<uint64_t> tables;
  Status status = CheckMovesOf(*store_.engine_, change.ops, &store_.mutation_);
  if (status.ok()) status = AddOps(change.ops, &tables);
  if (status.ok()) {
    for (const CatalogChange::Part& part : change.parts)
      if (part.set == cluster.set) store_.mutation_.AssignTablets(part.table_id, part.tablets);
    store_.mutation_.SetCatalog(change.number);
    if (change.cut.is_cut()) {
      std::string mark;
      EncodeCutMark(change.cut, &mark);
      store_.mutation_.Cut(change.number, mark);
      RaiseCommitTime(change.cut.time_micros);
    }
    status = Carry();
  }
  if (!status.ok()) {
    store_.mutation_.Reset();
    return status;
  }
  Begin(tables, change.ops);
  return Status::Ok();
}

std::string CatalogChanges::WhatIsHere(const Engine& engine) {
  std::string here;
  const auto name = [&here](std::string_view kind, const std::string& text) {
    if (here.size() > 200) return;
    here += (here.empty() ? std::string() : ", ") + std::string(kind) + " " + text;
  };
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1))
    name("table", table->keyspace() + "/" + table->name());
  for (const std::string& keyspace : engine.Keyspaces())
    for (const Feed* feed : engine.feeds().Feeds(keyspace))
      name("feed", keyspace + "/" + feed->name);
  for (const NamedSnapshot* snapshot : engine.snapshots().All()) name("snapshot", snapshot->name);
  // Their numbers are those of the cluster's.
  if (here.empty() && engine.table_id_next() > 1)
    here = "tables that were dropped (it must begin in an empty directory)";
  return here;
}

Status CatalogChanges::Join(const ClusterState& state, const CatalogChange& whole) {
  const Engine& engine = *store_.engine_;
  CELLAR_ASSERT(state.active() && state.set != 0);
  CELLAR_ASSERT(!store_.in_transaction_);
  if (engine.cluster().active()) {
    return Status::Error(ErrorCode::kErr,
                         "this set is set " + FormatUint64(engine.cluster().set) + " of a cluster");
  }
  if (const std::string here = WhatIsHere(engine); !here.empty())
    return Status::Error(ErrorCode::kErr, "this set is not empty: " + here);
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kTablets));
  std::string bytes;
  ClusterState joined = state;
  joined.catalog = whole.number;
  EncodeClusterState(joined, {}, &bytes);
  store_.BeginMutation();
  for (const std::string& keyspace : engine.Keyspaces())
    if (!IsBuiltInKeyspace(keyspace)) store_.mutation_.DropKeyspace(keyspace);
  store_.mutation_.SetTablets(bytes);
  std::vector<uint64_t> tables;
  Status status = AddOps(whole.ops, &tables);
  if (status.ok()) {
    for (const CatalogChange::Part& part : whole.parts)
      if (part.set == state.set) store_.mutation_.AssignTablets(part.table_id, part.tablets);
    status = Carry();
  }
  if (!status.ok()) {
    store_.mutation_.Reset();
    return status;
  }
  Begin(tables, whole.ops);
  return Status::Ok();
}

std::string CatalogChanges::OpsForOthers(std::string_view part) {
  MutationBuilder builder;
  MutationReader reader(part);
  DecodedOp op;
  while (reader.Next(&op)) {
    const bool is_taken = IsOwnershipOp(op.op) || AddSchemaOp(op, &builder);
    CELLAR_ASSERT(is_taken);
  }
  CELLAR_ASSERT(reader.status().ok());
  return std::string(builder.Since(kMutationBeginBytes));
}

Result<std::string> CatalogChanges::Whole(const Engine& engine) {
  MutationBuilder builder;
  for (const std::string& keyspace : engine.Keyspaces()) {
    if (!IsBuiltInKeyspace(keyspace)) builder.CreateKeyspace(keyspace);
  }
  // They have numbers of tables, and numbers are taken ascending.
  const Feed* feed = engine.feeds().FindBehind(0);
  const auto add_feeds_before = [&](uint64_t id) {
    for (; feed != nullptr && feed->id < id; feed = engine.feeds().FindBehind(feed->id)) {
      std::string definition = EncodeFeedDefinition(*feed);
      EncodeFeedSchemas({}, &definition);
      builder.CreateFeed(feed->keyspace, feed->name, feed->id, definition);
    }
  };
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    std::string schema;
    EncodeTableSchema(table->schema(), &schema);
    add_feeds_before(table->id());
    builder.CreateTable(table->keyspace(), table->name(), table->id(), schema);
  }
  add_feeds_before(UINT64_MAX);
  for (const NamedSnapshot* snapshot : engine.snapshots().All()) {
    // One without a name is of something that goes on at sets that have rows.
    if (snapshot->name.empty()) {
      return Status::Error(ErrorCode::kTryAgain,
                           "a snapshot or a copy is being made; a set is told of it later");
    }
    AdoptedSnapshot adopted{.created_micros = snapshot->created_micros,
                            .ttl_micros = snapshot->ttl_micros,
                            .tree_id_first = 0,
                            .tables = {}};
    for (const auto& [name, table] : snapshot->tables) {
      adopted.tables.push_back({.id = table->id(), .name = name, .schema = {}});
      EncodeTableSchema(table->schema(), &adopted.tables.back().schema);
    }
    builder.AdoptSnapshot(snapshot->keyspace, snapshot->name, snapshot->id,
                          EncodeAdoptedSnapshot(adopted));
  }
  return std::string(builder.Since(kMutationBeginBytes));
}

}  // namespace cellar
