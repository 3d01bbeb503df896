// Which arguments of a command are tables: for COMMAND GETKEYS, access control, MONITOR's readers.
#pragma once

#include <string_view>
#include <vector>

#include "commands/arguments/arguments.h"
#include "commands/catalog/command.h"

namespace cellar {

// Positions of the keys among the words of a command, its name included. Empty too if the command
// says how many there are and that cannot be (the command refuses itself then).
std::vector<size_t> KeyPositions(const KeySpec& keys, Arguments words);

// Redis' words for what is done with a key: {"RO", "access"} ...
std::vector<std::string_view> KeyAccessFlags(KeyAccess access);

}  // namespace cellar
