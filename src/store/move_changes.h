// MoveChanges: the moves of tablets (engine/state/tablet_moves.h) as a set logs them: each change
// is checked, then one mutation. What cannot be is CORRUPTION, and nothing was changed; MISCONF: no
// room in the log, likewise.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/order.h"
#include "engine/state/tablet_moves.h"
#include "store/range_copy.h"
#include "store/range_tail.h"

namespace cellar {

class Engine;
class Store;
class Table;

// What is owned, and what is given away and not known to be owned by the other set yet: as long the
// map is to say nothing else.
Tablets::Pointer ClaimedTablets(const Engine& engine, const Table& table);

// Before a change of the schema that these ops make: TRYAGAIN if it concerns a table of which a
// tablet is between two sets, for the milliseconds that takes. Other jobs of its tables end by the
// same mutation: the ops for that are added to it.
Status CheckMovesOf(const Engine& engine, std::string_view ops, MutationBuilder* mutation);
// TRYAGAIN if that tablet is moving.
Status CheckRests(const Engine& engine, const Table& table, const Tablet& tablet);

class MoveChanges {
 public:
  explicit MoveChanges(Store& store) : store_(store) {}

  // --- the donor. REQUIRES: no transaction, of all of these
  // TRYAGAIN, ERR: not all members know moves; what the table keeps is being changed (Stage, too);
  // an index of it is being built, and may fail for rows that the recipient would take for good.
  Status Begin(uint64_t job, const MoveOut& move);
  Status Give(uint64_t job);
  Status Done(uint64_t job);
  Status Cancel(uint64_t job);  // also the recipient's
  // What is given is the set's own again, as it was then, with an epoch above the one that the
  // recipient had it with. REQUIRES: the recipient is lost for good.
  Status Reclaim(uint64_t job);
  Status Raise(uint64_t floor);

  // --- the recipient
  // `failures` (EncodeIndexFailures): of indexes of the table at the donor. Rows for which an index
  // could not be built are about to come, and who keeps an index does not look for them.
  Status Stage(uint64_t job, const MoveIn& move, std::string_view failures);
  Status Clear(uint64_t job, uint64_t attempt);
  // `ops`: as RangeCopy and RangeTail make them.
  Status Fill(uint64_t job, const MovePart& part, std::string_view ops);
  // `stamp`, `record_next`: the donor's newest timestamp, and the next record number of the table.
  Status Own(uint64_t job, const MovePart& part, int64_t stamp, uint64_t record_next);

  // Rows that are stored and not owned, nor on their way: deletes some, about `cells_max` cells.
  // True: there were some. O(gaps log n)
  Result<bool> Purge(uint64_t cells_max);
  // Those of a stage that has not begun.
  Result<bool> PurgeStage(const MoveIn& move, uint64_t cells_max);

  // What a copy is made of.
  RangeTail TailOf(const MoveOut& move, const LogMark& from);
  // The last record, and its commit time.
  LogMark Mark() const;
  // The log that a tail needs stays. 0: none is needed.
  void Retain(uint64_t segment);

 private:
  // What of it is about who owns what changes what replies tell of the table; what is stored of
  // other sets' rows nobody sees.
  enum class Seen : uint8_t { kYes, kNo };
  void RaiseCommitTime(int64_t micros);
  Status Commit(uint64_t table_id, Seen seen = Seen::kYes);
  Status Log(MutationOp op, uint64_t job);
  uint64_t TableOf(uint64_t job) const;
  Status CheckSettled(uint64_t table_id) const;
  Status CheckIndexes(uint64_t table_id) const;
  bool IsStored(const Table& table, const KeyRange& range) const;
  Result<bool> PurgeRanges(Table& table, const std::vector<KeyRange>& ranges, uint64_t cells_max);

  Store& store_;
};

}  // namespace cellar
