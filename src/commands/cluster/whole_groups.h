// Groups of a whole feed, at its home: the set that has them (engine/feeds/feed_group.h) reads the
// entries of all sets in one order (merged_feed.h) and gives them out. Other nodes pass commands of
// groups on to whoever leads it, as they do with those about rows.
//
//   FeedGroups   WholeFeedGroups(id) -> groups, whose ids are merged ones
//   news         MergedFeed, behind the group's last id
//   pending      FEED ENTRIES f@n id ..., of each set its own
//
// What a task has read it gives out in the step in which that becomes pending. Another one may have
// been faster: then it passes over what that one has given out.
#pragma once

#include <memory>
#include <string_view>

#include "commands/feeds/group_source.h"
#include "commands/session/command_context.h"

namespace cellar {

// Those of the whole feed, if that is what the word says, or the set's own.
Result<std::unique_ptr<GroupSource>> OpenGroups(CommandContext& ctx, const Feed& feed,
                                                std::string_view word);

}  // namespace cellar
