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

class Store;

// The tables may be written as wholes, as TABLE CREATE demands it. NOPERM.
Status CheckMayMakeFeed(const CommandRights* rights, const Feed& feed);

// The feeds of the client's keyspace that may be read, ascending by name.
std::vector<const Feed*> VisibleFeeds(const CommandContext& ctx);
// The feed of that name, which may be followed by the own set of a cluster: f@3. Null: none.
const Feed* FeedNamed(Store& store, std::string_view keyspace, std::string_view word);
// Null if there is none that may be read.
const Feed* FindVisibleFeed(const CommandContext& ctx, std::string_view word);
// NOFEED, WRONGTYPE for the name of a table, NOPERM.
Result<const Feed*> FindFeed(const CommandContext& ctx, std::string_view word);
// Whether the word is that of all of the feed, over several sets; once it has had groups as such it
// stays so, also at the last set.
bool IsWholeFeed(Host& host, const Feed& feed, std::string_view word);
// What FeedGroups calls the groups of the feed that is called so. TRYAGAIN: they are those of all
// of it, and not here (yet, or any more).
Result<uint64_t> FindGroupsOf(Host& host, const Feed& feed, std::string_view word);
Status CheckGroupsHere(Host& host, const Feed& feed, std::string_view word);
// An id that a client has named, as groups of a whole feed have it: what was given out while there
// was one set was set 0's own.
FeedId WholeIdOf(const FeedId& id);
// In a cluster an id may be one of the feed that is merged of all sets: as this set has it.
FeedId OwnId(const CommandContext& ctx, const FeedId& id);
// TOOLARGE where one command is to read a feed again and again: each time costs as much.
Status CheckNamedSeldom(std::vector<const Feed*> feeds);

}  // namespace cellar
