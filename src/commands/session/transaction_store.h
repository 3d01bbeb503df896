// What transactions need of the store, apart from the commands: one log record for an EXEC, and the
// numbers that WATCH and CWATCH compare.
#pragma once

#include <string_view>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "commands/session/transaction.h"

namespace cellar {

// Returns what the reply of EXEC depends on.
Lsn CommitStoreTransaction(Host& host);
void RollBackStoreTransaction(Host& host);

// `table` may be "keyspace/table". A table that does not exist may be watched (its creation breaks
// the watch); a row of it may not (NOTABLE), since there is no order to read its key by.
Result<Watch> WatchTable(Host& host, std::string_view keyspace, std::string_view table);
Result<Watch> WatchTableRow(Host& host, std::string_view keyspace, std::string_view table,
                            std::string_view row);
// Whether the table or row has changed since.
bool WatchIsBroken(Host& host, const Watch& watch);
void ReleaseWatch(Host& host, const Watch& watch);

}  // namespace cellar
