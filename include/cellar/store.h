// Store: Cellar inside a process of your own, without a server: tables of sorted rows, families,
// dynamic columns and timestamped typed cells in memory, with a log and snapshots in a directory.
//
//   Result<std::unique_ptr<Store>> store = Store::Open("/var/lib/planes", {});
//   (*store)->CreateTable("planes", {.families = {{.name = "stat", .type = "i64"}}});
//   (*store)->Put("planes", "LH400", "stat:seats", "364");
//   (*store)->Get("planes", "LH400", "stat:seats")   ->  value "364", type "i64"
//
// Words and rules are those of the manual: cellar-model(7) has tables, types, orders, retention
// and limits, cellar-query(7) bounds and filters, libcellar(3) this library. Names of tables may
// say their keyspace, "3/planes"; columns are "family:qualifier"; values are text, read and written
// as their type has it. A directory belongs to one process at a time, and may be a server's at
// another.
//
// Errors are those that a client of the server gets (status.h), by the same checks in the same
// order: a call that fails has changed nothing, but where it says otherwise.
//
// Threads: a Store, with the scans and snapshots that it gave, belongs to one thread at a time; it
// takes no lock. Its log has threads of its own (writing, syncing, snapshots). What a server does
// between its clients' commands (reclaiming dropped versions, snapshots when the log has grown)
// is done in slices of some 100 us by the calls that write, and by Maintain().
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/clock.h"
#include "cellar/status.h"

namespace cellar::embedded {

// When a call that writes returns. In every case what it wrote survives the end of the process.
enum class Sync : uint8_t {
  kAlways,       // when the disk has it
  kEverySecond,  // at once; a power loss takes a second's writes, two at most
  kNever,        // at once; the system decides when the disk has it
};

struct Options {
  bool may_create{true};  // a directory that is missing or empty; its parent must be there
  bool log{true};         // false: changes are lost unless a Checkpoint() follows
  Sync sync{Sync::kEverySecond};
  uint64_t value_bytes_max{64ULL << 20};
  Clock* clock{nullptr};  // borrowed; null: the system's
};

// FAMILY ADD in the words of cellar-model(7). What is empty or zero is not said.
struct Family {
  std::string name{};
  std::string type{};            // "i64"; empty: any bytes
  std::string order{};           // of the qualifiers, "utf8"; empty: bytes
  uint64_t versions{0};          // kept of a column; 0: all
  int64_t ttl_ms{0};             // how long a cell is kept; 0: for ever
  std::string gc{};              // a policy, "maxversions=3||maxage=7d"; not beside the two above
  std::string locality_group{};  // empty: "default"
  std::string compress{};        // "lz4", "zstd"; empty: values are kept as they are
  // COLUMN: columns that have a type of their own.
  struct Column {
    std::string qualifier{};
    std::string type{};
  };
  std::vector<Column> columns{};
};

struct TableOptions {
  std::string key{"bytes"};  // order of the rows' keys: "utf8#-u64"
  std::vector<Family> families{};
};

struct PutOptions {
  std::string_view type{};                    // of this cell; empty: the family's
  std::optional<int64_t> timestamp_micros{};  // unset: now, and later than all before
  std::optional<uint64_t> ttl_micros{};       // of this cell alone
};

struct Cell {
  std::string row;
  std::string column;  // "family:qualifier"
  int64_t timestamp_micros{0};
  std::string_view type;  // "i64"; lives as long as the program
  std::string value;      // its canonical text
};

class Snapshot;

struct ReadOptions {
  const Snapshot* snapshot{nullptr};  // null: as it is now
  // Versions that are younger are passed over.
  int64_t at_micros{std::numeric_limits<int64_t>::max()};
};

// What of one row.
struct RowOptions {
  const Snapshot* snapshot{nullptr};        // null: as it is now
  std::vector<std::string_view> columns{};  // "family:qualifier" or "family"; empty: all
  uint64_t versions{1};                     // of each column, newest first; 0: all
  // Versions that are younger are passed over.
  int64_t at_micros{std::numeric_limits<int64_t>::max()};
};

// A condition on a row, as CMUTATE's IF has them (cellar-query(7), "CONDITIONS").
struct Condition {
  enum class Test : uint8_t {
    kExists,  // the column, or without one the row
    kMissing,
    kEqual,  // the newest value, compared as its type has it; a missing one fits nothing
    kNotEqual,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kMatch,   // a glob
    kFilter,  // an expression (FILTER) that some cell of the row fits; without a column
  };
  std::string_view column{};  // "family:qualifier"
  Test test{Test::kExists};
  std::string_view value{};
};

// Which rows and cells, in which order. Views are copied before Scan() returns.
struct ScanOptions {
  const Snapshot* snapshot{nullptr};
  // At most one of these two: keys that begin with `prefix`, or a range from `min` to `max` in the
  // notation of cellar-query(7): "[a", "(a", "-", "+". Neither: all rows.
  std::string_view prefix{};
  std::string_view min{};
  std::string_view max{};
  bool reverse{false};
  std::vector<std::string_view> columns{};  // "family:qualifier" or "family"; empty: all
  uint64_t versions{1};                     // of each column, newest first; 0: all
  std::string_view filter{};                // an expression of cellar-query(7), FILTER
};

// A state of all tables that stays as it is. Holds memory for what has changed since. Must be
// destroyed before its store is closed.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
};

