// Keyspace notifications: changes of tables, published as Redis publishes changes of keys.
//
//   __keyspace@0__:planes   <- "cput"        notify-keyspace-events K
//   __keyevent@0__:cput     <- "planes"      E
//
//   letter  events
//   g       table.create, table.drop, table.truncate, table.alter, family.add, family.alter,
//           family.drop, index.create, index.drop; of the generic commands del (also for each table
//           that FLUSHDB and FLUSHALL drop), rename_from, rename_to (these two also of TABLE RENAME)
//   n       new (beside table.create; not in A, as in Redis)
//   t       cput, cadd, cdel, cdelrange, cincrby, cincrbyfloat, cappend, cmutate, cupdate (also by the
//           letters of Redis' data types); of a feed xgroup-create, xgroup-setid, xgroup-destroy,
//           xgroup-createconsumer, xgroup-delconsumer
//
// One event for a command that has changed something (KEYSPACE DROP: a table.drop for each table);
// none for one that found nothing to do. What happens inside EXEC is published when all of it
// stands, and not at all if MULTI ATOMIC took it back. A message waits, like a reply, for the
// record that it tells of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellar {

class Host;
class Table;

// Events of a transaction that is not committed yet.
class TableEvents {
 public:
  struct Event {
    std::string name;
    std::string keyspace;
    std::string table;
  };
  // Publishes them.
  static void Tell(Host& host, std::span<const Event> events);
  void Add(Event event) { waiting_.push_back(std::move(event)); }
  // After the commit.
  void Publish(Host& host);
  // After the transaction has been taken back.
  void Forget() { waiting_.clear(); }

 private:
  std::vector<Event> waiting_;
};

// Tells clients that track the table, and publishes nothing.
void NotifyTrackers(Host& host, std::string_view keyspace, std::string_view table);
// Publishes if `kind` (a NotifyFlags bit, kNotifyTable for cells) is switched on, and tells clients
// that track the table (tracking.h) in any case. To be called after the change.
void NotifyTable(Host& host, uint32_t kind, std::string_view event, std::string_view keyspace,
                 std::string_view table);
// NotifyTable for tables that all went at once (FLUSHALL, FLUSHDB, KEYSPACE DROP); those who track
// are told that everything has changed. `names`: keyspace and table.
void NotifyFlushed(Host& host, std::string_view event,
                   const std::vector<std::pair<std::string, std::string>>& names);
// NotifyTable after a change of one row.
void NotifyRow(Host& host, std::string_view event, const Table& table, std::string_view row);

}  // namespace cellar
