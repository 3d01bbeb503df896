// Services: what the commands share besides the data: the command table, subscriptions, counters.
// Owned by the server (one each), reached through Host::services().
#pragma once

#include "commands/command_table.h"
#include "commands/pubsub.h"
#include "commands/server_stats.h"

namespace cellar {

struct Services {
  CommandTable commands;
  PubSub pubsub;
  ServerStats stats;
};

}  // namespace cellar
