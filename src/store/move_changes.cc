// See move_changes.h.
#include "store/move_changes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/state/owned_tablets.h"
#include "store/catalog_changes.h"
#include "store/policy_changes.h"
#include "store/range_delete.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar {
namespace {

KeyRange RangeOf(const Tablet& tablet) {
  KeyRange range;
  range.begin.bytes = tablet.begin;
  range.end = {tablet.end, tablet.end.empty()};
  return range;
}

// What of [begin, ...) is in none of `kept`, which ascend.
std::vector<KeyRange> GapsOf(const KeyRangeSet& kept) {
  std::vector<KeyRange> gaps;
  KeyBound from;  // the front
  for (const KeyRange& range : kept.ranges()) {
    KeyRange gap;
    gap.begin = from;
    gap.end = {range.begin.bytes, false};
    if (from.bytes < range.begin.bytes) gaps.push_back(std::move(gap));
    if (range.end.at_end) return gaps;
    from = range.end;
  }
  KeyRange last;
  last.begin = from;
  last.end = {{}, true};
  gaps.push_back(std::move(last));
  return gaps;
}

// The tables that a schema op changes, so that rows on their way would no longer fit; and those
// that it drops or empties, whose jobs end with them (TabletMoves::DropTable).
void NoteTables(const Engine& engine, const DecodedOp& op, std::set<uint64_t>* changed,
                std::set<uint64_t>* dropped) {
  switch (op.op) {
    case MutationOp::kSetSchema:
      changed->insert(op.id);
      break;
    case MutationOp::kDropTable:
    case MutationOp::kTruncateTable:
      dropped->insert(op.id);
      break;
    case MutationOp::kDropKeyspace:
      for (const Table* table : engine.Tables(op.first)) dropped->insert(table->id());
      break;
    default:
      break;
  }
}

// Whether they change rows of that tablet alone.
bool AreOf(const MoveIn& move, std::string_view ops) {
  MutationReader reader(ops);
  DecodedOp op;
  bool in_table = false;
  while (reader.Next(&op)) {
    switch (op.op) {
      case MutationOp::kTable:
        in_table = op.id == move.table_id;
        if (!in_table) return false;
        break;
      case MutationOp::kRow:
        if (!in_table || !move.tablet.Contains(op.first)) return false;
        break;
      case MutationOp::kDeleteRows: {
        const bool ends =
            move.tablet.end.empty() || (!op.second.empty() && op.second <= move.tablet.end);
        if (!in_table || op.first < move.tablet.begin || !ends) return false;
        break;
      }
      case MutationOp::kPut:
      case MutationOp::kReplace:
      case MutationOp::kAddInput:
      case MutationOp::kMergeState:
      case MutationOp::kDeleteCell:
      case MutationOp::kDeleteRange:
      case MutationOp::kDeleteRow:
      case MutationOp::kReclaimColumn:
        break;
      default:
        return false;
    }
  }
  return reader.status().ok();
}

}  // namespace

Tablets::Pointer ClaimedTablets(const Engine& engine, const Table& table) {
  Tablets::Pointer claimed = table.shared_tablets();
  for (const auto& [job, move] : engine.cluster().moves.out()) {
    if (!move.given || move.table_id != table.id()) continue;
    if (Tablets::Pointer with = WithTablet(*claimed, move.tablet); with != nullptr)
      claimed = std::move(with);
  }
  return claimed;
}

Status CheckMovesOf(const Engine& engine, std::string_view ops, MutationBuilder* mutation) {
  const TabletMoves& moves = engine.cluster().moves;
  if (moves.out().empty() && moves.in().empty()) return Status::Ok();
  std::set<uint64_t> changed;
  std::set<uint64_t> dropped;
  MutationReader reader(ops);
  DecodedOp op;
  while (reader.Next(&op)) NoteTables(engine, op, &changed, &dropped);
  const auto busy = [&](uint64_t table_id) {
    const Table* const table = engine.FindTableById(table_id);
    return Status::Error(ErrorCode::kTryAgain,
                         "a tablet of table " +
                             Quote(table == nullptr ? std::string() : table->name()) +
                             " is on its way from one set to another");
  };
  std::vector<uint64_t> ended;
  const auto note = [&](uint64_t job, uint64_t table_id, bool is_between) {
    const bool is_dropped = dropped.contains(table_id);
    if (!is_dropped && !changed.contains(table_id)) return Status::Ok();
    if (is_between) return busy(table_id);
    if (!is_dropped) ended.push_back(job);
    return Status::Ok();
  };
  for (const auto& [job, move] : moves.out()) RETURN_IF_ERROR(note(job, move.table_id, move.given));
  for (const auto& [job, move] : moves.in()) RETURN_IF_ERROR(note(job, move.table_id, move.binds));
  for (const uint64_t job : ended) mutation->Move(MutationOp::kMoveCancel, job, {});
  return Status::Ok();
}

