// The list of groups: a new file of commands is one line here and one in its folder's header.
#include "commands/all_commands.h"

#include "commands/admin/admin_commands.h"
#include "commands/cluster/cluster_commands.h"
#include "commands/data/data_commands.h"

namespace cellar {

void AddAllCommands(CommandTable* table) {
  for (const auto group :
       {UnsupportedCommands, AclCommands,         AggregateCommands,   BackupCommands,
        CellReadCommands,    CellWriteCommands,   ClientCommands,      ClusterCommands,
        CommandCommands,     ConfigCommands,      ConnectionCommands,  DebugCommands,
        ExplainCommands,     FamilyCommands,      FeedCommands,        GenericCommands,
        GroupCommands,       HeatCommands,        IndexCommands,       KeyspaceCommands,
        MemoryCommands,      ObserveCommands,     PersistenceCommands, PubSubCommands,
        ReplicaCommands,     ReplicationCommands, SentinelCommands,    ServerCommands,
        SnapshotCommands,    StreamCommands,      TableCommands,       TabletCommands,
        TransactionCommands}) {
    table->Add(group());
  }
}

}  // namespace cellar
