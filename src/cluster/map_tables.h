// How the map lies in a store: tables of the keyspace _cluster in set 0, which everybody may read
// (CSCAN _cluster/tablets 0) and the leader of set 0 alone writes, of itself.
//
//   table    key                  columns of its one family f, which keeps one version
//   tablets  table=u64/number=u64 table (its name: keyspace/table), start, end (encoded row keys),
//                                 set, epoch, version
//            0/0                  version, floor, next: of the map (map_cache.h)
//   sets     u64                  id (of the set, 16 hexadecimal digits), joined (Unix ms), draining,
//                                 removed
//   options  utf8                 value: of each option that has been set
//   catalog  u64                  change: of the schema, by number, until every set has it
//                                 (store/catalog_changes.h); also then the newest kChangesKept, so
//                                 that a set that comes back older can be told of them
//   jobs     u64                  tablets that move (cluster/move_jobs.h), by number; 0: next
//   cuts     -u64                 moments over all sets, by the number of their change: time (Unix
//                                 micros), purpose, state (open, good, bad); the newest
//                                 kRestorePointsMax, and kOtherCutsMax others
//   events   -u64                 time (Unix ms), what, why; the newest kEventsMax, newest first
//
// Numbers are decimal texts. Tablets have numbers of their own and not their starts as keys, since
// a start may be as long as a row key. What belongs together is written by one record.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "cluster/map_cache.h"
#include "cluster/move_jobs.h"
#include "store/catalog_changes.h"

namespace cellar {

class Store;
class Table;

struct ClusterEvent {
  int64_t unix_ms{0};
  std::string what;
  std::string why;
};

// The names of all of them.
inline constexpr std::string_view kClusterTables[] = {"tablets", "sets", "options", "events",
                                                      "catalog", "jobs", "cuts"};

class MapTables {
 public:
  static constexpr uint64_t kEventsMax{1000};
  // Of cuts that were made to be recovered to, and of others.
  static constexpr uint64_t kRestorePointsMax{5'000};
  static constexpr uint64_t kOtherCutsMax{200};

  explicit MapTables(Store& store) : store_(store) {}

  // All that `write` changes is one record, or nothing is. REQUIRES: no transaction.
  static Status AsOne(Store& store, const std::function<Status()>& write);

  // Whether the store is part of a cluster, and has its tables.
  bool exist() const;
  // The table of the tablets: what it holds changes with its last_lsn(). REQUIRES: exist().
  const Table& tablets() const;
  const Table& sets() const;  // likewise

  // Keyspace and tables, empty. BUSYKEY: there is a keyspace of that name. REQUIRES: the store is
  // part of no cluster yet; a transaction.
  Status Create();
  // All of it goes. REQUIRES: the store is part of no cluster any more; a transaction.
  Status Drop();

  // kCorruption if they are not as they are written.
  Status Load(MapCache* map);
  // MISCONF and the like: whatever of it was written is to be rolled back. REQUIRES: a transaction.
  Status Write(const MapChange& change);
  // As if nothing had been there: before the Write of a map that was made anew.
  Status Clear();
  Status WriteSet(uint64_t set, std::string_view id, int64_t unix_ms);
  enum class SetMark : uint8_t { kDraining, kRemoved };
  Status MarkSet(uint64_t set, SetMark mark, bool is_so);
  Status WriteChange(const CatalogChange& change);
  // Of changes that every set has; fewer where they are more bytes than that.
  static constexpr uint64_t kChangesKept{50'000};
  static constexpr uint64_t kChangesBytesMax{64 << 20};
  uint64_t changes_bytes() const;
  // Those up to `number` go, some at each call. REQUIRES: a transaction.
  Status ForgetChanges(uint64_t number);
  Status WriteOption(std::string_view name, std::string_view value);
  Status AddEvent(const ClusterEvent& event);

  // Null: nothing has moved in a cluster that an older version has begun.
  const Table* jobs() const;
  Status CreateJobs();  // if it is not there. REQUIRES: a transaction
  struct JobRows {
    std::map<uint64_t, MoveJob> jobs{};
    uint64_t next{1};
  };
  Result<JobRows> Jobs();
  Status WriteJob(const MoveJob& job);
  Status WriteNextJob(uint64_t next);
  Status DeleteJob(uint64_t number);

  // Whether there is a table for them, which there is not in a cluster that an older version has
  // begun.
  bool has_cuts() const;
  Status CreateCuts();  // if it is not there. REQUIRES: a transaction
  enum class CutState : uint8_t { kOpen, kGood, kBad };
  struct CutRow {
    uint64_t number{0};
    int64_t time_micros{0};
    std::string purpose{};
    CutState state{CutState::kOpen};
  };
  static std::string_view CutStateName(CutState state);
  std::vector<CutRow> Cuts(uint64_t count);  // newest first
  // The oldest ones make way. REQUIRES: a transaction.
  Status WriteCut(const CutRow& cut);

  struct SetRow {
    uint64_t number{0};
    uint64_t id{0};
    bool draining{false};
    bool removed{false};  // its number is never used again
  };
  // Also those that were removed. CORRUPTION if one is not as it was written.
  Result<std::vector<SetRow>> Sets();
  // The number of the oldest change that is kept; 0: none is.
  uint64_t FirstChange();
  // False: it is not kept.
  bool ReadChange(uint64_t number, CatalogChange* change);
  std::map<std::string, std::string> Options();
  std::vector<ClusterEvent> Events(uint64_t count);  // newest first

 private:
  // REQUIRES: a transaction.
  Status DropOldCuts();
  struct Cell {
    std::string_view column;
    std::string_view value;
  };
  struct Row {
    std::string key;
    std::map<std::string, std::string> cells;  // by qualifier
    std::string_view Text(const std::string& column) const;
    bool Number(const std::string& column, uint64_t* number) const;
  };
  Table* Find(std::string_view name) const;
  Status Put(std::string_view table, std::string_view row, const std::vector<Cell>& cells);
  Status Delete(std::string_view table, std::string_view row);
  // In the order of keys, at most so many.
  std::vector<Row> Rows(std::string_view table, uint64_t rows_max);

  Store& store_;
};

}  // namespace cellar
