// See transaction_store.h.
// What EXEC and WATCH ask of the store. A transaction ends with the messages that it owes. A watch
// is a number by which a later look tells whether something has changed.
#include "commands/session/transaction_store.h"

#include <string>

#include "base/assert.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "engine/state/engine.h"
#include "store/store.h"

namespace cellar {

Lsn CommitStoreTransaction(Host& host) {
  const Lsn before = host.store().last_lsn();
  host.store().CommitTransaction();
  // Behind the commit: what is told waits for the record of the transaction.
  host.services().tracking.Publish(host);
  host.services().table_events.Publish(host);
  // One that has written nothing depends only on what it read.
  const Lsn after = host.store().last_lsn();
  CELLAR_ASSERT(after >= before);
  return after == before ? Lsn{} : after;
}

void RollBackStoreTransaction(Host& host) {
  host.store().RollBackTransaction();
  host.services().table_events.Forget();
  host.services().tracking.Forget();
}

Result<Watch> WatchTable(Host& host, std::string_view keyspace, std::string_view name) {
  const TableName split = SplitTableName(keyspace, name);
  Engine& engine = host.store().engine();
  Watch watch{.keyspace = std::string(split.keyspace), .table = std::string(split.table)};
  watch.lineage = engine.lineage();
  const Result<Table*> found = host.store().FindTable(keyspace, name);
  if (found.ok()) {
    watch.table_id = (*found)->id();
    watch.version = (*found)->changes();
  } else if (found.status().code() == ErrorCode::kNoTable) {
    // No such table: its name is watched, in case that one comes and goes.
    watch.version = engine.WatchName(watch.keyspace, watch.table);
  } else {
    return found.status();
  }
  return watch;
}

Result<Watch> WatchTableRow(Host& host, std::string_view keyspace, std::string_view name,
                            std::string_view row) {
  const TableName split = SplitTableName(keyspace, name);
  ASSIGN_OR_RETURN(Table * found, host.store().FindTable(keyspace, name));
  Watch watch{.keyspace = std::string(split.keyspace), .table = std::string(split.table)};
  ASSIGN_OR_RETURN(watch.row, host.store().RowKey(*found, row));  // BADKEY, TOOLARGE
  // Nothing in a snapshot changes: nothing needs to be counted.
  if (found->frozen()) return watch;
  watch.of_row = true;
  watch.table_id = found->id();
  watch.lineage = host.store().engine().lineage();
  watch.version = found->watches().Watch(watch.row);
  return watch;
}

bool WatchIsBroken(Host& host, const Watch& watch) {
  const Engine& engine = host.store().engine();
  if (watch.table.find(kSnapshotSign) != std::string::npos) return false;  // it never changes
  if (watch.lineage != engine.lineage()) return true;
  const Table* const table = engine.FindTable(watch.keyspace, watch.table);
  if ((table == nullptr ? 0 : table->id()) != watch.table_id) return true;
  if (table == nullptr) {  // there was none and there is none; in between, too?
    return engine.NameChanges(watch.keyspace, watch.table) != watch.version;
  }
  if (!watch.of_row) return table->changes() != watch.version;
  return table->watches().RowChanges(watch.row) != watch.version;
}

void ReleaseWatch(Host& host, const Watch& watch) {
  Engine& engine = host.store().engine();
  // The state was loaded again, and what it counted for watches is gone with the old one.
  if (watch.lineage != engine.lineage()) return;
  if (watch.table_id == 0) return engine.UnwatchName(watch.keyspace, watch.table);
  if (!watch.of_row) return;
  CELLAR_ASSERT(!watch.row.empty());
  Table* const table = engine.FindTableById(watch.table_id);
  if (table != nullptr) table->watches().Unwatch(watch.row);
}

}  // namespace cellar