// The cells of a scan, one after the other: the state is that of when it was opened, whatever is
// written meanwhile. Must be destroyed before its store is closed.
class Scanner {
 public:
  virtual ~Scanner() = default;
  // Goes to the next cell, at first to the first one; false at the end. O(1) as a rule; cells that
  // a filter leaves out are passed on the way.
  virtual bool Next() = 0;
  // REQUIRES: the last Next() said true. Lives until the next one.
  virtual const Cell& cell() const = 0;
  // Goes to the first cell of the next row when Next() is called.
  virtual void SkipRow() = 0;
};

// Changes that are made together or not at all, in this order. Puts that stand beside one another
// in one row, of different columns, are one write with one timestamp: the cheapest way to load. A
// batch that is cleared and used again keeps its memory.
class Batch {
 public:
  Batch();
  ~Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;

  void Put(std::string_view table, std::string_view row, std::string_view column,
           std::string_view value, const PutOptions& options = {});
  // Adds `delta` to an integer cell; a missing one counts as 0.
  void Increment(std::string_view table, std::string_view row, std::string_view column,
                 int64_t delta);
  // The same of a float cell. ERR at Apply() if the sum is not finite.
  void IncrementFloat(std::string_view table, std::string_view row, std::string_view column,
                      double delta);
  // Adds bytes at the end of a cell; a missing one is empty.
  void Append(std::string_view table, std::string_view row, std::string_view column,
              std::string_view bytes);
  // Folds an input into a cell of an aggregate family (cellar-model(7)).
  void Add(std::string_view table, std::string_view row, std::string_view column,
           std::string_view input);
  // All versions of a column, or with "family" all columns of one.
  void Delete(std::string_view table, std::string_view row, std::string_view column);
  void DeleteRow(std::string_view table, std::string_view row);
  void Clear();
  size_t size() const;  // changes

  struct Changes;  // for the store alone
  const Changes& changes() const { return *changes_; }

 private:
  std::unique_ptr<Changes> changes_;
};

class Store {
 public:
  // Opens what `directory` holds, replaying its log. Errors: kIo, kNoSpace; kCorruption naming file
  // and offset (see cellar(1), --repair).
  static Result<std::unique_ptr<Store>> Open(const std::string& directory, const Options& options);
  virtual ~Store() = default;  // as Close(), errors ignored

  // --- tables
  virtual Status CreateTable(std::string_view table, const TableOptions& options) = 0;  // BUSYKEY
  virtual Status DropTable(std::string_view table) = 0;
  virtual Status AddFamily(std::string_view table, const Family& family) = 0;
  virtual std::vector<std::string> Tables(std::string_view keyspace) const = 0;  // ascending

  // --- writes. Each is atomic. kIo (IOERR): it is done and in memory, but the disk has refused it
  // so far; the log goes on trying, and Flush() tells. MISCONF: the disk is full or has failed
  // before, and nothing was done.
  virtual Status Put(std::string_view table, std::string_view row, std::string_view column,
                     std::string_view value, const PutOptions& options) = 0;
  Status Put(std::string_view table, std::string_view row, std::string_view column,
             std::string_view value) {
    return Put(table, row, column, value, {});
  }
  virtual Status Delete(std::string_view table, std::string_view row, std::string_view column) = 0;
  virtual Status DeleteRow(std::string_view table, std::string_view row) = 0;
  virtual Status Apply(const Batch& batch) = 0;
  // The batch, which may be of any rows, if all conditions hold of `row`; whether they did.
  virtual Result<bool> ApplyIf(std::string_view table, std::string_view row,
                               const std::vector<Condition>& conditions, const Batch& batch) = 0;
  // Adds to an integer cell; its new value.
  virtual Result<std::string> Increment(std::string_view table, std::string_view row,
                                        std::string_view column, int64_t delta) = 0;
  // The rows from `min` to `max`, in the notation of ScanOptions; how many there were. In slices,
  // each of them atomic: after an error, or the end of the process, some of the rows may be gone.
  virtual Result<uint64_t> DeleteRange(std::string_view table, std::string_view min,
                                       std::string_view max) = 0;
  // The same: the rows whose keys begin with `prefix`, which is not empty.
  virtual Result<uint64_t> DeletePrefix(std::string_view table, std::string_view prefix) = 0;

  // --- reads
  // The newest version of a column; nothing if there is none. O(log n).
  virtual Result<std::optional<Cell>> Get(std::string_view table, std::string_view row,
                                          std::string_view column, const ReadOptions& options) = 0;
  Result<std::optional<Cell>> Get(std::string_view table, std::string_view row,
                                  std::string_view column) {
    return Get(table, row, column, {});
  }
  // The cells of a row take the place of what *cells holds, whose memory is used again: keep the
  // vector from row to row. Empty if there is no such row. O(log n + cells).
  virtual Status GetRow(std::string_view table, std::string_view row, const RowOptions& options,
                        std::vector<Cell>* cells) = 0;
  virtual Result<std::unique_ptr<Scanner>> Scan(std::string_view table,
                                                const ScanOptions& options) = 0;
  // O(tables).
  virtual std::unique_ptr<Snapshot> TakeSnapshot() = 0;

  // --- durability
  // Returns when the disk has all that was written, or why it has not yet. ERR without a log.
  virtual Status Flush() = 0;
  // Writes a snapshot file of this moment and drops the log before it; waits. O(cells).
  virtual Status Checkpoint() = 0;
  // A slice of the work that waits. True if more is to be done: for programs that write rarely.
  virtual bool Maintain() = 0;
  // Flush(), and gives the directory back. ERR, and nothing is done, while scans or snapshots are
  // there. Afterwards only the destructor may follow.
  virtual Status Close() = 0;
};

}  // namespace cellar::embedded
