// See transaction_store.h.
#include "commands/session/transaction_store.h"

#include <string>

#include "commands/session/host.h"
#include "commands/session/services.h"
#include "store/store.h"

namespace cellar {

void BeginStoreTransaction(Host& host, bool atomic) {
  host.store().BeginTransaction(atomic ? Store::Atomicity::kAll : Store::Atomicity::kRedis);
}

Lsn CommitStoreTransaction(Host& host) {
  const Lsn before = host.store().last_lsn();
  host.store().CommitTransaction();
  host.services().table_events.Publish(host);
  host.services().tracking.Publish(host);
  // One that has written nothing depends only on what it read.
  const Lsn after = host.store().last_lsn();
  return after == before ? Lsn{} : after;
}

void RollBackStoreTransaction(Host& host) {
  host.store().RollBackTransaction();
  host.services().table_events.Forget();
  host.services().tracking.Forget();
}

Result<Watch> WatchTable(Host& host, std::string_view keyspace, std::string_view table) {
  Watch watch;
  watch.keyspace = keyspace;
  watch.table = table;
  const Result<Table*> found = host.store().FindTable(keyspace, table);
  if (found.ok()) {
    watch.table_id = (*found)->id();
    watch.version = (*found)->changes();
  } else if (found.status().code() != ErrorCode::kNoTable) {
    return found.status();
  }
  return watch;
}

Result<Watch> WatchTableRow(Host& host, std::string_view keyspace, std::string_view table,
                            std::string_view row) {
  ASSIGN_OR_RETURN(Table * found, host.store().FindTable(keyspace, table));
  Watch watch;
  watch.keyspace = keyspace;
  watch.table = table;
  watch.row = row;
  watch.of_row = true;
  watch.table_id = found->id();
  RETURN_IF_ERROR(host.store().RowExists(*found, row).status());  // BADKEY, TOOLARGE
  watch.version = host.store().WatchRow(*found, row);
  return watch;
}

bool WatchIsBroken(Host& host, const Watch& watch) {
  const Result<Table*> found = host.store().FindTable(watch.keyspace, watch.table);
  const uint64_t id = found.ok() ? (*found)->id() : 0;
  if (id != watch.table_id) return true;
  if (id == 0) return false;  // there was none and there is none
  if (!watch.of_row) return (*found)->changes() != watch.version;
  const auto changes = host.store().WatchedRowChanges(watch.table_id, watch.row);
  return !changes || *changes != watch.version;
}

void ReleaseWatch(Host& host, const Watch& watch) {
  if (watch.of_row) host.store().UnwatchRow(watch.table_id, watch.row);
}

}  // namespace cellar
