// The groups of commands on the server, its clients and other nodes, one file each (AclCommands is
// in acl_commands.cc, and so on).
#pragma once

#include <span>

#include "commands/catalog/command.h"

namespace cellar {

std::span<const Command> UnsupportedCommands();
std::span<const Command> AclCommands();
std::span<const Command> BackupCommands();
std::span<const Command> ClientCommands();
std::span<const Command> CommandCommands();
std::span<const Command> ConfigCommands();
std::span<const Command> ConnectionCommands();
std::span<const Command> DebugCommands();
std::span<const Command> HeatCommands();
std::span<const Command> MemoryCommands();
std::span<const Command> ObserveCommands();
std::span<const Command> PersistenceCommands();
std::span<const Command> PubSubCommands();
std::span<const Command> ReplicaCommands();
std::span<const Command> ReplicationCommands();
std::span<const Command> SentinelCommands();
std::span<const Command> ServerCommands();

}  // namespace cellar
