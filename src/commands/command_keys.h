// Which arguments of a command are tables: for COMMAND GETKEYS, access control, MONITOR's readers.
#pragma once

#include <string_view>
#include <vector>

#include "commands/command.h"

namespace cellar {

// Positions of the keys among `words` words.
std::vector<size_t> KeyPositions(const KeySpec& keys, size_t words);

// Redis' words for what is done with a key: {"RO", "access"} ...
std::vector<std::string_view> KeyAccessFlags(KeyAccess access);

}  // namespace cellar
