// See catalog_changes.h.
#include "store/catalog_changes.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "store/move_changes.h"
#include "store/store.h"

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
  return from.empty();
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
  std::string encoded;
  EncodeTableSchema(schema, &encoded);
  return encoded;
}

Status CatalogChanges::AddOps(std::string_view ops, std::vector<uint64_t>* tables) {
  MutationReader reader(ops);
  DecodedOp op;
  tree_id_next_ = store_.engine_->tree_id_next();
  while (reader.Next(&op)) {
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
Status CatalogChanges::Carry() {
  CELLAR_ASSERT(!store_.following_);
  RETURN_IF_ERROR(store_.journal_->Reserve(store_.mutation_.size()));
  store_.OpenTransaction(Store::Atomicity::kAll);
  store_.engine_->SetCommitTime(store_.journal_->last_commit_micros() + 1);
  // Checked as a record that is read: what passes here passes at the next start.
  const Status applied = store_.engine_->Apply(store_.mutation_.payload());
  if (!applied.ok()) {
    store_.RollBackTransaction();
    return DoesNotFit(applied.text());
  }
  store_.transaction_schema_ = true;
  ++store_.transaction_changes_;
  store_.CommitTransaction();
  return Status::Ok();
}

void CatalogChanges::Begin(const std::vector<uint64_t>& tables) {
  for (const uint64_t id : tables) {
    Table* const table = store_.engine_->FindTableById(id);
    if (table == nullptr) continue;
    table->set_last_lsn(store_.schema_lsn_);
    store_.BeginIndexes(*table);
  }
}

Status CatalogChanges::Apply(const CatalogChange& change) {
  const ClusterState& cluster = store_.engine_->cluster();
  CELLAR_ASSERT(cluster.active() && cluster.set != 0);
  CELLAR_ASSERT(change.number == cluster.catalog + 1);
  CELLAR_ASSERT(!store_.in_transaction_);
  store_.BeginMutation();
  std::vector<uint64_t> tables;
  Status status = CheckMovesOf(*store_.engine_, change.ops, &store_.mutation_);
  if (status.ok()) status = AddOps(change.ops, &tables);
  if (status.ok()) {
    for (const CatalogChange::Part& part : change.parts)
      if (part.set == cluster.set) store_.mutation_.AssignTablets(part.table_id, part.tablets);
    store_.mutation_.SetCatalog(change.number);
    status = Carry();
  }
  if (!status.ok()) {
    store_.mutation_.Reset();
    return status;
  }
  Begin(tables);
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
  if (status.ok()) status = Carry();
  if (!status.ok()) {
    store_.mutation_.Reset();
    return status;
  }
  Begin(tables);
  return Status::Ok();
}

Result<std::string> CatalogChanges::OpsForOthers(std::string_view part) {
  MutationBuilder builder;
  MutationReader reader(part);
  DecodedOp op;
  while (reader.Next(&op)) {
    if (IsOwnershipOp(op.op) || AddSchemaOp(op, &builder)) continue;
    const bool of_feed = op.op == MutationOp::kCreateFeed || op.op == MutationOp::kDropFeed;
    return Status::Error(ErrorCode::kCrossSet,
                         std::string(of_feed ? "feeds" : "snapshots and copies") +
                             " are not over several sets yet; nothing was done");
  }
  CELLAR_ASSERT(reader.status().ok());
  return std::string(builder.Since(kMutationBeginBytes));
}

Result<std::string> CatalogChanges::Whole(const Engine& engine) {
  MutationBuilder builder;
  for (const std::string& keyspace : engine.Keyspaces()) {
    if (!IsBuiltInKeyspace(keyspace)) builder.CreateKeyspace(keyspace);
    for (const Feed* feed : engine.feeds().Feeds(keyspace))
      return Status::Error(ErrorCode::kErr, "feed " + Quote(feed->name) + " belongs to one set");
  }
  for (const NamedSnapshot* snapshot : engine.snapshots().All()) {
    return Status::Error(ErrorCode::kErr,
                         "snapshot " + Quote(snapshot->name) + " belongs to one set");
  }
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    std::string schema;
    EncodeTableSchema(table->schema(), &schema);
    builder.CreateTable(table->keyspace(), table->name(), table->id(), schema);
  }
  return std::string(builder.Since(kMutationBeginBytes));
}

}  // namespace cellar
