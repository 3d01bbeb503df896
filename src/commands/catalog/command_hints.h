// What a client may have meant by a command that there is not: Redis' data types, SQL, cbt and
// HBase's shell have words of their own for what Cellar does, and fingers slip.
//
//   ERR unknown command 'HSET', with args beginning with: 'h' 'f' 'v'
//     -- try CPUT table row column value                       (on the same line)
//   ERR unknown subcommand 'CREATE'. Try FAMILY HELP. Did you mean FAMILY ADD?
//
// The hint goes behind Redis' text, which stays as clients know it. Nothing is ever run instead.
#pragma once

#include <string>
#include <string_view>

#include "commands/catalog/command_table.h"

namespace cellar {

// What goes behind the error of an unknown command: begins with "-- " and tells what to try; empty
// if nothing comes to mind. Costs some 20 us: a comparison with the name of every command.
[[gnu::cold]] std::string CommandHint(const CommandTable& commands, std::string_view word);

// A sentence for the error of an unknown subcommand, with a blank before it; likewise empty.
[[gnu::cold]] std::string SubcommandHint(const CommandEntry& container, std::string_view word);

}  // namespace cellar
