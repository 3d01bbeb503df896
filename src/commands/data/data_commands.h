// The groups of commands on what is stored, one file each (CellReadCommands is in
// cell_read_commands.cc, and so on).
#pragma once

#include <span>

#include "commands/catalog/command.h"

namespace cellar {

std::span<const Command> AggregateCommands();
std::span<const Command> CellReadCommands();
std::span<const Command> CellWriteCommands();
std::span<const Command> ExplainCommands();
std::span<const Command> FamilyCommands();
std::span<const Command> FeedCommands();
std::span<const Command> GenericCommands();
std::span<const Command> GroupCommands();
std::span<const Command> IndexCommands();
std::span<const Command> KeyspaceCommands();
std::span<const Command> SnapshotCommands();
std::span<const Command> StreamCommands();
std::span<const Command> TableCommands();
std::span<const Command> TransactionCommands();

}  // namespace cellar
