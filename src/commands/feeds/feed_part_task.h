// What the groups of a whole feed ask each set about its own part (cluster/whole_groups.h); on one
// server, and of f@n, anybody may.
#pragma once

#include "commands/session/command_context.h"

namespace cellar {

// FEED ENTRIES feed [JUSTID] id ...: those of them that are there, and up to where the feed has
// dropped what it told.
void RunFeedEntries(CommandContext& ctx);
// FEED BEHIND feed id ...: how many entries the feed has told, and how many are behind each id.
void RunFeedBehind(CommandContext& ctx);

}  // namespace cellar
