// XINFO GROUPS and XINFO STREAM FULL of a whole feed, at its home: what the groups are is known
// there, what is behind them each set counts. A set that does not answer within a second is left
// out, and what it would have to say is null.
#pragma once

#include <cstdint>

#include "commands/session/command_context.h"

namespace cellar {

// Of the feed args[2].
void RunWholeGroupsInfo(CommandContext& ctx);
void RunWholeStreamFull(CommandContext& ctx, uint64_t count);

}  // namespace cellar
