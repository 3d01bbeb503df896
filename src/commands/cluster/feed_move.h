// FEED MOVE feed TO set: the groups of all of a feed get another home (server/feed_homes.h).
// Replies once they are there; one that waits no longer leaves them on their way.
#pragma once

#include "commands/session/command_context.h"

namespace cellar {

void CmdFeedMove(CommandContext& ctx);

}  // namespace cellar
