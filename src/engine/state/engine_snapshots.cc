// Named snapshots in the catalog and in files: their mutations, and which tree of a file is a
// version of which (btree/version.h).
//
// Versions of one tree stand in a file behind it, from the newest to the oldest, each as what it
// has and the next newer one has not. What the catalog says of each is the number of that newer
// one; 0 if its tree is no more in any table.
#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/state/engine.h"
#include "engine/state/loading_versions.h"
#include "engine/state/malformed.h"

namespace cellar {
namespace {

// In the number by which a file knows the tree of a group of a frozen table. To those who count
// cells it is derived from others.
constexpr uint64_t kVersionTree{kDerivedTree | uint64_t{1} << 62};

}  // namespace

// --- mutations

Status Engine::ApplySnapshotOp(const DecodedOp& op) {
  switch (op.op) {
    case MutationOp::kCreateSnapshot:
      return CreateSnapshot(op);
    case MutationOp::kDropSnapshot:
      if (snapshots_.FindById(op.id) == nullptr) return Malformed("a snapshot that does not exist");
      DropSnapshot(op.id);
      return Status::Ok();
    case MutationOp::kNameSnapshot:
      return NameSnapshot(op);
    case MutationOp::kAdoptSnapshot:
      return AdoptSnapshot(op);
    default:
      return CopyTable(op);
  }
}

// The op comes from the log: each name and number is checked. Tables of the snapshot get the ids
// behind its own.
Status Engine::CreateSnapshot(const DecodedOp& op) {
  SnapshotDefinition definition;
  if (!DecodeSnapshotDefinition(op.third, &definition))
    return Malformed("a snapshot that cannot be read");
  const bool is_named = !op.second.empty();
  if ((is_named && !IsSnapshotName(op.second)) || !KeyspaceExists(op.first) ||
      (is_named && snapshots_.FindAny(op.first, op.second) != nullptr) ||
      op.id < numbers_.table_id || op.id >= kSnapshotIdMax ||
      definition.tree_id_first < numbers_.tree_id || definition.tree_id_first >= kSnapshotIdMax)
    return Malformed("a snapshot that exists already");
  auto snapshot = std::make_unique<NamedSnapshot>();
  snapshot->id = op.id;
  snapshot->keyspace = op.first;
  snapshot->name = op.second;
  snapshot->created_micros = definition.created_micros;
  snapshot->ttl_micros = definition.ttl_micros;
  uint64_t id = op.id + 1;
  uint64_t tree_id = definition.tree_id_first;
  for (const uint64_t table_id : definition.table_ids) {
    const Table* table = FindTableById(table_id);
    if (table == nullptr || table->keyspace() != op.first ||
        snapshot->tables.contains(table->name()))
      return Malformed("a table that does not exist");
    snapshot->tables[table->name()] =
        table->Freeze(id++, snapshot->name, snapshot->created_micros, tree_id);
    tree_id += table->groups();
  }
  numbers_.table_id = id;
  numbers_.tree_id = std::max(numbers_.tree_id, tree_id);
  snapshots_.Add(std::move(snapshot));
  return Status::Ok();
}

Status Engine::NameSnapshot(const DecodedOp& op) {
  const NamedSnapshot* const snapshot = snapshots_.FindById(op.id);
  if (snapshot == nullptr || !snapshot->name.empty() ||
      !(IsSnapshotName(op.first) || IsCursorName(op.first)) ||
      snapshots_.FindAny(snapshot->keyspace, op.first) != nullptr)
    return Malformed("a snapshot that cannot be called so");
  ForgetNames();
  if (undo_ != nullptr) NoteNamedForUndo(op.id);
  snapshots_.Name(op.id, op.first);
  return Status::Ok();
}

// Its tables are empty here, and own nothing.
Status Engine::AdoptSnapshot(const DecodedOp& op) {
  AdoptedSnapshot adopted;
  if (!DecodeAdoptedSnapshot(op.third, &adopted) ||
      !(IsSnapshotName(op.second) || IsCursorName(op.second)) || !KeyspaceExists(op.first) ||
      snapshots_.FindAny(op.first, op.second) != nullptr || snapshots_.FindById(op.id) != nullptr ||
      op.id >= kSnapshotIdMax || adopted.tree_id_first < numbers_.tree_id ||
      adopted.tree_id_first >= kSnapshotIdMax)
    return Malformed("a snapshot of other sets that cannot be");
  auto snapshot = std::make_unique<NamedSnapshot>();
  snapshot->id = op.id;
  snapshot->keyspace = op.first;
  snapshot->name = op.second;
  snapshot->created_micros = adopted.created_micros;
  snapshot->ttl_micros = adopted.ttl_micros;
  uint64_t tree_id = adopted.tree_id_first;
  uint64_t id_next = op.id + 1;
  for (const AdoptedSnapshot::Part& part : adopted.tables) {
    TableSchema schema;
    std::string_view bytes = part.schema;
    if (!DecodeTableSchema(&bytes, &schema).ok() || !bytes.empty() || !IsName(part.name) ||
        part.id == 0 || part.id >= kSnapshotIdMax || tables_.contains(part.id) ||
        snapshots_.FindTableById(part.id) != nullptr || snapshot->tables.contains(part.name))
      return Malformed("a table of a snapshot of other sets that cannot be");
    auto empty = std::make_unique<Table>(part.id, snapshot->keyspace, part.name, std::move(schema));
    empty->SetTablets(Tablets::None());
    snapshot->tables[part.name] =
        empty->Freeze(part.id, snapshot->name, snapshot->created_micros, tree_id);
    tree_id += empty->groups();
    Retire(std::move(empty));
    id_next = std::max(id_next, part.id + 1);
  }
  numbers_.table_id = std::max(numbers_.table_id, id_next);
  numbers_.tree_id = std::max(numbers_.tree_id, tree_id);
  snapshots_.Add(std::move(snapshot));
  return Status::Ok();
}

void Engine::DropSnapshot(uint64_t id) {
  ForgetNames();
  std::unique_ptr<NamedSnapshot> snapshot = snapshots_.Remove(id);
  if (undo_ != nullptr && id < undo_table_id_next())
    KeepForUndo(std::move(snapshot));
  else
    RetireSnapshot(*snapshot);
}

void Engine::RetireSnapshot(NamedSnapshot& snapshot) {
  for (auto& [name, table] : snapshot.tables) Retire(std::move(table));
}

// The node that runs the command has made the copy in slices (prepared_copy_); at recovery and on
// followers it is made here in one go.
Status Engine::CopyTable(const DecodedOp& op) {
  CopyDefinition definition;
  if (!DecodeCopyDefinition(op.third, &definition)) return Malformed("a copy that cannot be read");
  Table* source = snapshots_.FindTableById(definition.source_id);
  const auto keyspace = keyspaces_.find(op.first);
  if (source == nullptr || keyspace == keyspaces_.end() || !IsName(op.second) ||
      keyspace->second.contains(op.second) || feeds_.Find(op.first, op.second) != nullptr ||
      op.id < numbers_.table_id || op.id >= kSnapshotIdMax ||
      definition.tree_id_first < numbers_.tree_id || definition.tree_id_first >= kSnapshotIdMax)
    return Malformed("a table that cannot be copied");
  // A prepared copy of another source is not for this record, and is dropped.
  std::unique_ptr<TableCopy> copy = std::move(prepared_copy_);
  if (copy == nullptr || copy->source_id() != source->id()) {
    copy = std::make_unique<TableCopy>(*source);
    (void)copy->Step(UINT64_MAX);
  }
  // The copy may have to keep rows together that its source did not have to.
  TableSchema told;
  std::string_view told_bytes = definition.schema;
  RETURN_IF_ERROR(DecodeTableSchema(&told_bytes, &told));
  TableSchema schema = source->schema();
  schema.placement = told.placement;
  uint64_t tree_id = definition.tree_id_first;
  for (GroupSchema& group : schema.groups) group.tree_id = tree_id++;
  auto table = std::make_unique<Table>(op.id, std::string(op.first), std::string(op.second),
                                       std::move(schema));
  copy->FinishTo(*source, table.get());
  AddTable(std::move(table));
  NoteName(*FindTableById(op.id));
  return Status::Ok();
}

// --- files

// In the order in which the trees of a file stand: what a chain begins with, then its versions.
std::vector<Engine::VersionInFile> Engine::VersionsInFile() const {
  std::map<const void*, uint64_t> newest;  // by origin: the number in the file
  for (const auto& [id, table] : tables_) {
    for (size_t i = 0; i < table->groups(); ++i)
      newest[table->tree(i).origin()] = table->schema().groups[i].tree_id;
    for (const auto& [index_id, index] : IndexesInFile(*table))
      newest[index->entries().origin()] = index_id;
  }
  std::vector<VersionInFile> versions;
  for (Table* table : snapshots_.Tables()) {
    for (size_t i = 0; i < table->groups(); ++i) {
      versions.push_back({.file_id = kVersionTree | table->schema().groups[i].tree_id,
                          .tree = table->mutable_tree(i)});
    }
    for (const auto& [index_id, index] : IndexesInFile(*table))
      versions.push_back({.file_id = index_id, .tree = index->mutable_entries()});
  }
  // What an index of a frozen table has built itself is no version, and comes first. Chains come by
  // their smallest number, so that the same state makes the same file.
  std::map<const void*, uint64_t> chains;
  for (const VersionInFile& version : versions) {
    if (version.tree->frozen()) chains.emplace(version.tree->origin(), version.file_id);
  }
  std::stable_sort(versions.begin(), versions.end(), [&chains](const auto& a, const auto& b) {
    const auto place = [&chains](const VersionInFile& version) {
      // Within a chain the newest version comes first.
      const bool is_version = version.tree->frozen();
      return std::pair(is_version ? chains.at(version.tree->origin()) : 0,
                       is_version ? ~version.tree->version_epoch() : 0);
    };
    return place(a) < place(b);
  });
  for (VersionInFile& version : versions) {
    if (!version.tree->frozen()) continue;
    uint64_t& before = newest[version.tree->origin()];
    version.newer_id = std::exchange(before, version.file_id);
  }
  return versions;
}

// snapshots  | v snapshots { v id, b keyspace, b name, v created, v ttl, v tables { v id, b name,
//            | schema, counters } }
//            | v trees { v number, v is a version, v number of the newer one } |
void Engine::EncodeSnapshots(const std::vector<VersionInFile>& versions, std::string* to) const {
  PutVarint64(to, snapshots_.size());
  for (const NamedSnapshot* snapshot : snapshots_.All()) {
    PutVarint64(to, snapshot->id);
    PutLengthPrefixed(to, snapshot->keyspace);
    PutLengthPrefixed(to, snapshot->name);
    PutVarint64(to, static_cast<uint64_t>(snapshot->created_micros));
    PutVarint64(to, static_cast<uint64_t>(snapshot->ttl_micros));
    PutVarint64(to, snapshot->tables.size());
    for (const auto& [name, table] : snapshot->tables) {
      PutVarint64(to, table->id());
      PutLengthPrefixed(to, table->name());
      EncodeTableSchema(table->schema(), to);
      table->EncodeCounters(to);
    }
  }
  PutVarint64(to, versions.size());
  for (const VersionInFile& version : versions) {
    PutVarint64(to, version.file_id);
    PutVarint64(to, version.tree->frozen() ? 1 : 0);
    PutVarint64(to, version.newer_id);
  }
}

// The families of a group share a tree, so each gets of its bytes in the file as much as it has of
// their bytes in memory. An index counts for the family of its first ON column, a frozen table for
// the one of its name, if there is one.
std::vector<Engine::FamilyInFile> Engine::DivideFile(const std::vector<TreeInFile>& trees,
                                                     uint64_t file_bytes) const {
  std::map<uint64_t, uint64_t> bytes_of;
  for (const TreeInFile& tree : trees) bytes_of[tree.tree_id] += tree.bytes;
  std::map<std::pair<uint64_t, uint32_t>, double> shares;
  double all = 0;
  const auto add = [&](const Table& owner, uint32_t family_id, double bytes) {
    shares[{owner.id(), family_id}] += bytes;
    all += bytes;
  };
  const auto divide = [&](const Table& table, const Table& owner, uint64_t tree_flags) {
    const TableSchema& schema = table.schema();
    for (size_t group = 0; group < schema.groups.size(); ++group) {
      const auto bytes = static_cast<double>(bytes_of[tree_flags | schema.groups[group].tree_id]);
      uint64_t cells_bytes = 0;
      for (const FamilySchema& family : schema.families) {
        if (family.group == group) cells_bytes += table.family_counters(family).bytes;
      }
      if (cells_bytes == 0) continue;
      for (const FamilySchema& family : schema.families) {
        if (family.group != group) continue;
        add(owner, family.id,
            bytes * static_cast<double>(table.family_counters(family).bytes) /
                static_cast<double>(cells_bytes));
      }
    }
    for (const auto& [tree_id, index_id] : IndexIdsInFile(table)) {
      for (const IndexSchema& index : schema.indexes) {
        if (index.id == index_id && !index.on.empty())
          add(owner, index.on[0].family_id, static_cast<double>(bytes_of[tree_id]));
      }
    }
  };
  for (const auto& [id, table] : tables_) divide(*table, *table, 0);
  for (const Table* frozen : snapshots_.Tables()) {
    const Table* const owner = FindTable(frozen->keyspace(), frozen->name());
    if (owner != nullptr) divide(*frozen, *owner, kVersionTree);
  }
  std::vector<FamilyInFile> families;
  for (const auto& [key, share] : shares) {
    const double bytes = all == 0 ? 0 : share * (static_cast<double>(file_bytes) / all);
    families.push_back({key.first, key.second, static_cast<uint64_t>(bytes)});
  }
  return families;
}

// Reads one snapshot with its tables, which stay empty until their trees come. A file is believed
// no more than a mutation: ids must be new, names valid and not taken twice.
bool Engine::DecodeSnapshot(std::string_view* from) {
  auto snapshot = std::make_unique<NamedSnapshot>();
  constexpr auto kMax = static_cast<uint64_t>(INT64_MAX);
  std::string_view keyspace;
  std::string_view name;
  uint64_t created = 0;
  uint64_t ttl = 0;
  uint64_t tables = 0;
  if (!GetVarint64(from, &snapshot->id) || !GetLengthPrefixed(from, &keyspace) ||
      !GetLengthPrefixed(from, &name) || !GetVarint64(from, &created) || created > kMax ||
      !GetVarint64(from, &ttl) || ttl > kMax || !GetVarint64(from, &tables) ||
      !KeyspaceExists(keyspace) || snapshots_.FindById(snapshot->id) != nullptr ||
      (!name.empty() && (!(IsSnapshotName(name) || IsCursorName(name)) ||
                         snapshots_.FindAny(keyspace, name) != nullptr))) {
    return false;
  }
  snapshot->keyspace = keyspace;
  snapshot->name = name;
  snapshot->created_micros = static_cast<int64_t>(created);
  snapshot->ttl_micros = static_cast<int64_t>(ttl);
  std::set<uint64_t> ids;
  for (uint64_t i = 0; i < tables; ++i) {
    uint64_t id = 0;
    std::string_view table_name;
    TableSchema schema;
    if (!GetVarint64(from, &id) || !GetLengthPrefixed(from, &table_name) || id == 0 ||
        tables_.contains(id) || snapshots_.FindTableById(id) != nullptr || !ids.insert(id).second ||
        !IsName(table_name) || snapshot->tables.contains(table_name) ||
        !DecodeTableSchema(from, &schema).ok()) {
      return false;
    }
    auto table =
        std::make_unique<Table>(id, snapshot->keyspace, std::string(table_name), std::move(schema));
    table->SetFrozen(snapshot->name, snapshot->created_micros);
    if (!table->DecodeCounters(from).ok()) return false;
    snapshot->tables[std::string(table_name)] = std::move(table);
  }
  snapshots_.Add(std::move(snapshot));
  return true;
}

// Plans the loading: which number of the file is which tree of which table, and which version comes
// behind which. Trees of indexes in earlier formats are planned too, to be read and dropped, as
// versions behind them may build on them.
bool Engine::DecodeSnapshots(std::string_view* from) {
  uint64_t snapshots = 0;
  if (!GetVarint64(from, &snapshots)) return false;
  for (uint64_t i = 0; i < snapshots; ++i) {
    if (!DecodeSnapshot(from)) return false;
  }
  loading_ = std::make_unique<LoadingVersions>();
  std::map<uint64_t, LoadingVersions::Plan> known;  // whose tree each is
  for (Table* table : snapshots_.Tables()) {
    for (size_t i = 0; i < table->groups(); ++i) {
      const uint64_t file_id = kVersionTree | table->schema().groups[i].tree_id;
      if (!known.emplace(file_id, LoadingVersions::Plan{.table = table, .group = i}).second)
        return false;
    }
    for (const auto& [file_id, index_id] : IndexIdsInFile(*table)) {
      known.emplace(file_id, LoadingVersions::Plan{.table = table, .index_id = index_id});
      for (const uint64_t earlier : EarlierIndexTreeIds(file_id)) {
        known.emplace(
            earlier, LoadingVersions::Plan{.table = table, .index_id = LoadingVersions::kOutdated});
      }
    }
  }
  uint64_t trees = 0;
  if (!GetVarint64(from, &trees)) return false;
  std::map<uint64_t, uint64_t> older;  // newer -> older
  std::vector<uint64_t> without_newer;
  for (uint64_t i = 0; i < trees; ++i) {
    uint64_t file_id = 0;
    uint64_t is_version = 0;
    uint64_t newer = 0;
    if (!GetVarint64(from, &file_id) || !GetVarint64(from, &is_version) ||
        !GetVarint64(from, &newer) || !known.contains(file_id)) {
      return false;
    }
    if (is_version == 0) continue;
    LoadingVersions::Plan plan = known[file_id];
    plan.newer = newer;
    if (!loading_->plans.emplace(file_id, plan).second) return false;
    if (newer == 0)
      without_newer.push_back(file_id);
    else if (!older.emplace(newer, file_id).second)
      return false;
  }
  return PlanChains(older, std::move(without_newer));
}

// From the beginnings of the chains to their ends; what no chain reaches cannot be.
bool Engine::PlanChains(const std::map<uint64_t, uint64_t>& older,
                        std::vector<uint64_t> without_newer) {
  for (const auto& [newer, file_id] : older) {
    if (!loading_->plans.contains(newer)) without_newer.push_back(file_id);
  }
  size_t planned = 0;
  for (const uint64_t first : without_newer) {
    std::vector<LoadingVersions::Plan*> chain;
    for (uint64_t at = first; chain.size() <= loading_->plans.size();) {
      chain.push_back(&loading_->plans[at]);
      const auto next = older.find(at);
      if (next == older.end()) break;
      at = next->second;
    }
    const uint64_t root = chain.front()->newer != 0 ? chain.front()->newer : first;
    for (size_t i = 0; i < chain.size(); ++i) {
      chain[i]->root = root;
      chain[i]->number = chain.size() - i;
    }
    loading_->counts[root] = chain.size();
    planned += chain.size();
  }
  return planned == loading_->plans.size();
}

BTree* Engine::NoteLoaded(uint64_t file_id, BTree* tree) {
  if (loading_ == nullptr || tree == nullptr) return tree;
  if (!loading_->loaded.emplace(file_id, tree).second) return nullptr;  // it comes twice
  const auto count = loading_->counts.find(file_id);
  if (count != loading_->counts.end() && !loading_->plans.contains(file_id))
    tree->ReserveVersions(count->second);
  return tree;
}

bool Engine::IsVersionToLoad(uint64_t file_id) const {
  return loading_ != nullptr && loading_->plans.contains(file_id);
}

// The tree into which the file's next image goes. Null if the file is not as it was planned: the
// newer version or the origin has not come before it, or it has come twice. A version whose index
// no longer exists is loaded all the same, since older ones are stored as what it has not.
BTree* Engine::VersionForLoad(uint64_t file_id) {
  const LoadingVersions::Plan& plan = loading_->plans[file_id];
  if (loading_->loaded.contains(file_id)) return nullptr;
  BTree* newer = nullptr;
  BTree* origin = nullptr;
  if (plan.newer != 0) {
    const auto found = loading_->loaded.find(plan.newer);
    if (found == loading_->loaded.end()) return nullptr;
    newer = found->second;
  }
  if (loading_->plans.contains(plan.root)) {  // the newest of a chain whose tree is gone
    BTree*& made = loading_->origins[plan.root];
    if (made == nullptr) {
      garbage_.push_back(std::make_unique<BTree>());
      made = garbage_.back().get();
      made->ReserveVersions(loading_->counts[plan.root]);
    }
    origin = made;
  } else {
    const auto found = loading_->loaded.find(plan.root);
    if (found == loading_->loaded.end()) return nullptr;
    origin = found->second;
  }
  std::unique_ptr<BTree> tree = BTree::VersionToLoad(origin, plan.number, newer);
  BTree* const loaded = tree.get();
  loading_->versions.push_back(loaded);
  loading_->loaded[file_id] = loaded;
  if (plan.index_id == 0) {
    plan.table->SetTree(plan.group, std::move(tree));
    return loaded;
  }
  Index* index =
      plan.table->indexes() == nullptr ? nullptr : plan.table->indexes()->Find(plan.index_id);
  if (index == nullptr) {
    garbage_.push_back(std::move(tree));
    return loaded;
  }
  index->SetTree(std::move(tree));
  loaded_indexes_.push_back(index);
  return loaded;
}

void Engine::FinishVersions() {
  if (loading_ == nullptr) return;
  for (BTree* tree : loading_->versions) tree->FinishVersion();
  loading_.reset();
}

void Engine::AppendVersions(const std::vector<VersionInFile>& versions,
                            StateSnapshot* snapshot) const {
  // Live trees by their number: the first of a chain is told beside one of them.
  std::map<uint64_t, BTree*> trees;
  for (const auto& [id, table] : tables_) {
    for (size_t i = 0; i < table->groups(); ++i)
      trees[table->schema().groups[i].tree_id] = table->mutable_tree(i);
    for (const auto& [index_id, index] : IndexesInFile(*table))
      trees[index_id] = index->mutable_entries();
  }
  for (const VersionInFile& version : versions) {
    TreeSnapshot tree{version.file_id, version.tree->TakeSnapshotForImages(), {}, 0};
    if (version.newer_id != 0) {
      tree.newer = trees[version.newer_id]->TakeSnapshot();
      tree.version_epoch = version.tree->version_epoch();
    }
    trees[version.file_id] = version.tree;
    snapshot->trees.push_back(std::move(tree));
  }
}

void DestroyTrees(std::vector<std::unique_ptr<BTree>>* trees) {
  for (std::unique_ptr<BTree>& tree : *trees) {
    if (tree != nullptr && tree->frozen()) tree.reset();
  }
  trees->clear();
}

}  // namespace cellar
