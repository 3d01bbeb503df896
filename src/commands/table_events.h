// Keyspace notifications: changes of tables, published as Redis publishes changes of keys.
//
//   __keyspace@0__:planes   <- "cput"        notify-keyspace-events K
//   __keyevent@0__:cput     <- "planes"      E
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/arguments.h"

namespace cellar {

struct CommandEntry;
class Host;
struct Session;

// Publishes if `kind` (a NotifyFlags bit, kNotifyTable for cells) is switched on.
void NotifyTable(Host& host, uint32_t kind, std::string_view event, std::string_view keyspace,
                 std::string_view table);

// Publishes what a command with the flag `write` has done to the tables it names, unless its reply
// says that it did nothing (an error, null, 0). The event is the command's name ("cput",
// "table.create"); DEL, UNLINK and the RENAMEs have Redis' events.
void NotifyWritten(Host& host, const Session& session, const CommandEntry& command, Arguments args,
                   std::string_view reply);

}  // namespace cellar