Status CheckRests(const Engine& engine, const Table& table, const Tablet& tablet) {
  const TabletMoves& moves = engine.cluster().moves;
  const uint64_t job = moves.OutOf(table.id(), tablet);
  if (job == 0) return Status::Ok();
  return Status::Error(ErrorCode::kTryAgain, "the tablet is moving: job " + FormatUint64(job) +
                                                 " takes it to set " +
                                                 FormatUint64(moves.FindOut(job)->to));
}

Status MoveChanges::Commit(uint64_t table_id, Seen seen) {
  CELLAR_ASSERT(!store_.in_transaction_);
  CELLAR_ASSERT(!store_.following_);
  Status status = store_.CheckFeature(Feature::kMoves);
  if (status.ok()) status = store_.journal_->Reserve(store_.mutation_.size());
  if (!status.ok()) {
    store_.mutation_.Reset();
    return status;
  }
  store_.OpenTransaction(Store::Atomicity::kAll);
  store_.engine_->SetCommitTime(store_.journal_->last_commit_micros() + 1);
  // Checked as a record that is read: what passes here passes at the next start.
  store_.mutation_.SetStamp(store_.engine_->stamp());
  Status applied = store_.engine_->Apply(store_.mutation_.payload());
  if (!applied.ok()) {
    store_.RollBackTransaction();
    return applied;
  }
  if (seen == Seen::kYes) {
    store_.transaction_schema_ = true;
    if (table_id != 0) store_.transaction_tables_.insert(table_id);
  }
  ++store_.transaction_changes_;
  store_.CommitTransaction();
  return Status::Ok();
}

uint64_t MoveChanges::TableOf(uint64_t job) const {
  const TabletMoves& moves = store_.engine_->cluster().moves;
  if (const MoveOut* const move = moves.FindOut(job)) return move->table_id;
  const MoveIn* const move = moves.FindIn(job);
  return move == nullptr ? 0 : move->table_id;
}

Status MoveChanges::Log(MutationOp op, uint64_t job) {
  store_.BeginMutation();
  store_.mutation_.Move(op, job, {});
  return Commit(TableOf(job));
}

Status MoveChanges::CheckSettled(uint64_t table_id) const {
  const Table* const table = store_.engine_->FindTableById(table_id);
  return table == nullptr ? Status::Ok() : PolicyChanges::CheckSettled(*table);
}

Status MoveChanges::CheckIndexes(uint64_t table_id) const {
  const Table* const table = store_.engine_->FindTableById(table_id);
  if (table == nullptr) return Status::Ok();
  for (const IndexSchema& index : table->schema().indexes) {
    if (index.state == IndexState::kFailed || index.judged) continue;
    return Status::Error(ErrorCode::kTryAgain, "index " + Quote(index.name) + " of table " +
                                                   Quote(table->name()) + " is being built");
  }
  return Status::Ok();
}

Status MoveChanges::Begin(uint64_t job, const MoveOut& move) {
  RETURN_IF_ERROR(CheckSettled(move.table_id));
  RETURN_IF_ERROR(CheckIndexes(move.table_id));
  std::string body;
  EncodeMoveOut(move, &body);
  store_.BeginMutation();
  store_.mutation_.Move(MutationOp::kMoveBegin, job, body);
  return Commit(move.table_id);
}

Status MoveChanges::Give(uint64_t job) { return Log(MutationOp::kMoveGive, job); }

Status MoveChanges::Done(uint64_t job) { return Log(MutationOp::kMoveDone, job); }

Status MoveChanges::Cancel(uint64_t job) { return Log(MutationOp::kMoveCancel, job); }

Status MoveChanges::Reclaim(uint64_t job) {
  const Engine& engine = *store_.engine_;
  ClusterState state = engine.cluster();
  TabletsByTable tablets = OwnedTabletsOf(engine);
  const MoveOut* const found = state.moves.FindOut(job);
  Status wrong = Status::Error(ErrorCode::kCorruption, "it was not given away");
  if (found == nullptr) return wrong;
  const MoveOut move = *found;
  Tablet tablet = move.tablet;
  tablet.epoch += 2;
  const auto owned = tablets.find(move.table_id);
  if (owned == tablets.end() || !state.moves.Reclaim(job)) return wrong;
  owned->second = WithTablet(*owned->second, tablet);
  if (owned->second == nullptr) return wrong;
  std::string bytes;
  EncodeClusterState(state, tablets, &bytes);
  store_.BeginMutation();
  store_.mutation_.SetTablets(bytes);
  return Commit(move.table_id);
}

Status MoveChanges::Raise(uint64_t floor) { return Log(MutationOp::kFloor, floor); }

Status MoveChanges::Stage(uint64_t job, const MoveIn& move, std::string_view failures) {
  RETURN_IF_ERROR(CheckSettled(move.table_id));
  const Table* const table = store_.engine_->FindTableById(move.table_id);
  TableSchema schema = table == nullptr ? TableSchema() : table->schema();
  bool changes = false;
  if (!TakeIndexFailures(failures, &schema, &changes))
    return Status::Error(ErrorCode::kCorruption, "failures of indexes that cannot be so");
  std::string schema_bytes;
  EncodeTableSchema(schema, &schema_bytes);
  std::string body;
  EncodeMoveIn(move, &body);
  store_.BeginMutation();
  if (changes) store_.mutation_.SetSchema(move.table_id, schema_bytes);
  store_.mutation_.Move(MutationOp::kStageBegin, job, body);
  return Commit(move.table_id);
}

