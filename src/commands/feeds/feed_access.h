// Which feeds a user may read, make and drop. The name of a feed is no key of access control: what
// counts are the families that it tells of.
#pragma once

#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/acl/feed_rights.h"
#include "commands/session/command_context.h"
#include "engine/feeds/feed.h"

namespace cellar {

// The tables may be written as wholes, as TABLE CREATE demands it. NOPERM.
Status CheckMayMakeFeed(const CommandRights* rights, const Feed& feed);

// The feeds of the client's keyspace that may be read, ascending by name.
std::vector<const Feed*> VisibleFeeds(const CommandContext& ctx);
// Null if there is none that may be read.
const Feed* FindVisibleFeed(const CommandContext& ctx, std::string_view word);
// NOFEED, WRONGTYPE for the name of a table, NOPERM.
Result<const Feed*> FindFeed(const CommandContext& ctx, std::string_view word);
// TOOLARGE where one command is to read a feed again and again: each time costs as much.
Status CheckNamedSeldom(std::vector<const Feed*> feeds);

}  // namespace cellar
