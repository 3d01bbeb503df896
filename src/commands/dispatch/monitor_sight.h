// What a user in MONITOR sees who may not read everything: a command as a whole, or nothing of it.
//
// A command is shown if each table that any of its words names may be read as a whole. Which words
// those are follows from the command table: the keys; feeds, which stand for the tables that they
// cover; channels, of which the user must be allowed to hear. Of a command with other words the
// syntax tells whether these could name a table (a pattern, a prefix, a command). What is not known
// to be harmless is hidden, and so is what cannot be understood: a new command is hidden until
// somebody has thought of it.
#pragma once

#include <string_view>

#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"

namespace cellar {

class Host;
struct User;

// `keyspace` is that of the client whose command it is. To be asked before the command is carried
// out: it may drop what it names. O(words).
bool MaySeeCommand(Host& host, const User& watcher, std::string_view keyspace,
                   const CommandEntry& command, Arguments args);

}  // namespace cellar