Status MoveChanges::Clear(uint64_t job, uint64_t attempt) {
  return Fill(job, {.attempt = attempt, .part = 0, .tail = {}}, {});
}

Status MoveChanges::Fill(uint64_t job, const MovePart& part, std::string_view ops) {
  const MoveIn* const move = store_.engine_->cluster().moves.FindIn(job);
  if (move == nullptr || !AreOf(*move, ops)) {
    return Status::Error(ErrorCode::kCorruption, "a part of a tablet has what is not of it");
  }
  std::string body;
  EncodeMovePart(part, &body);
  const bool is_tail = part.tail.lsn != Lsn{};
  store_.BeginMutation();
  store_.mutation_.Move(is_tail ? MutationOp::kStageTail : MutationOp::kStageRun, job, body);
  store_.mutation_.AppendOps(ops);
  return Commit(0, Seen::kNo);
}

// What feeds tell of a row here stands behind what they have told of it there.
void MoveChanges::RaiseCommitTime(int64_t micros) {
  const int64_t wanted = std::min(micros, store_.now_micros_ + kAheadMicrosMax);
  const int64_t more = wanted - store_.journal_->last_commit_micros();
  if (more > 0) store_.journal_->SkipMicros(more);
}

Status MoveChanges::Own(uint64_t job, const MovePart& part, int64_t stamp, uint64_t record_next) {
  const uint64_t table_id = TableOf(job);
  const Table* const table = store_.engine_->FindTableById(table_id);
  std::string body;
  EncodeMovePart(part, &body);
  store_.BeginMutation();
  store_.mutation_.Move(MutationOp::kMoveOwn, job, body);
  // Neither timestamps nor record numbers of a row go back.
  if (table != nullptr && record_next > table->counters().record_number_next)
    store_.mutation_.RecordNumber(table_id, record_next);
  const int64_t before = store_.engine_->stamp();
  store_.engine_->SetStamp(std::max(before, stamp));
  if (const MoveIn* const move = store_.engine_->cluster().moves.FindIn(job); move != nullptr)
    RaiseCommitTime(move->tail.micros);
  Status status = Commit(table_id);
  if (!status.ok()) store_.engine_->SetStamp(before);
  return status;
}

// --- what is not owned

bool MoveChanges::IsStored(const Table& table, const KeyRange& range) const {
  for (size_t group = 0; group < table.groups(); ++group) {
    BTreeCursor& at = table.cursor(group);
    at.Seek(range.begin.bytes);
    if (at.valid() && (range.end.at_end || at.key() < range.end.bytes)) return true;
  }
  return false;
}

Result<bool> MoveChanges::PurgeRanges(Table& table, const std::vector<KeyRange>& ranges,
                                      uint64_t cells_max) {
  for (const KeyRange& range : ranges) {
    if (!IsStored(table, range)) continue;
    RangeDelete purge(store_, table, {range}, RangeDelete::Purpose::kPurge);
    RETURN_IF_ERROR(purge.Step(cells_max));
    return true;
  }
  return false;
}

Result<bool> MoveChanges::Purge(uint64_t cells_max) {
  const Engine& engine = *store_.engine_;
  if (!engine.cluster().active()) return false;
  const TabletMoves& moves = engine.cluster().moves;
  for (Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    if (table->clamp() == nullptr) continue;
    KeyRangeSet kept = table->tablets()->owned();
    for (const auto& [job, move] : moves.out())
      if (move.table_id == table->id()) kept.Add(RangeOf(move.tablet));
    for (const auto& [job, move] : moves.in())
      if (move.table_id == table->id()) kept.Add(RangeOf(move.tablet));
    ASSIGN_OR_RETURN(const bool found, PurgeRanges(*table, GapsOf(kept), cells_max));
    if (found) return true;
  }
  return false;
}

Result<bool> MoveChanges::PurgeStage(const MoveIn& move, uint64_t cells_max) {
  Table* const table = store_.engine_->FindTableById(move.table_id);
  CELLAR_ASSERT(table != nullptr);
  CELLAR_ASSERT(!move.clear);
  return PurgeRanges(*table, {RangeOf(move.tablet)}, cells_max);
}

// --- the log

RangeTail MoveChanges::TailOf(const MoveOut& move, const LogMark& from) {
  return {store_.files_, store_.options_.journal.directory, move.table_id, move.tablet, from};
}

LogMark MoveChanges::Mark() const {
  return {store_.journal_->last_lsn(), store_.journal_->last_commit_micros()};
}

void MoveChanges::Retain(uint64_t segment) {
  store_.journal_->PinFrom(LogPin::kMove, segment == 0 ? UINT64_MAX : segment);
}

}  // namespace cellar
