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

// Makes a snapshot of `table` alone, export.<id>, that lives for a day. Its name; empty if this
// user or server cannot make one, and why not in *refusal.
Result<std::string> MakeSnapshot(client::Connection* connection, const std::string& table,
                                 std::string* refusal);
// It goes by itself if this fails.
void DropSnapshot(client::Connection* connection, const std::string& table,
                  const std::string& snapshot);

}  // namespace cellar::exporter
