// What is known of a feed's groups, as tasks, since the entries that they have not read are counted
// in the log: XINFO GROUPS and XINFO STREAM FULL.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/session/command_context.h"

namespace cellar {

// Rows of what is pending, and consumers, in one reply of XINFO STREAM FULL.
inline constexpr uint64_t kStreamFullRowsMax{100'000};

// XINFO GROUPS of the feed args[2].
void RunGroupsInfo(CommandContext& ctx);
// XINFO STREAM FULL: `count` entries, and rows of each list of what is pending; 0: all that a reply
// can have.
void RunStreamFull(CommandContext& ctx, std::string_view feed, uint64_t count);

}  // namespace cellar
