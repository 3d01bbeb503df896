// What is known of a feed's groups, as tasks, since the entries that they have not read are counted
// in the log: XINFO GROUPS and XINFO STREAM FULL.
#pragma once

#include <cstdint>
#include <string_view>

#include "commands/feeds/group_lags.h"
#include "commands/session/command_context.h"
#include "engine/feeds/feed_group.h"

namespace cellar {

// Rows of what is pending, and consumers, in one reply of XINFO STREAM FULL.
inline constexpr uint64_t kStreamFullRowsMax{100'000};

// How many entries it asks for that says `count`.
uint64_t StreamFullCount(uint64_t count);
// What XINFO GROUPS replies, and the last pair of XINFO STREAM FULL: rows of each list of what is
// pending up to `count`. `groups` null: there are none.
void ReplyGroupsInfo(ReplyWriter& reply, const FeedGroups::OfFeed* groups, const GroupLags& lags);
void ReplyStreamGroups(ReplyWriter& reply, const FeedGroups::OfFeed* groups, const GroupLags& lags,
                       uint64_t count);

// XINFO GROUPS of the feed args[2].
void RunGroupsInfo(CommandContext& ctx);
// XINFO STREAM FULL: `count` entries, and rows of each list of what is pending; 0: all that a reply
// can have.
void RunStreamFull(CommandContext& ctx, std::string_view feed, uint64_t count);

}  // namespace cellar
