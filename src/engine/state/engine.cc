// The catalog, and the carrying out of mutations.
// Snapshots, feeds and salvage have their own files: engine_snapshots.cc, engine_feeds.cc,
// engine_salvage.cc.
#include "engine/state/engine.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"
#include "btree/nodes/arena.h"
#include "engine/state/loading_versions.h"
#include "engine/state/malformed.h"
#include "engine/state/pre_images.h"

namespace cellar {
namespace {

constexpr uint64_t kCatalogFormat{2};
// The same with AGGREGATE or BUCKET in a schema, and with feeds, so that a server without them says
// so.
constexpr uint64_t kCatalogFormatWithFolds{3};
constexpr uint64_t kCatalogFormatWithFeeds{4};
constexpr uint64_t kCatalogFormatWithGroups{5};  // of consumers, behind the feeds
constexpr uint64_t kCatalogFormatWithSnapshots{6};
constexpr uint64_t kCatalogFormatWithCompression{7};  // the same, with COMPRESS in a schema
constexpr uint64_t kCatalogFormatWithColumns{8};      // the same, with COLUMN in a schema
constexpr uint64_t kCatalogFormatWithTablets{9};      // the same, with tablets behind all else
constexpr uint64_t kCatalogFormatWithPlacement{10};  // the same, with COLOCATE or WHOLE in a schema
// Of dropped trees, freed between two looks at the rest: values may be large, and the kernel takes
// 0.1 ms to unmap a megabyte.
constexpr uint64_t kGarbageEntriesPerPiece{128};
constexpr uint64_t kGarbageBytesPerSlice{4 << 20};

// Of a row from elsewhere: so many are applied as a run. Two alone are as quick one by one.
constexpr size_t kRunPutsMin{3};
constexpr size_t kRowsAhead{16};  // looked for at once: as many as a tree descends to together

// Brings into the cache what the ops behind `reader` will change in `table`, of this row and of
// those that follow it: in a large tree a put mostly waits for memory. For so many rows more it
// need not be done again.
size_t PrefetchRows(MutationReader reader, std::string_view row_key, const Table& table) {
  std::array<std::string_view, kRowsAhead> rows;
  rows[0] = row_key;
  size_t count = 1;
  const FamilySchema* family = nullptr;
  DecodedOp op;
  while (reader.Next(&op)) {
    if (op.op == MutationOp::kRow) {
      if (count == rows.size()) break;
      rows[count++] = op.first;
    } else if (op.op == MutationOp::kPut || op.op == MutationOp::kReplace) {
      if (family == nullptr) family = table.schema().FindFamilyById(static_cast<uint32_t>(op.id));
    } else if (op.op == MutationOp::kTable ? op.id != table.id() : op.op != MutationOp::kStep) {
      break;
    }
  }
  if (count > 1 && family != nullptr && table.IsWorthPrefetch(family->group))
    table.tree(family->group).Prefetch({rows.data(), count});
  return count - 1;
}

}  // namespace

// What can be taken back: the catalog as it was, the tables as they were when first touched, and
// the tables that were dropped, kept whole.
struct Engine::Undo {
  std::map<std::string, std::map<std::string, uint64_t>> names;  // keyspace -> name -> table id
  std::map<std::pair<std::string, std::string>, WatchedName> watched_names;
  Numbers numbers;
  std::map<uint64_t, Table::Checkpoint> touched;
  std::map<uint64_t, std::unique_ptr<Table>> dropped;
  std::vector<std::unique_ptr<NamedSnapshot>> dropped_snapshots;
  std::vector<uint64_t> named_snapshots;
};

uint64_t Engine::undo_table_id_next() const { return undo_->numbers.table_id; }

void Engine::KeepForUndo(std::unique_ptr<NamedSnapshot> snapshot) {
  undo_->dropped_snapshots.push_back(std::move(snapshot));
}

void Engine::NoteNamedForUndo(uint64_t snapshot_id) {
  undo_->named_snapshots.push_back(snapshot_id);
}

Engine::Engine() { AddBuiltInKeyspaces(); }

Engine::~Engine() {
  if (compaction_.running) NodeArena::Global().EndCompaction();
  prepared_copy_.reset();
  snapshots_.Clear();
  DestroyTrees(&garbage_);
}

bool IsBuiltInKeyspace(std::string_view keyspace) {
  int64_t number = 0;
  return ParseInt64(keyspace, &number) == NumberError::kNone && number >= 0 &&
         number < kKeyspacesBuiltIn && FormatInt64(number) == keyspace;
}

void Engine::AddBuiltInKeyspaces() {
  for (int i = 0; i < kKeyspacesBuiltIn; ++i) keyspaces_[FormatInt64(i)];
}

// --- lookup

std::vector<std::string> Engine::Keyspaces() const {
  std::vector<std::string> names;
  for (const auto& [name, tables] : keyspaces_) names.push_back(name);
  return names;
}

Table* Engine::FindTableAnew(std::string_view keyspace, std::string_view name) const {
  std::string_view table_name;
  std::string_view snapshot;
  Table* found = nullptr;
  if (SplitSnapshot(name, &table_name, &snapshot)) {
    found = snapshots_.FindTable(keyspace, table_name, snapshot);
  } else if (const auto tables = keyspaces_.find(keyspace); tables != keyspaces_.end()) {
    const auto table = tables->second.find(name);
    if (table != tables->second.end()) found = table->second;
  }
  if (found == nullptr) return nullptr;
  cached_keyspace_ = keyspace;
  cached_name_ = name;
  cached_table_ = found;
  return found;
}

Table* Engine::FindTableById(uint64_t id) const {
  if (cached_table_ != nullptr && cached_table_->id() == id && !cached_table_->frozen())
    return cached_table_;
  const auto table = tables_.find(id);
  return table == tables_.end() ? nullptr : table->second.get();
}

Table* Engine::FindTableFrom(uint64_t id) const {
  const auto table = tables_.lower_bound(id);
  return table == tables_.end() ? nullptr : table->second.get();
}

std::vector<Table*> Engine::Tables(std::string_view keyspace) const {
  std::vector<Table*> tables;
  const auto found = keyspaces_.find(keyspace);
  if (found == keyspaces_.end()) return tables;
  for (const auto& [name, table] : found->second) tables.push_back(table);
  return tables;
}

// What is remembered from one command to the next by a table's name. Every change of the schema
// comes here first.
void Engine::ForgetNames() {
  cached_table_ = nullptr;
  cached_name_.clear();
  tells_old_.clear();
}

// --- apply

Status Engine::Apply(std::string_view payload) {
  MutationReader reader(payload);
  int64_t stamp = 0;
  if (!reader.ReadStamp(&stamp)) return reader.status();
  RETURN_IF_ERROR(check_.CheckStamp(stamp));
  numbers_.stamp = std::max(numbers_.stamp, stamp);
  return CarryOut(payload.substr(kMutationHeaderBytes), &check_);
}

// Every put is checked before the first one changes anything, and *reader moves only when all are
// in. An index has to hear of each column before it changes, and a feed of each cell that goes.
// There puts are carried out one by one.
bool Engine::ApplyRowAsRun(std::string_view ops, Table* table, MutationReader* reader) {
  if (table->has_indexes() || pre_images_ != nullptr) return false;
  MutationReader ahead = *reader;
  MutationReader behind = ahead;  // behind the puts that were taken
  run_of_row_.Clear();
  DecodedOp op;
  size_t puts = 0;
  bool more = ahead.Next(&op);
  for (; more && op.op == MutationOp::kPut; more = ahead.Next(&op), ++puts) {
    if (!check_.Check(op, table).ok()) return false;
    const FamilySchema* const family = table->schema().FindFamilyById(static_cast<uint32_t>(op.id));
    const auto timestamp = static_cast<int64_t>(op.number);
    if (family == nullptr || op.id > UINT32_MAX || timestamp < 0) return false;
    table->AddPut(*family, op.first, timestamp, op.second, ops, &run_of_row_);
    behind = ahead;
  }
  const bool row_ends =
      more ? op.op == MutationOp::kRow || op.op == MutationOp::kStep || op.op == MutationOp::kTable
           : ahead.status().ok();
  if (!row_ends || puts < kRunPutsMin || !run_of_row_.Finish()) return false;
  table->ApplyPuts(run_of_row_, ops);
  *reader = std::move(behind);
  return true;
}

void Engine::TryRowAsRun(std::string_view ops, Table* table, MutationReader* reader) {
  if (last_row_was_run_ || puts_in_row_ >= kRunPutsMin)
    last_row_was_run_ = ApplyRowAsRun(ops, table, reader);
  puts_in_row_ = 0;
}

// `check` is null for ops that this process has just resolved: they are known to fit, and looking
// for their rows again would only cost. Records from the log, or from a leader, are checked op by
// op, each before it is applied; an op that does not fit ends the record in the middle, which its
// caller takes for damage.
Status Engine::CarryOut(std::string_view ops, MutationCheck* check) {
  MutationReader reader(ops);
  DecodedOp op;
  std::string_view row_key;  // for pre_images_
  Table* table = nullptr;
  size_t rows_ahead = 0;
  // The change of a row is complete when another row, table or the end comes.
  const auto end_row = [&table] {
    if (table != nullptr) table->EndRow();
  };
  Status status;
  while (status.ok() && reader.Next(&op)) {
    if (check != nullptr) {
      status = check->Check(op, table);
      if (!status.ok()) break;
    }
    if (pre_images_ != nullptr) [[unlikely]] {
      if (op.op == MutationOp::kRow) row_key = op.first;
      pre_images_->Take(op, table, row_key);
    }
    // Who has just resolved these ops has looked for all of it.
    if (op.op == MutationOp::kRow && check != nullptr && table != nullptr)
      rows_ahead = rows_ahead > 0 ? rows_ahead - 1 : PrefetchRows(reader, op.first, *table);
    switch (op.op) {
      case MutationOp::kPreImages:
      case MutationOp::kRewrites:
        break;
      case MutationOp::kTable:
        end_row();
        table = FindTableById(op.id);
        if (table == nullptr) {
          status = Malformed("a table that does not exist");
          break;
        }
        SaveForUndo(table);
        break;
      case MutationOp::kStep:
        end_row();
        table = nullptr;
        break;
      case MutationOp::kRow:
        status = ApplyCellOp(op, table);
        if (status.ok() && check != nullptr) TryRowAsRun(ops, table, &reader);
        break;
      case MutationOp::kPut:
      case MutationOp::kReplace:
      case MutationOp::kAddInput:
      case MutationOp::kMergeState:
      case MutationOp::kDeleteCell:
      case MutationOp::kDeleteRange:
      case MutationOp::kDeleteRow:
      case MutationOp::kDeleteRows:
      case MutationOp::kReclaimColumn:
      case MutationOp::kRecordNumber:
        status = ApplyCellOp(op, table);
        break;
      case MutationOp::kFeedGroup:
        end_row();
        table = nullptr;
        status = ApplyFeedOp(op);
        break;
      default:
        end_row();
        table = nullptr;
        status = ApplySchemaOp(op, reader);
        break;
    }
  }
  end_row();
  RETURN_IF_ERROR(std::move(status));
  return reader.status();
}

// One op inside a table. What no version has ever written, and would break an invariant of the
// tree, is refused as damage.
Status Engine::ApplyCellOp(const DecodedOp& op, Table* table) {
  if (table == nullptr) return Malformed("a row outside of a table");
  switch (op.op) {
    case MutationOp::kRow:
      if (op.first.empty()) return Malformed("an empty row key");
      table->BeginRow(op.first);
      return Status::Ok();
    case MutationOp::kDeleteRows:
      table->DeleteRows(op.first, op.second);
      return Status::Ok();
    case MutationOp::kRecordNumber:
      table->SetRecordNumberNext(op.number);
      return Status::Ok();
    default:
      break;
  }
  if (!table->row_is_open()) return Malformed("a cell outside of a row");
  if (op.op == MutationOp::kDeleteRow) {
    table->DeleteRow();
    return Status::Ok();
  }
  const FamilySchema* family = table->schema().FindFamilyById(static_cast<uint32_t>(op.id));
  if (family == nullptr || op.id > UINT32_MAX) return Malformed("a family that does not exist");
  const auto number = static_cast<int64_t>(op.number);
  if (number < 0) return Malformed("a timestamp beyond 2^63-1");
  switch (op.op) {
    case MutationOp::kPut:
      ++puts_in_row_;
      table->PutCell(*family, op.first, number, op.second);
      break;
    case MutationOp::kReplace:
      if (op.replaced >= op.number) return Malformed("a version that is not the older one");
      table->ReplaceCell(*family, op.first, number, static_cast<int64_t>(op.replaced), op.second);
      break;
    case MutationOp::kAddInput:
    case MutationOp::kMergeState:
      if (!family->is_hll()) return Malformed("an input of a family that takes none");
      table->FoldHll(op.op, *family, op.first, number, op.second);
      break;
    case MutationOp::kDeleteCell:
      table->DeleteCell(*family, op.first, number);
      break;
    case MutationOp::kDeleteRange:
      table->DeleteRange(*family, op.first, op.second);
      break;
    case MutationOp::kReclaimColumn:
      table->ReclaimColumn(*family, op.first, number);
      break;
    default:
      CELLAR_ASSERT(false);
  }
  return Status::Ok();
}

// Feeds must be able to decode old records with the schema as it was, so each change of it is noted
// with its time while there are feeds. That is the commit time of the record, less one microsecond
// for every step behind this one.
Status Engine::ApplySchemaOp(const DecodedOp& op, const MutationReader& later) {
  ForgetNames();
  const bool is_of_feeds = op.op >= MutationOp::kCreateFeed && op.op <= MutationOp::kFeedHome;
  if (feeds_.empty() && !is_of_feeds) [[likely]]
    return CarryOutSchemaOp(op);
  // Steps of one record follow one another by microseconds.
  history_micros_ = commit_micros_;
  MutationReader rest = later;
  DecodedOp next;
  while (rest.Next(&next)) history_micros_ -= next.op == MutationOp::kStep ? 1 : 0;
  if (is_of_feeds) return ApplyFeedOp(op);
  std::vector<uint64_t> dropped;
  if (op.op == MutationOp::kDropKeyspace) {
    for (const Table* table : Tables(op.first)) dropped.push_back(table->id());
    for (const Feed* feed : feeds_.Feeds(op.first)) feeds_.Drop(feed->id);
  }
  RETURN_IF_ERROR(CarryOutSchemaOp(op));
  if (!feeds_.empty()) NoteHistoryOf(op, dropped);
  return Status::Ok();
}

// Ops that name something by text come first, then those that name a table by its id.
Status Engine::CarryOutSchemaOp(const DecodedOp& op) {
  switch (op.op) {
    case MutationOp::kCreateKeyspace:
      keyspaces_[std::string(op.first)];
      return Status::Ok();
    case MutationOp::kDropKeyspace: {
      for (Table* table : Tables(op.first)) DropTable(table);
      for (const NamedSnapshot* snapshot : snapshots_.All())
        if (snapshot->keyspace == op.first) DropSnapshot(snapshot->id);
      const auto keyspace = keyspaces_.find(op.first);
      if (keyspace == keyspaces_.end()) return Malformed("a keyspace that does not exist");
      keyspaces_.erase(keyspace);
      return Status::Ok();
    }
    case MutationOp::kCreateTable:
      return CreateTable(op);
    case MutationOp::kRenameTable:
      return RenameTable(op);
    case MutationOp::kSetSchema:
      return SetSchema(op);
    case MutationOp::kCreateSnapshot:
    case MutationOp::kDropSnapshot:
    case MutationOp::kNameSnapshot:
    case MutationOp::kAdoptSnapshot:
    case MutationOp::kCopyTable:
      return ApplySnapshotOp(op);
    default:
      break;
  }
  if (IsOwnershipOp(op.op)) return ApplyTabletOp(op);
  Table* table = FindTableById(op.id);
  if (table == nullptr) return Malformed("a table that does not exist");
  if (op.op == MutationOp::kDropTable) {
    DropTable(table);
  } else if (op.op == MutationOp::kTruncateTable) {
    TruncateTable(table, op.number);
  } else {
    return Malformed("an operation that this version does not know");
  }
  return Status::Ok();
}

Status Engine::CreateTable(const DecodedOp& op) {
  TableSchema schema;
  std::string_view bytes = op.third;
  RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
  const auto keyspace = keyspaces_.find(op.first);
  if (keyspace == keyspaces_.end()) return Malformed("a keyspace that does not exist");
  if (op.id == 0 || tables_.contains(op.id) || keyspace->second.contains(op.second) ||
      feeds_.Find(op.first, op.second) != nullptr) {
    return Malformed("a table that exists already");
  }
  AddTable(std::make_unique<Table>(op.id, std::string(op.first), std::string(op.second),
                                   std::move(schema)));
  NoteName(*FindTableById(op.id));
  return Status::Ok();
}

void Engine::AddTable(std::unique_ptr<Table> table) {
  ForgetNames();
  numbers_.table_id = std::max(numbers_.table_id, table->id() + 1);
  for (const GroupSchema& group : table->schema().groups) {
    numbers_.tree_id = std::max(numbers_.tree_id, group.tree_id + 1);
  }
  // Who owns the rows of a new table is told behind it (kTabletAssign).
  if (numbers_.cluster.active() && table->tablets() == nullptr) table->SetTablets(Tablets::None());
  table->SetKept(numbers_.cluster.active() && table->keyspace() == kClusterKeyspace);
  keyspaces_[table->keyspace()][table->name()] = table.get();
  const uint64_t id = table->id();
  tables_[id] = std::move(table);
}

Status Engine::RenameTable(const DecodedOp& op) {
  Table* table = FindTableById(op.id);
  const auto keyspace = keyspaces_.find(op.first);
  if (table == nullptr || keyspace == keyspaces_.end() || keyspace->second.contains(op.second) ||
      feeds_.Find(op.first, op.second) != nullptr) {
    return Malformed("a table that cannot be renamed so");
  }
  SaveForUndo(table);
  keyspaces_[table->keyspace()].erase(table->name());
  table->Rename(op.first, op.second);
  keyspace->second[table->name()] = table;
  NoteName(*table);
  return Status::Ok();
}

Status Engine::SetSchema(const DecodedOp& op) {
  Table* table = FindTableById(op.id);
  if (table == nullptr) return Malformed("a table that does not exist");
  TableSchema schema;
  std::string_view bytes = op.first;
  RETURN_IF_ERROR(DecodeTableSchema(&bytes, &schema));
  if (schema.groups.size() < table->schema().groups.size()) return Malformed("too few groups");
  SaveForUndo(table);
  for (const GroupSchema& group : schema.groups) {
    numbers_.tree_id = std::max(numbers_.tree_id, group.tree_id + 1);
  }
  table->SetSchema(std::move(schema));
  CollectRetired(table);
  return Status::Ok();
}

void Engine::DropTable(Table* table) {
  ForgetNames();
  numbers_.cluster.moves.DropTable(table->id());
  keyspaces_[table->keyspace()].erase(table->name());
  const auto at = tables_.find(table->id());
  CELLAR_ASSERT(at != tables_.end());
  std::unique_ptr<Table> owned = std::move(at->second);
  tables_.erase(at);
  // Undo keeps the table that was there when the transaction began. One that came later, or that
  // TRUNCATE put in its place, is nothing to go back to.
  if (undo_ != nullptr && table->id() < undo_->numbers.table_id &&
      !undo_->dropped.contains(table->id())) {
    undo_->dropped[table->id()] = std::move(owned);
  } else {
    Retire(std::move(owned));
  }
}

// The groups go on in fresh trees under the same schema. The table object itself is replaced, so
// that undo finds the old one whole.
void Engine::TruncateTable(Table* table, uint64_t tree_id_first) {
  TableSchema schema = table->schema();
  for (GroupSchema& group : schema.groups) group.tree_id = tree_id_first++;
  auto fresh =
      std::make_unique<Table>(table->id(), table->keyspace(), table->name(), std::move(schema));
  fresh->TakeOver(*table);
  DropTable(table);
  AddTable(std::move(fresh));
}

void Engine::Retire(std::unique_ptr<Table> table) {
  for (std::unique_ptr<BTree>& tree : table->ReleaseTrees()) garbage_.push_back(std::move(tree));
}

void Engine::CollectRetired(Table* table) {
  for (std::unique_ptr<BTree>& tree : table->TakeRetiredTrees())
    garbage_.push_back(std::move(tree));
}

// What snapshots have left behind. True if nothing is left.
bool Engine::ReleaseRetired(uint64_t* entries_max) {
  const auto release = [entries_max](BTree* tree) {
    while (tree->ReleaseSome(kGarbageEntriesPerPiece)) {
      if (*entries_max <= kGarbageEntriesPerPiece) return false;
      *entries_max -= kGarbageEntriesPerPiece;
    }
    return true;
  };
  for (const auto& [id, table] : tables_) {
    for (BTree* tree : table->Trees()) {
      if (!release(tree)) return false;
    }
  }
  for (const std::unique_ptr<BTree>& tree : garbage_) {
    // Of a tree that is gone versions keep what they see, and no more.
    if (tree->versions() == 0) continue;
    if (tree->entries() > 0) tree->Clear();
    if (!release(tree.get())) return false;
  }
  return true;
}

// Frees trees that nobody can reach any more, a bounded part of them in each call. True: nothing is
// left that could be freed now.
bool Engine::CollectGarbage(uint64_t entries_max) {
  for (const auto& [id, table] : tables_) {
    if (table->indexes() != nullptr) CollectRetired(table.get());
  }
  if (!ReleaseRetired(&entries_max)) return false;
  uint64_t bytes_left = kGarbageBytesPerSlice;
  while (!garbage_.empty() && entries_max > 0 && bytes_left > 0) {
    // A tree that a snapshot still reads has to wait; the others come first.
    const auto free = std::find_if(garbage_.begin(), garbage_.end(),
                                   [](const auto& tree) { return tree->snapshots_alive() == 0; });
    if (free == garbage_.end()) return true;
    BTree& tree = **free;
    if (tree.frozen()) {
      garbage_.erase(free);
      continue;
    }
    // Of large values fewer go at once, so that the slice frees about kGarbageBytesPerSlice at
    // most.
    const uint64_t bytes_before = tree.memory_bytes();
    const uint64_t entry_bytes = bytes_before / std::max<uint64_t>(tree.entries(), 1) + 1;
    const uint64_t some = std::min(
        {entries_max, kGarbageEntriesPerPiece, std::max<uint64_t>(bytes_left / entry_bytes, 1)});
    entries_max -= some;
    // What snapshots have left behind goes last, and not in the destructor.
    const bool has_entries = tree.entries() > 0;
    const bool more = has_entries ? tree.DeleteRange({}, {}, some) > 0 : tree.ReleaseSome(some);
    bytes_left -= std::min(bytes_left, bytes_before - tree.memory_bytes());
    if (!more) garbage_.erase(free);
  }
  return garbage_.empty();
}

// One slice of compaction: tables in the order of their ids, their trees one after the other. True:
// it has ended, or is not worth beginning.
bool Engine::Compact(size_t nodes_max) {
  NodeArena& arena = NodeArena::Global();
  if (!compaction_.running) {
    if (!arena.BeginCompaction()) return true;
    compaction_ = {.running = true};
  }
  const Table* table = FindTableFrom(compaction_.table_id);
  if (table == nullptr) {
    arena.EndCompaction();
    compaction_ = {};
    return true;
  }
  if (table->id() != compaction_.table_id) compaction_ = {.running = true, .table_id = table->id()};
  // A tree that has been replaced meanwhile is gone through from where the old one was.
  const std::vector<BTree*> trees = table->Trees();
  if (compaction_.tree >= trees.size())
    compaction_ = {.running = true, .table_id = table->id() + 1};
  else if (!trees[compaction_.tree]->Compact(&compaction_.position, nodes_max))
    ++compaction_.tree;
  return false;
}

uint64_t Engine::garbage_bytes() const {
  uint64_t bytes = 0;
  for (const auto& tree : garbage_) bytes += tree->frozen() ? sizeof(BTree) : tree->memory_bytes();
  return bytes;
}

// --- undo

// Only names and numbers are copied. Of a table nothing is kept before it changes (SaveForUndoOf).
void Engine::BeginUndo() {
  CELLAR_ASSERT(undo_ == nullptr);
  undo_ = std::make_unique<Undo>();
  for (const auto& [keyspace, tables] : keyspaces_) {
    auto& names = undo_->names[keyspace];
    for (const auto& [name, table] : tables) names[name] = table->id();
  }
  undo_->watched_names = watched_names_;
  undo_->numbers = numbers_;
  feeds_.BeginUndo();
}

// A checkpoint is taken once, at the first change of the table inside the transaction.
void Engine::SaveForUndoOf(Table* table) {
  if (undo_->touched.contains(table->id())) return;
  // A table made since needs no memory of what it was, nor does one that stands in for a dropped
  // one.
  if (table->id() >= undo_->numbers.table_id || undo_->dropped.contains(table->id())) return;
  undo_->touched.emplace(table->id(), table->TakeCheckpoint());
}

// Puts tables, names and numbers back as BeginUndo found them. Tables are taken from three places:
// those that were dropped meanwhile (undo->dropped), those that are still there, and of both those
// that were changed go back to their checkpoint. What is left over was made inside the transaction,
// and goes.
void Engine::RollBack() {
  CELLAR_ASSERT(undo_ != nullptr);
  ForgetNames();
  std::unique_ptr<Undo> undo = std::move(undo_);
  // Those that are new go first: they may have the names of those that come back.
  for (const NamedSnapshot* snapshot : snapshots_.All())
    if (snapshot->id >= undo->numbers.table_id) DropSnapshot(snapshot->id);
  for (const uint64_t id : undo->named_snapshots)
    if (snapshots_.FindById(id) != nullptr) snapshots_.Name(id, {});
  for (std::unique_ptr<NamedSnapshot>& snapshot : undo->dropped_snapshots)
    snapshots_.Add(std::move(snapshot));
  std::map<uint64_t, std::unique_ptr<Table>> now = std::move(tables_);
  tables_.clear();
  keyspaces_.clear();
  for (const auto& [keyspace, names] : undo->names) {
    Keyspace& tables = keyspaces_[keyspace];
    for (const auto& [name, id] : names) {
      const auto dropped = undo->dropped.find(id);
      std::unique_ptr<Table>& kept = dropped != undo->dropped.end() ? dropped->second : now[id];
      CELLAR_ASSERT(kept != nullptr);
      const auto touched = undo->touched.find(id);
      if (touched != undo->touched.end()) kept->RollBackTo(touched->second);
      tables[name] = kept.get();
      tables_[id] = std::move(kept);
    }
  }
  undo->touched.clear();  // snapshots go before their trees
  for (auto& [id, table] : now) {
    if (table != nullptr) Retire(std::move(table));
  }
  watched_names_ = std::move(undo->watched_names);
  numbers_ = undo->numbers;
  KeepClusterTables();
  feeds_.RollBack();
}

void Engine::ForgetUndo() {
  CELLAR_ASSERT(undo_ != nullptr);
  undo_->touched.clear();
  for (auto& [id, table] : undo_->dropped) Retire(std::move(table));
  for (auto& snapshot : undo_->dropped_snapshots) RetireSnapshot(*snapshot);
  undo_.reset();
  feeds_.ForgetUndo();
}

// --- watches, and taking the place of another engine

uint64_t Engine::WatchName(std::string_view keyspace, std::string_view name) {
  WatchedName& watched = watched_names_[{std::string(keyspace), std::string(name)}];
  ++watched.watchers;
  return watched.changes;
}

void Engine::UnwatchName(std::string_view keyspace, std::string_view name) {
  const auto watched = watched_names_.find({std::string(keyspace), std::string(name)});
  if (watched == watched_names_.end()) return;
  if (--watched->second.watchers == 0) watched_names_.erase(watched);
}

uint64_t Engine::NameChanges(std::string_view keyspace, std::string_view name) const {
  const auto watched = watched_names_.find({std::string(keyspace), std::string(name)});
  return watched == watched_names_.end() ? 0 : watched->second.changes;
}

void Engine::NoteName(const Table& table) {
  if (watched_names_.empty()) return;
  const auto watched = watched_names_.find({table.keyspace(), table.name()});
  if (watched != watched_names_.end()) ++watched->second.changes;
}

// What outlives this engine when the state is loaded anew: who watches what, and trees that
// snapshots still read.
CarriedState Engine::GiveUp(Trees trees) {
  CELLAR_ASSERT(undo_ == nullptr);
  CarriedState carried{.watches = {},
                       .watched_names = std::move(watched_names_),
                       .lineage = lineage_,
                       .trees_in_use = {}};
  prepared_copy_.reset();
  for (NamedSnapshot* snapshot : snapshots_.All()) RetireSnapshot(*snapshot);
  snapshots_.Clear();
  for (const auto& [id, table] : tables_) {
    table->watches().ForgetRecords();
    carried.watches.emplace(id, std::move(table->watches()));
    Retire(std::move(tables_[id]));
  }
  for (std::unique_ptr<BTree>& tree : garbage_) {
    if (trees == Trees::kAll || tree->snapshots_alive() > 0)
      carried.trees_in_use.push_back(std::move(tree));
  }
  tables_.clear();
  keyspaces_.clear();
  std::erase(garbage_, nullptr);
  DestroyTrees(&garbage_);
  return carried;
}

void Engine::TakeGarbage(std::vector<std::unique_ptr<BTree>> trees) {
  for (std::unique_ptr<BTree>& tree : trees) garbage_.push_back(std::move(tree));
}

void Engine::Inherit(CarriedState carried, Continuity continuity) {
  CELLAR_ASSERT(undo_ == nullptr);
  CELLAR_ASSERT(watched_names_.empty());
  TakeGarbage(std::move(carried.trees_in_use));
  lineage_ = carried.lineage;
  if (continuity == Continuity::kOtherState) {
    ++lineage_;
    return;
  }
  watched_names_ = std::move(carried.watched_names);
  for (auto& [id, watches] : carried.watches) {
    Table* const table = FindTableById(id);
    CELLAR_ASSERT(table != nullptr);
    table->watches() = std::move(watches);
  }
}

// --- StateMachine

// catalog  | format (1: schemas without indexes, 2, 3: with AGGREGATE or BUCKET, 4: with feeds and
//          | perhaps those, 5: and with groups, 6: all of these, and snapshots,
//          | 7: with COMPRESS, 8: with COLUMN, 9: with tablets, 10: with COLOCATE or WHOLE)
//          | v stamp | v next table id | v next tree id | v keyspaces { b name }
//          | v tables { b keyspace, b name, v id, schema, counters }
//          | feeds (feeds/feed_set.h) | groups (feeds/feed_group.h)
//          | snapshots (engine_snapshots.cc) | b tablets (cluster_state.h)
std::string Engine::EncodeCatalog(const std::vector<VersionInFile>& versions) const {
  std::string catalog;
  // The lowest format that can say what there is, so that an older version reads all that it can
  // understand.
  const bool plain = std::all_of(tables_.begin(), tables_.end(), [](const auto& table) {
    return IsPlainSchema(table.second->schema());
  });
  const uint64_t format = plain ? kCatalogFormat : kCatalogFormatWithFolds;
  const bool has_groups = !feeds_.groups().empty();
  const uint64_t with_feeds = has_groups ? kCatalogFormatWithGroups : kCatalogFormatWithFeeds;
  const bool may_hold_packed = std::any_of(tables_.begin(), tables_.end(), [](const auto& table) {
    return MayHoldPacked(table.second->schema());
  });
  const bool has_columns = std::any_of(tables_.begin(), tables_.end(), [](const auto& table) {
    return HasTypedColumns(table.second->schema());
  });
  const bool has_placement = HasPlacement();
  const bool has_tablets = numbers_.cluster.active() || has_placement;
  const bool has_snapshots = !snapshots_.empty() || may_hold_packed || has_columns || has_tablets;
  PutVarint64(&catalog, has_placement     ? kCatalogFormatWithPlacement
                        : has_tablets     ? kCatalogFormatWithTablets
                        : has_columns     ? kCatalogFormatWithColumns
                        : may_hold_packed ? kCatalogFormatWithCompression
                        : has_snapshots   ? kCatalogFormatWithSnapshots
                        : feeds_.empty()  ? format
                                          : with_feeds);
  PutVarint64(&catalog, static_cast<uint64_t>(numbers_.stamp));
  PutVarint64(&catalog, numbers_.table_id);
  PutVarint64(&catalog, numbers_.tree_id);
  PutVarint64(&catalog, keyspaces_.size());
  for (const auto& [name, tables] : keyspaces_) PutLengthPrefixed(&catalog, name);
  PutVarint64(&catalog, tables_.size());
  for (const auto& [id, table] : tables_) {
    PutLengthPrefixed(&catalog, table->keyspace());
    PutLengthPrefixed(&catalog, table->name());
    PutVarint64(&catalog, id);
    EncodeTableSchema(table->schema(), &catalog);
    table->EncodeCounters(&catalog);
  }
  if (!feeds_.empty() || has_snapshots) feeds_.Encode(&catalog);
  if (has_groups || has_snapshots) feeds_.groups().Encode(&catalog);
  if (has_snapshots) EncodeSnapshots(versions, &catalog);
  if (has_tablets) {
    std::string tablets;
    EncodeTablets(&tablets);
    PutLengthPrefixed(&catalog, tablets);
  }
  return catalog;
}

namespace {

// Ids of the entries of indexes: kDerivedTree | format of the entries, 8 bits | table, 35 bits |
// index, 20 bits. What has larger numbers is built again at the start.
// 1: rows with ON values of more than 64 KiB were left out without a word. 2: nobody counted those
// that are left out.
constexpr uint64_t kIndexFormat{3};  // of what index_entry.h describes
constexpr int kIndexBits{20};
constexpr int kTableBits{35};

std::optional<uint64_t> IndexTreeId(uint64_t table_id, uint64_t index_id) {
  if (table_id >> kTableBits != 0 || index_id >> kIndexBits != 0) return std::nullopt;
  return kDerivedTree | kIndexFormat << (kTableBits + kIndexBits) | table_id << kIndexBits |
         index_id;
}

}  // namespace

std::vector<uint64_t> EarlierIndexTreeIds(uint64_t tree_id) {
  std::vector<uint64_t> ids;
  for (uint64_t format = 1; format < kIndexFormat; ++format) {
    ids.push_back(tree_id - ((kIndexFormat - format) << (kTableBits + kIndexBits)));
  }
  return ids;
}

std::vector<std::pair<uint64_t, uint64_t>> Engine::IndexIdsInFile(const Table& table) {
  std::vector<std::pair<uint64_t, uint64_t>> ids;
  for (const IndexSchema& schema : table.schema().indexes) {
    const std::optional<uint64_t> tree_id = IndexTreeId(table.id(), schema.id);
    if (tree_id && schema.state == IndexState::kReady && schema.judged)
      ids.emplace_back(*tree_id, schema.id);
  }
  return ids;
}

std::vector<std::pair<uint64_t, Index*>> Engine::IndexesInFile(const Table& table) {
  std::vector<std::pair<uint64_t, Index*>> indexes;
  for (const auto& [tree_id, index_id] : IndexIdsInFile(table)) {
    Index* index = table.has_indexes() ? table.indexes()->Find(index_id) : nullptr;
    if (index != nullptr && index->built()) indexes.emplace_back(tree_id, index);
  }
  return indexes;
}

// All of it at one moment: the catalog with its counters and every tree must agree, which
// FinishLoad checks. O(trees).
StateMachine::StateSnapshot Engine::TakeSnapshot() {
  StateSnapshot snapshot;
  const std::vector<VersionInFile> versions = VersionsInFile();
  snapshot.catalog = EncodeCatalog(versions);
  for (const auto& [id, table] : tables_) {
    std::vector<BTreeSnapshot> trees = table->TakeSnapshotsForImages();
    for (size_t i = 0; i < trees.size(); ++i) {
      snapshot.trees.push_back({table->schema().groups[i].tree_id, std::move(trees[i]), {}, 0});
    }
    for (const auto& [tree_id, index] : IndexesInFile(*table))
      snapshot.trees.push_back({tree_id, index->mutable_entries()->TakeSnapshotForImages(), {}, 0});
  }
  AppendVersions(versions, &snapshot);
  for (const auto& [id, table] : tables_) {
    for (const FamilySchema& family : table->schema().families) {
      if (const uint64_t bytes = table->family_counters(family).logged_bytes; bytes > 0)
        snapshot.logged.push_back({id, family.id, bytes});
    }
  }
  return snapshot;
}

// The catalog is a string of Varints and length-prefixed texts; its format number says which parts
// are there (engine_snapshots.cc writes it). It stands under a checksum, but is decoded as if it
// did not: each number is checked before it is used.
Status Engine::BeginLoad(std::string_view catalog) {
  CELLAR_ASSERT(tables_.empty());
  Status malformed = Status::Error(ErrorCode::kCorruption, "the catalog is malformed");
  uint64_t format = 0;
  uint64_t stamp = 0;
  uint64_t keyspaces = 0;
  if (!GetVarint64(&catalog, &format)) return malformed;
  if (format == 0 || format > kCatalogFormatWithPlacement) {
    return Status::Error(ErrorCode::kCorruption, "the catalog has format " + FormatUint64(format) +
                                                     ", this version reads 1 to 10");
  }
  if (!GetVarint64(&catalog, &stamp) || !GetVarint64(&catalog, &numbers_.table_id) ||
      !GetVarint64(&catalog, &numbers_.tree_id) || !GetVarint64(&catalog, &keyspaces)) {
    return malformed;
  }
  numbers_.stamp = static_cast<int64_t>(stamp);
  for (uint64_t i = 0; i < keyspaces; ++i) {
    std::string_view name;
    if (!GetLengthPrefixed(&catalog, &name) || !IsName(name)) return malformed;
    keyspaces_[std::string(name)];
  }
  uint64_t tables = 0;
  if (!GetVarint64(&catalog, &tables)) return malformed;
  for (uint64_t i = 0; i < tables; ++i) {
    std::string_view keyspace;
    std::string_view name;
    uint64_t id = 0;
    if (!GetLengthPrefixed(&catalog, &keyspace) || !GetLengthPrefixed(&catalog, &name) ||
        !GetVarint64(&catalog, &id) || id == 0 || tables_.contains(id) ||
        !KeyspaceExists(keyspace) || !IsName(name)) {
      return malformed;
    }
    TableSchema schema;
    RETURN_IF_ERROR(format == 1 ? DecodeTableSchemaV1(&catalog, &schema)
                                : DecodeTableSchema(&catalog, &schema));
    auto table =
        std::make_unique<Table>(id, std::string(keyspace), std::string(name), std::move(schema));
    RETURN_IF_ERROR(table->DecodeCounters(&catalog));
    AddTable(std::move(table));
  }
  if (format >= kCatalogFormatWithFeeds && !feeds_.Decode(&catalog)) return malformed;
  const auto is_feed = [this](uint64_t id) { return feeds_.FindById(id) != nullptr; };
  if (format >= kCatalogFormatWithGroups && !feeds_.groups().Decode(&catalog, is_feed))
    return malformed;
  if (format >= kCatalogFormatWithSnapshots && !DecodeSnapshots(&catalog)) return malformed;
  if (format >= kCatalogFormatWithTablets) {
    std::string_view tablets;
    if (!GetLengthPrefixed(&catalog, &tablets) || !TakeTablets(tablets)) return malformed;
  }
  return catalog.empty() ? Status::Ok() : malformed;
}

// Linear in the tables: it is asked once for each tree of a snapshot.
BTree* Engine::TreeForLoad(uint64_t tree_id) {
  if (IsVersionToLoad(tree_id)) return VersionForLoad(tree_id);
  if ((tree_id & kDerivedTree) != 0) return NoteLoaded(tree_id, IndexTreeForLoad(tree_id));
  for (const auto& [id, table] : tables_) {
    for (size_t i = 0; i < table->groups(); ++i) {
      if (table->schema().groups[i].tree_id == tree_id)
        return NoteLoaded(tree_id, table->mutable_tree(i));
    }
  }
  return nullptr;
}

// An index that this version would write otherwise is loaded to be thrown away.
BTree* Engine::IndexTreeForLoad(uint64_t tree_id) {
  std::vector<Table*> tables = snapshots_.Tables();
  for (const auto& [id, table] : tables_) tables.push_back(table.get());
  for (Table* table : tables) {
    for (const IndexSchema& schema : table->schema().indexes) {
      if (!table->has_indexes() || IndexTreeId(table->id(), schema.id) != tree_id) continue;
      Index* index = table->indexes()->Find(schema.id);
      if (index == nullptr || schema.state != IndexState::kReady) continue;
      loaded_indexes_.push_back(index);
      return index->mutable_entries();
    }
  }
  garbage_.push_back(std::make_unique<BTree>());
  return garbage_.back().get();
}

// The counters of the catalog and those of the trees were taken at one moment, so they must agree.
Status Engine::FinishLoad() {
  FinishVersions();
  for (Index* index : loaded_indexes_) index->FinishLoad();
  loaded_indexes_.clear();
  std::vector<const Table*> tables;
  for (const auto& [id, table] : tables_) tables.push_back(table.get());
  for (const Table* table : snapshots_.Tables()) tables.push_back(table);
  for (const Table* table : tables) {
    // Ghosts are counted nowhere, so while there are some a tree may hold more than the counters
    // say.
    uint64_t entries = 0;
    for (size_t i = 0; i < table->groups(); ++i) entries += table->tree(i).entries();
    const uint64_t cells = table->cells();
    if (entries == cells || (table->counters().has_ghosts && entries > cells)) continue;
    return Status::Error(ErrorCode::kCorruption, "table '" + table->shown_name() +
                                                     "' should have " + FormatUint64(cells) +
                                                     " cells and has " + FormatUint64(entries));
  }
  return Status::Ok();
}

}  // namespace cellar
