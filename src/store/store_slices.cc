// CDELRANGE, a change too large for one turn, and the sweeper, which gives memory back.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "engine/scans/table_scan.h"
#include "engine/schema/column_set.h"
#include "store/store.h"

namespace cellar {

// CDELRANGE: walks the live rows of the ranges, and deletes whole runs of rows, a bounded number of
// cells at a time. Rows that only hold what retention has dropped go along uncounted.
class RangeDelete final : public SlicedChange {
 public:
  RangeDelete(Store& store, uint64_t table_id, std::vector<KeyRange> ranges)
      : store_(store),
        table_id_(table_id),
        lineage_(store.engine_->lineage()),
        ranges_(std::move(ranges)) {}

  bool done() const override { return at_ == ranges_.size(); }
  uint64_t rows() const override { return rows_deleted_; }
  std::string_view place() const override { return place_; }

  Status Step(uint64_t cells_max) override {
    ASSIGN_OR_RETURN(Table* const table, store_.FindTableAgain(table_id_, lineage_));
    uint64_t cells_left = cells_max;
    while (!done() && cells_left > 0) {
      KeyRange& range = ranges_[at_];
      const Slice slice = FindSlice(*table, range, cells_left);
      store_.BeginMutation();
      if (slice.entries > 0) {
        const KeyRange deleted = RangeToDelete(range, slice);
        const std::string_view begin = deleted.begin.bytes;
        const std::string_view end = deleted.end.at_end ? std::string_view() : deleted.end.bytes;
        const TableWatches::Mark mark = MarkDeadRows(*table, begin, end);
        store_.mutation_.DeleteRows(table_id_, begin, end);
        RETURN_IF_ERROR(store_.CommitMutation(table, slice.rows));
        table->watches().ReturnTo(mark);
        if (slice.rows > 0) table->watches().Note();
      }
      rows_deleted_ += slice.rows;
      place_.swap(range.begin.bytes);
      // One more, so that many empty ranges end the slice as well.
      cells_left -= std::min(cells_left, slice.entries + 1);
      range.begin = slice.end;
      if (range.empty()) ++at_;
    }
    return Status::Ok();
  }

 private:
  struct Slice {
    KeyBound end;
    uint64_t rows{0};     // live
    uint64_t entries{0};  // stored, about: 0 means that nothing is there
    std::string first_row{};
    std::string last_row{};
  };

  // Feeds tell of ranges in keys, which not every bound of a range has.
  KeyRange RangeToDelete(const KeyRange& range, const Slice& slice) const {
    if (store_.engine_->feeds().empty()) return {range.begin, slice.end};
    return {{slice.first_row, false}, Successor(slice.last_row)};
  }

  // The rows from the front of `range` on that have about `cells_max` cells together, one at least.
  Slice FindSlice(const Table& table, const KeyRange& range, uint64_t cells_max) {
    ReadView view(table, store_.now_micros_);
    const Order& key = table.schema().key;
    // A feed with OLD tells what each of them held, and one record of the log holds all that.
    constexpr size_t kToldBytesOfEntry{256};
    const bool tells_old = store_.engine_->TellsOldOf(table);
    Slice slice{range.end, 0, 0};
    std::vector<BTreeCursor*> cursors;
    for (size_t i = 0; i < table.groups(); ++i) {
      cursors.push_back(&table.cursor(i));
      cursors.back()->Seek(range.begin.bytes);
    }
    std::vector<std::string> rows;
    std::string row_key;
    for (;;) {
      const BTreeCursor* first = nullptr;
      for (const BTreeCursor* at : cursors) {
        if (!at->valid() || (!range.end.at_end && at->key() >= range.end.bytes)) continue;
        if (first == nullptr || at->key() < first->key()) first = at;
      }
      if (first == nullptr) break;
      if (slice.entries >= cells_max) {
        slice.end =
            KeyBound{std::string(first->key().substr(0, key.EncodedSize(first->key()))), false};
        break;
      }
      row_key.assign(first->key().substr(0, key.EncodedSize(first->key())));
      for (BTreeCursor* at : cursors) {
        for (; at->valid() && at->key().starts_with(row_key); at->Next()) {
          ++slice.entries;
          if (tells_old) slice.entries += at->value().size() / kToldBytesOfEntry;
        }
      }
      rows.push_back(row_key);
    }
    if (!rows.empty()) {
      slice.first_row = rows.front();
      slice.last_row = rows.back();
    }
    // Asking whether a row is live moves the cursors, so that comes last.
    if (table.counts_are_live()) {
      slice.rows = rows.size();
    } else {
      for (const std::string& row : rows) slice.rows += view.RowIsLive(row) ? 1 : 0;
    }
    return slice;
  }

  // Rows that only hold what retention has dropped: to lose them is nothing that a watcher sees.
  TableWatches::Mark MarkDeadRows(const Table& table, std::string_view begin,
                                  std::string_view end) const {
    const ReadView view(table, store_.now_micros_);
    std::vector<std::string> dead = table.watches().RowsIn(begin, end);
    std::erase_if(dead, [&view](const std::string& row) { return view.RowIsLive(row); });
    return table.watches().TakeMark(dead);
  }

  Store& store_;
  uint64_t table_id_;
  uint64_t lineage_;
  std::vector<KeyRange> ranges_;
  size_t at_{0};
  std::string place_;  // where the last slice began
  uint64_t rows_deleted_{0};
};

Result<std::unique_ptr<SlicedChange>> Store::DeleteRows(Table& table, const RowOptions& rows) {
  RETURN_IF_ERROR(CheckLive(table));
  std::vector<KeyRange> ranges;
  RETURN_IF_ERROR(CompileRows(table.schema(), table.shown(), rows.rows, &ranges));
  return std::unique_ptr<SlicedChange>(
      std::make_unique<RangeDelete>(*this, table.id(), std::move(ranges)));
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
// before it in urgency: memory that nobody can reach, moving nodes together, indexes, and last
// cells that retention has dropped. True: there is more, and it is worth going on at once.
bool Store::SweepTables(uint64_t cells_max) {
  UnpinStale();
  if (!engine_->CollectGarbage(cells_max)) return true;
  if (!Compact()) return true;
  building_indexes_ = !SweepIndexes(cells_max, kIndexMicrosPerSlice);
  if (building_indexes_) return true;
  if (following_) return false;  // the leader reclaims, and says so in its log
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
