// The groups of commands, one file each (CellReadCommands is in cell_read_commands.cc, and so on);
// command_groups.cc lists them.
#pragma once

#include <span>

#include "commands/catalog/command.h"
#include "commands/catalog/command_table.h"

namespace cellar {

std::span<const Command> AbsentCommands();
std::span<const Command> AclCommands();
std::span<const Command> AggregateCommands();
std::span<const Command> BackupCommands();
std::span<const Command> CellReadCommands();
std::span<const Command> CellWriteCommands();
std::span<const Command> ClientCommands();
std::span<const Command> CommandCommands();
std::span<const Command> ConfigCommands();
std::span<const Command> ConnectionCommands();
std::span<const Command> DebugCommands();
std::span<const Command> ExplainCommands();
std::span<const Command> FamilyCommands();
std::span<const Command> FeedCommands();
std::span<const Command> GenericCommands();
std::span<const Command> GroupCommands();
std::span<const Command> HeatCommands();
std::span<const Command> IndexCommands();
std::span<const Command> KeyspaceCommands();
std::span<const Command> MemoryCommands();
std::span<const Command> ObserveCommands();
std::span<const Command> PersistenceCommands();
std::span<const Command> PubSubCommands();
std::span<const Command> ReplicaCommands();
std::span<const Command> ReplicationCommands();
std::span<const Command> SentinelCommands();
std::span<const Command> ServerCommands();
std::span<const Command> SnapshotCommands();
std::span<const Command> StreamCommands();
std::span<const Command> TableCommands();
std::span<const Command> TransactionCommands();

// Adds every group to the table.
void AddAllCommands(CommandTable* table);

}  // namespace cellar
