// Ownership of rows in the catalog: its mutations, and its part of a snapshot file.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "engine/state/cut_mark.h"
#include "engine/state/engine.h"
#include "engine/state/malformed.h"
#include "engine/state/owned_tablets.h"

namespace cellar {

// Whether COLOCATE or WHOLE stands in a schema.
bool Engine::HasPlacement() const {
  const std::vector<Table*> frozen = snapshots_.Tables();
  return std::any_of(tables_.begin(), tables_.end(),
                     [](const auto& table) { return table.second->schema().placement.any(); }) ||
         std::any_of(frozen.begin(), frozen.end(),
                     [](const Table* table) { return table->schema().placement.any(); });
}

TabletsByTable OwnedTabletsOf(const Engine& engine) {
  TabletsByTable tablets;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1))
    if (table->tablets() != nullptr) tablets.emplace(table->id(), table->shared_tablets());
  for (const Table* const table : engine.snapshots().Tables())
    if (table->clamp() != nullptr) tablets.emplace(table->id(), table->shared_tablets());
  return tablets;
}

void Engine::EncodeTablets(std::string* to) const {
  EncodeClusterState(numbers_.cluster, OwnedTabletsOf(*this), to);
}

// All of it, whatever was before. Of a table that it does not name the set owns nothing, of a
// frozen one all that is in it.
bool Engine::TakeTablets(std::string_view state) {
  ClusterState cluster;
  TabletsByTable tablets;
  if (!DecodeClusterState(state, &cluster, &tablets)) return false;
  for (const auto& [id, of_table] : tablets) {
    const Table* const live = FindTableById(id);
    const Table* const table = live != nullptr ? live : FindFrozenById(id);
    if (table == nullptr || !FitTable(*of_table, table->schema())) return false;
  }
  numbers_.cluster = cluster;
  KeepClusterTables();
  for (const auto& [id, table] : tables_) {
    SaveForUndo(table.get());
    const auto found = tablets.find(id);
    if (!numbers_.cluster.active())
      table->SetTablets(nullptr);
    else
      table->SetTablets(found == tablets.end() ? Tablets::None() : std::move(found->second));
  }
  for (Table* const table : snapshots_.Tables()) {
    const auto found = tablets.find(table->id());
    table->SetTablets(found == tablets.end() ? nullptr : std::move(found->second));
  }
  return true;
}

void Engine::KeepClusterTables() {
  const auto keyspace = keyspaces_.find(kClusterKeyspace);
  if (keyspace == keyspaces_.end()) return;
  for (const auto& [name, table] : keyspace->second) table->SetKept(numbers_.cluster.active());
}

// No tablet ends inside of a row.
bool Engine::FitTable(const Tablets& tablets, const TableSchema& schema) {
  return std::all_of(tablets.list().begin(), tablets.list().end(), [&schema](const auto& tablet) {
    return IsBoundOf(schema.key, tablet.begin) && IsBoundOf(schema.key, tablet.end);
  });
}

bool Engine::ChangeOwned(uint64_t table_id, const Tablet& tablet, bool owned) {
  Table* const table = FindTableById(table_id);
  if (table == nullptr) return false;
  Tablets::Pointer next =
      owned ? WithTablet(*table->tablets(), tablet) : WithoutTablet(*table->tablets(), tablet);
  if (next == nullptr || !FitTable(*next, table->schema())) return false;
  SaveForUndo(table);
  table->SetTablets(std::move(next));
  if (!owned) {
    // Whoever watches them hears nothing of them any more.
    TableWatches& watches = table->watches();
    watches.Note();
    for (const std::string& row : watches.RowsIn(tablet.begin, tablet.end)) watches.NoteRow(row);
  }
  return true;
}

StateMachine::StateSnapshot Engine::TakeSnapshotOfCut(uint64_t cut) {
  ClusterState& cluster = numbers_.cluster;
  CELLAR_ASSERT(cluster.active());
  CELLAR_ASSERT(cut <= cluster.catalog);
  const ClusterState before = cluster;
  cluster.recovered_cut = cut;
  if (cluster.opened_as == 0) cluster.opened_as = kOpenedByNobody;
  StateSnapshot snapshot = TakeSnapshot();
  cluster = before;
  return snapshot;
}

