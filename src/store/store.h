// Store: the one door to data. Finds tables, reads rows, and carries out every change in three
// steps: check (every user error ends there), log (a record in the journal's buffer, which gives it
// its LSN), apply (the trees change; cannot fail any more).
//
// Owns the Engine (the model in memory) and the Journal (log and snapshots). One thread, the
// loop's, calls it. Knows nothing of sockets, sessions or replies. Times are the turn's:
// SetTurnTime is called once a turn (and not inside EXEC, where time stands still).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/engine.h"
#include "engine/read_options.h"
#include "engine/row_write.h"
#include "engine/scan.h"
#include "engine/schema.h"
#include "engine/table.h"

namespace cellar {

class Journal;

// One cell's newest version, for CGET. `stored` lives until the next write.
struct CellView {
  int64_t timestamp_micros{0};
  ValueType type{ValueType::kBytes};
  std::string_view stored;
};

struct NearRow {
  std::string row;   // canonical text
  int direction{0};  // 0 the row itself, 1 the smallest larger, -1 the largest smaller
};

// A change too large for one turn: CDELRANGE, FAMILY ALTER on a large table. Step() does a bounded
// piece, each piece atomic and logged; the caller goes on until done() and then asks for the
// outcome.
class SlicedChange {
 public:
  virtual ~SlicedChange() = default;
  // Examines about `cells_max` cells. An error ends it.
  virtual Status Step(uint64_t cells_max) = 0;
  virtual bool done() const = 0;
  virtual uint64_t rows_deleted() const = 0;
};

class Store {
 public:
  // --- names. `name` may be "keyspace/table", which overrides `keyspace`. NOKEYSPACE, NOTABLE.
  Result<Table*> FindTable(std::string_view keyspace, std::string_view name);
  bool KeyspaceExists(std::string_view name) const;
  std::vector<std::string> Keyspaces() const;                   // ascending
  std::vector<Table*> Tables(std::string_view keyspace) const;  // ascending by name

  // --- writes of one row. All errors of SPEC.md sections 9 and 12 come from here.
  Result<RowWriteResult> Write(Table& table, const RowWrite& write);

  // --- reads
  // Newest live version at or before `at_micros`; nullopt if there is none. `column` is
  // "family:qualifier" taken apart.
  Result<std::optional<CellView>> Get(Table& table, std::string_view row, std::string_view family,
                                      std::string_view qualifier, int64_t at_micros);
  Result<bool> RowExists(Table& table, std::string_view row);
  Result<std::unique_ptr<Scan>> ScanRow(Table& table, std::string_view row,
                                        const CellOptions& cells);
  // Goes on from `from` if given.
  Result<std::unique_ptr<Scan>> ScanRows(Table& table, const RowOptions& rows,
                                         const CellOptions& cells, const ScanPosition* from);
  // CNEAR; nullopt if the table is empty.
  Result<std::optional<NearRow>> Near(Table& table, std::string_view row);

  // SNAPSHOT cursors: a pinned view of a table, found again by its id until it is unused for
  // snapshot-cursor-timeout. STALECURSOR if it is gone.
  uint64_t PinSnapshot(Table& table);
  Result<std::unique_ptr<Scan>> ScanPinned(uint64_t id, Table& table, const RowOptions& rows,
                                           const CellOptions& cells, const ScanPosition* from);
  void UnpinSnapshot(uint64_t id);

  // The newest record of the log: what replies about a schema or a sliced change depend on, whose
  // table may be gone by then.
  Lsn last_lsn() const;

  // --- sliced changes
  // CDELRANGE: rows in the union of `rows`; ALL is no selector.
  Result<std::unique_ptr<SlicedChange>> DeleteRows(Table& table, const RowOptions& rows);

  // --- schema
  Status CreateKeyspace(std::string_view name);
  Status DropKeyspace(std::string_view name);
  struct NewFamily {
    std::string_view name;
    FamilyOptions options;
  };
  Status CreateTable(std::string_view keyspace, std::string_view name, const Order& key,
                     const std::vector<NewFamily>& families);
  Status DropTable(Table& table);
  Status TruncateTable(Table& table);
  // BUSYKEY if the target exists, unless `overwrite`.
  enum class Overwrite : uint8_t { kNo, kYes };
  Status RenameTable(Table& table, std::string_view keyspace, std::string_view name, Overwrite o);
  Status AddFamily(Table& table, const NewFamily& family);
  // First reclaims what the old policy has dropped: in slices, then sets the options.
  Result<std::unique_ptr<SlicedChange>> AlterFamily(Table& table, const NewFamily& family);
  Status DropFamily(Table& table, std::string_view name);

  // --- transactions (EXEC): everything between Begin and Commit is one log record.
  enum class Atomicity : uint8_t { kRedis, kAll };  // kAll can be rolled back (MULTI ATOMIC)
  void BeginTransaction(Atomicity atomicity);
  void CommitTransaction();
  void RollBackTransaction();  // REQUIRES: begun with kAll
  bool in_transaction() const;

  // WATCH, CWATCH: numbers that grow with every applied change of the table (schema included) or
  // row. A watched row must be registered while it is watched.
  uint64_t WatchRow(Table& table, std::string_view row_key);
  void UnwatchRow(uint64_t table_id, std::string_view row_key);

  // --- time
  void SetTurnTime();
  int64_t now_micros() const { return now_micros_; }
  // DEBUG SET-TIME; nullopt is the clock again.
  void OverrideTime(std::optional<int64_t> micros);

  // --- digest of all schema and live cells (DEBUG DIGEST). O(n).
  std::string Digest();

 private:
  int64_t now_micros_{0};
};

}  // namespace cellar
