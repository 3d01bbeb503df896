// The moment that an export shows: a named snapshot of the table, which outlives connections and
// the server's restarts, and is shared by all parts.
#pragma once

#include <string>
#include <string_view>

#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::exporter {

// How TABLE@SNAPSHOT is called; the table itself if there is no snapshot.
std::string TableAt(const std::string& table, std::string_view snapshot);

// export.<id>, that nobody else has.
std::string NewSnapshotName();
// Makes snapshot `name` of `table` alone, that lives for a day. False if this user or server cannot
// make one, and why not in *refusal. kIo: it may have been made.
Result<bool> MakeSnapshot(client::Connection* connection, const std::string& table,
                          const std::string& name, std::string* refusal);
// Ok also if it is not there.
Status DropSnapshot(client::Connection* connection, const std::string& table,
                    const std::string& snapshot);

}  // namespace cellar::exporter