// What the state of the moves does not let happen is not the next thing that has happened.
Status Engine::ApplyMoveOp(const DecodedOp& op) {
  TabletMoves& moves = numbers_.cluster.moves;
  const uint64_t job = op.id;
  std::string_view body = op.first;
  MovePart part;
  bool done = false;
  switch (op.op) {
    case MutationOp::kMoveBegin: {
      MoveOut move;
      if (!DecodeMoveOut(&body, &move) || !body.empty()) break;
      const Table* const table = FindTableById(move.table_id);
      const Tablet* const tablet =
          table == nullptr ? nullptr : table->tablets()->Find(move.tablet.begin);
      done = tablet != nullptr && *tablet == move.tablet && moves.Begin(job, std::move(move));
      break;
    }
    case MutationOp::kMoveGive: {
      const MoveOut* const move = moves.FindOut(job);
      done = move != nullptr && moves.Give(job) && ChangeOwned(move->table_id, move->tablet, false);
      break;
    }
    case MutationOp::kMoveDone:
      done = moves.Done(job);
      break;
    case MutationOp::kMoveCancel:
      done = moves.Cancel(job);
      break;
    case MutationOp::kStageBegin: {
      MoveIn move;
      if (!DecodeMoveIn(&body, &move) || !body.empty()) break;
      const Table* const table = FindTableById(move.table_id);
      done = table != nullptr && WithTablet(*table->tablets(), move.tablet) != nullptr &&
             moves.Stage(job, std::move(move));
      break;
    }
    case MutationOp::kStageRun:
      done = DecodeMovePart(body, &part) && part.tail.lsn == Lsn{} &&
             (part.part == 0 ? moves.Clear(job, part.attempt)
                             : moves.Fill(job, part.attempt, part.part, {}));
      break;
    case MutationOp::kStageTail:
      done = DecodeMovePart(body, &part) && part.tail.lsn != Lsn{} &&
             moves.Fill(job, part.attempt, part.part, part.tail);
      break;
    case MutationOp::kMoveOwn: {
      const MoveIn* const found = moves.FindIn(job);
      if (found == nullptr || !DecodeMovePart(body, &part)) break;
      const MoveIn move = *found;
      done =
          moves.Own(job, part.attempt, part.part) && ChangeOwned(move.table_id, move.tablet, true);
      break;
    }
    case MutationOp::kFloor:
      done = moves.Raise(job);
      break;
    default:
      done = FindTableById(job) != nullptr;  // kPurge
      break;
  }
  return done ? Status::Ok() : Malformed("a move of a tablet that cannot be so");
}

// The op comes from the log: each is checked for what the ones before it have made.
Status Engine::ApplyTabletOp(const DecodedOp& op) {
  if (op.op == MutationOp::kTablets)
    return TakeTablets(op.first) ? Status::Ok() : Malformed("tablets that cannot be so");
  if (!numbers_.cluster.active()) return Malformed("a cluster that there is not");
  if (op.op == MutationOp::kCatalog) {
    if (op.number <= numbers_.cluster.catalog)
      return Malformed("a schema that is not the next one");
    numbers_.cluster.catalog = op.number;
    return Status::Ok();
  }
  if (op.op == MutationOp::kCut) {
    CutMark mark;
    std::string_view bytes = op.first;
    const bool fits = DecodeCutMark(&bytes, &mark) && bytes.empty();
    return fits && op.id == numbers_.cluster.catalog ? Status::Ok()
                                                     : Malformed("a cut that cannot be so");
  }
  if (op.op == MutationOp::kOpenAs) {
    ClusterState& cluster = numbers_.cluster;
    if (op.id > cluster.catalog || !DecodeOpenAs(op.first, &cluster.opened_as) ||
        cluster.opened_as == 0)
      return Malformed("a set that cannot be opened so");
    cluster.recovered_cut = op.id;
    return Status::Ok();
  }
  const bool moves = op.op >= MutationOp::kMoveBegin && op.op <= MutationOp::kFloor;
  if (moves || op.op == MutationOp::kPurge) return ApplyMoveOp(op);
  Table* const table = FindTableById(op.id);
  if (table == nullptr) return Malformed("a table that does not exist");
  Tablets::Pointer next;
  if (op.op == MutationOp::kTabletAssign) {
    std::string_view bytes = op.first;
    next = Tablets::Decode(&bytes);
    if (next == nullptr || !bytes.empty() || !FitTable(*next, table->schema())) next = nullptr;
  } else if (op.op == MutationOp::kTabletMerge) {
    next = table->tablets()->Merge(op.first);
  } else if (op.first.size() <= kTabletEndBytesMax && IsBoundOf(table->schema().key, op.first)) {
    next = table->tablets()->Split(op.first);
  }
  if (next == nullptr) return Malformed("a tablet that cannot be so");
  SaveForUndo(table);
  table->SetTablets(std::move(next));
  return Status::Ok();
}

}  // namespace cellar
