// Consumer groups as tasks: what reads entries of a feed, or has to know what it has dropped.
//
//   XREADGROUP >    a step reads behind the group's last id, and what it has read is the consumer's
//                   when the step ends: one record of the log. So no two readers get the same
//                   entry, however many read at once.
//   XREADGROUP id   the ids that are pending with the consumer are taken down first; then their
//   XCLAIM          entries are looked for in the log, which may take several steps; at the end it
//   XAUTOCLAIM      is looked again whether they are still what they were.
//
// An entry that is pending and has been dropped by the feed is told as one that is gone, as Redis
// tells what XDEL has deleted.
#pragma once

#include <memory>
#include <string_view>

#include "commands/arguments/group_arguments.h"
#include "commands/feeds/group_source.h"
#include "commands/session/command_context.h"
#include "engine/feeds/feed_group.h"

namespace cellar {

void RunGroupRead(CommandContext& ctx, const GroupReadRequest& request, OpenGroupSource open);
// Of the feed args[1], the group args[2], the consumer args[3].
void RunClaim(CommandContext& ctx, std::unique_ptr<GroupSource> source, ClaimRequest request);
void RunAutoClaim(CommandContext& ctx, std::unique_ptr<GroupSource> source,
                  AutoClaimRequest request);

enum class GroupStart : uint8_t { kCreate, kSetId };
// XGROUP CREATE and SETID: of the feed args[2] the group args[3], from the id args[4] on.
void RunGroupStart(CommandContext& ctx, GroupStart start, OpenGroupSource open);
// Rows of XINFO, in group_commands.cc.
void CmdXInfoGroups(CommandContext& ctx);
void CmdXInfoConsumers(CommandContext& ctx);

// TOOLARGE for a name that is too long, and for one consumer too many.
Status CheckGroupName(std::string_view name);
Status CheckNewConsumer(const FeedGroup& group, std::string_view consumer);
// "NOGROUP No such key 'f' or consumer group 'g'" and what follows.
Status NoGroupOfKey(std::string_view feed, std::string_view group, std::string_view more);
// "NOGROUP No such consumer group 'g' for key name 'f'".
Status NoGroup(std::string_view feed, std::string_view group);

}  // namespace cellar
