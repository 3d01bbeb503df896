// See range_delete.h.
#include "store/range_delete.h"

#include <algorithm>
#include <utility>

#include "engine/table/read_view.h"

namespace cellar {

// A purge holds nothing: what it deletes is no set's to move.
RangeDelete::RangeDelete(Store& store, Table& table, std::vector<KeyRange> ranges, Purpose purpose)
    : store_(store),
      table_id_(table.id()),
      lineage_(store.engine_->lineage()),
      purpose_(purpose),
      ranges_(std::move(ranges)),
      hold_(purpose == Purpose::kCommand ? table.HoldRows() : nullptr) {}

Status RangeDelete::Step(uint64_t cells_max) {
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
      if (purpose_ == Purpose::kPurge) store_.mutation_.Move(MutationOp::kPurge, table_id_, {});
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

// Feeds tell of ranges in keys, which not every bound of a range has.
KeyRange RangeDelete::RangeToDelete(const KeyRange& range, const Slice& slice) const {
  if (store_.engine_->feeds().empty() || purpose_ == Purpose::kPurge)
    return {range.begin, slice.end};
  return {{slice.first_row, false}, Successor(slice.last_row)};
}

// The rows from the front of `range` on that have about `cells_max` cells together, one at least.
RangeDelete::Slice RangeDelete::FindSlice(const Table& table, const KeyRange& range,
                                          uint64_t cells_max) {
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
  if (purpose_ == Purpose::kPurge) return slice;
  if (table.counts_are_live()) {
    slice.rows = rows.size();
  } else {
    for (const std::string& row : rows) slice.rows += view.RowIsLive(row) ? 1 : 0;
  }
  return slice;
}

// Rows that only hold what retention has dropped: to lose them is nothing that a watcher sees.
TableWatches::Mark RangeDelete::MarkDeadRows(const Table& table, std::string_view begin,
                                             std::string_view end) const {
  const ReadView view(table, store_.now_micros_);
  std::vector<std::string> dead = table.watches().RowsIn(begin, end);
  std::erase_if(dead, [&view](const std::string& row) { return view.RowIsLive(row); });
  return table.watches().TakeMark(dead);
}

}  // namespace cellar
