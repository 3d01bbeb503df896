// CDELRANGE, a change too large for one turn, and the sweeper, which gives memory back.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "engine/scans/table_scan.h"
#include "engine/schema/column_set.h"
#include "store/policy_changes.h"
#include "store/range_delete.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {

Result<std::unique_ptr<SlicedChange>> Store::DeleteRows(Table& table, const RowOptions& rows) {
  RETURN_IF_ERROR(CheckLive(table));
  std::vector<KeyRange> ranges;
  RETURN_IF_ERROR(CompileRows(table.schema(), table.shown(), rows.rows, &ranges));
  return std::unique_ptr<SlicedChange>(
      std::make_unique<RangeDelete>(*this, table, std::move(ranges)));
}

// --- the sweeper

// A slice of which at least this part was columns to reclaim is followed by the next one at once.
constexpr uint64_t kSweepRichShare{50};

void Store::TellReclaimed(const Table& table, std::string_view ops) {
  if (!reclaim_listener_) return;
  MutationReader reader(ops);
  DecodedOp op;
  while (reader.Next(&op)) {
    if (op.op == MutationOp::kRow) reclaim_listener_(table, op.first);
  }
}

bool Store::SweepTable(Table& table, uint64_t cells_max) {
  if (table.counters().has_ghosts && !table.SweepGhosts(cells_max, &sweep_ghosts_)) return false;
  if (!sweep_walk_) {
    sweep_walk_.emplace(std::nullopt);
    // As of now: what changes behind the walk has to be looked at by another one (NoteSwept).
    sweep_begin_changes_ = table.changes();
  }
  CELLAR_ASSERT(!following_);  // whose leader reclaims for it
  const uint64_t found_before = sweep_walk_->columns_found();
  BeginMutation();
  const bool end = sweep_walk_->Step(table, now_micros_, cells_max, &mutation_);
  sweep_found_ = sweep_walk_->columns_found() - found_before;
  // A full disk delays the sweeping like any other write; what is dropped stays unseen all the
  // same.
  if (!CommitMutation(&table, 0).ok()) return true;
  if (sweep_found_ > 0) TellReclaimed(table, mutation_.Since(part_begin_));
  if (end) table.NoteSwept(sweep_begin_changes_);
  return end;
}

// Moves nodes to where memory is in use, a little in each slice. Not while a snapshot is written:
// what it sees cannot be moved.
bool Store::Compact() {
  constexpr size_t kNodes{64};
  constexpr int64_t kPauseMicros{10'000'000};  // between rounds
  if (journal_->snapshot_running()) return true;
  const int64_t now = clock_.MonotonicMicros();
  if (now < compact_after_micros_ && !engine_->compacting()) return true;
  if (!engine_->Compact(kNodes)) return false;
  compact_after_micros_ = now + kPauseMicros;
  return true;
}

bool Store::Sweep(uint64_t cells_max) {
  CELLAR_ASSERT(!in_transaction_);
  (void)SweepSnapshots();
  const bool more = SweepFeeds();
  return SweepTables(cells_max) || more;
}

// One slice of background work. Each kind is finished before the next one is begun, and comes
// before it in urgency: memory that nobody can reach, moving nodes together, indexes, what families
// keep from now on, and last cells that retention has dropped. True: there is more, and it is worth
// going on at once.
bool Store::SweepTables(uint64_t cells_max) {
  UnpinStale();
  if (!engine_->CollectGarbage(cells_max)) return true;
  if (!Compact()) return true;
  building_indexes_ = !SweepIndexes(cells_max, kIndexMicrosPerSlice);
  if (building_indexes_) return true;
  if (following_) {  // the leader reclaims, and says so in its log
    PolicyChanges(*this).Forget();
    return false;
  }
  if (!PolicyChanges(*this).Step(cells_max)) return true;
  Table* table = engine_->FindTableFrom(sweep_table_id_);
  while (table != nullptr && !table->MayHoldDropped()) {
    table = engine_->FindTableFrom(table->id() + 1);
  }
  if (table == nullptr) {
    ++sweep_passes_;
    sweep_idle_ = sweep_table_id_ == 0;
    sweep_table_id_ = 0;
    sweep_walk_.reset();
    sweep_ghosts_.clear();
    return false;
  }
  sweep_idle_ = false;
  sweep_found_ = 0;
  if (table->id() != sweep_table_id_) {
    sweep_walk_.reset();
    sweep_ghosts_.clear();
    sweep_table_id_ = table->id();
  }
  const bool ghosts = table->counters().has_ghosts;
  if (SweepTable(*table, cells_max)) {
    sweep_walk_.reset();
    sweep_ghosts_.clear();
    sweep_table_id_ = table->id() + 1;
  }
  return ghosts || sweep_found_ * kSweepRichShare >= cells_max;
}

SweeperStats Store::sweeper_stats() const {
  SweeperStats stats{.passes = sweep_passes_,
                     .cells_reclaimed = 0,
                     .garbage_bytes = engine_->garbage_bytes(),
                     .idle = sweep_idle_};
  for (const std::string& keyspace : Keyspaces()) {
    for (const Table* table : Tables(keyspace)) {
      for (const FamilyCounters& family : table->counters().families) {
        stats.cells_reclaimed += family.reclaimed;
      }
    }
  }
  return stats;
}

}  // namespace cellar
