// The groups of commands, one file each; command_groups.cc lists them.
#pragma once

#include <span>

#include "commands/command.h"
#include "commands/command_table.h"

namespace cellar {

std::span<const Command> ConnectionCommands();  // connection_commands.cc
std::span<const Command> CommandCommands();     // command_commands.cc
std::span<const Command> CellReadCommands();    // cell_read_commands.cc
std::span<const Command> CellWriteCommands();   // cell_write_commands.cc
std::span<const Command> TableCommands();       // table_commands.cc
std::span<const Command> FamilyCommands();      // family_commands.cc
std::span<const Command> TableKeyCommands();    // table_key_commands.cc

// Adds every group to the table.
void AddAllCommands(CommandTable* table);

}  // namespace cellar
