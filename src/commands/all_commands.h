// All commands that there are: data/ and admin/ have them, one file for each group.
#pragma once

#include "commands/catalog/command_table.h"

namespace cellar {

// Adds every group to the table.
void AddAllCommands(CommandTable* table);

}  // namespace cellar
