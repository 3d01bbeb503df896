// The commands of Redis' streams, which read feeds: XREAD, XRANGE, XREVRANGE, XLEN, XINFO
// (consumer groups: group_commands.cc). Those
// that would write a stream are refused, since the server alone writes feeds. cellar-feeds(7) says
// what an entry is.
#include <algorithm>
#include <string>

#include "commands/arguments/feed_arguments.h"
#include "commands/cluster/whole_groups_info.h"
#include "commands/data/data_commands.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_task.h"
#include "commands/feeds/group_info_task.h"
#include "commands/feeds/group_task.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "store/store.h"

namespace cellar {
namespace {

void CmdXRead(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const FeedReadRequest request, ParseFeedRead(ArgumentCursor(ctx.args, 1)));
  RunFeedRead(ctx, request);
}

void ReadRange(CommandContext& ctx, FeedOrder order) {
  FeedRange range;
  uint64_t count = 0;
  REPLY_IF_ERROR(ctx,
                 ParseFeedRangeWords(ctx.args, order == FeedOrder::kNewestFirst, &range, &count));
  // A COUNT of 0 or less reads nothing, as in Redis. A feed that is not there is an error even so.
  if (count == 0) {
    REPLY_IF_ERROR(ctx, FindFeed(ctx, ctx.args[1]).status());
    return ctx.reply.NullArray();
  }
  RunFeedRange(ctx, ctx.args[1], range, order, count);
}

void CmdXRange(CommandContext& ctx) { ReadRange(ctx, FeedOrder::kOldestFirst); }
void CmdXRevRange(CommandContext& ctx) { ReadRange(ctx, FeedOrder::kNewestFirst); }

void CmdXLen(CommandContext& ctx) { RunFeedFigures(ctx, ctx.args[1], FeedFigures::kLength); }

void CmdXInfoStream(CommandContext& ctx) {
  constexpr uint64_t kFullCountDefault{10};  // Redis'
  ArgumentCursor at(ctx.args, 3);
  if (at.done()) return RunFeedFigures(ctx, ctx.args[2], FeedFigures::kStreamInfo);
  const bool is_full = at.TakeWord("FULL");
  const bool has_count = is_full && ctx.args.size() == 6 && at.TakeWord("COUNT");
  if (!is_full || (!at.done() && !has_count)) {
    constexpr size_t kWordBytesMax{128};  // Redis'
    return ctx.Fail("ERR unknown subcommand or wrong number of arguments for '" +
                    std::string(ctx.args[1].substr(0, kWordBytesMax)) + "'. Try XINFO HELP.");
  }
  uint64_t count = kFullCountDefault;
  if (has_count) {
    ASSIGN_OR_REPLY(ctx, const int64_t wanted, at.TakeInteger());
    if (wanted >= 0) count = static_cast<uint64_t>(wanted);
  }
  ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, ctx.args[2]));
  if (IsWholeFeed(ctx.host, *feed, ctx.args[2])) return RunWholeStreamFull(ctx, count);
  RunStreamFull(ctx, ctx.args[2], count);
}

void CmdRefused(CommandContext& ctx) {
  ctx.Fail(
      "ERR a feed is written by the server alone; write to its table: CPUT table row column value");
}

constexpr Command Refused(std::string_view name, int16_t arity, std::string_view syntax) {
  return {.name = name,
          .arity = arity,
          .flags = kWrite,
          .categories = kCategoryStream,
          .feeds = {.first = 1, .access = KeyAccess::kReadWrite},
          .group = "stream",
          .summary = "Refused: a feed is written by the server alone.",
          .complexity = "O(1)",
          .syntax = syntax,
          .handler = CmdRefused};
}

constexpr KeySpec kFeedRead{.first = 1, .access = KeyAccess::kRead};
constexpr KeySpec kFeedAsked{.first = 2, .access = KeyAccess::kRead};

constexpr Command kInfoRows[] = {
    {.name = "stream",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategoryStream,
     .feeds = kFeedAsked,
     .group = "stream",
     .summary = "Returns the length of a feed, its first and its last entry; FULL: entries, and "
                "what is pending in its groups.",
     .complexity = "O(n) in the bytes of log that nobody has counted yet; FULL also in those that "
                   "the slowest group has not read",
     .syntax = "feed [FULL [COUNT count]]",
     .handler = CmdXInfoStream},
    {.name = "groups",
     .arity = 3,
     .flags = kReadonly,
     .categories = kCategoryStream,
     .feeds = kFeedAsked,
     .group = "stream",
     .summary = "Returns the groups of a feed: how far each has read, and how much is behind that.",
     .complexity = "O(n) in the bytes of log that the slowest group has not read",
     .syntax = "feed",
     .handler = CmdXInfoGroups},
    {.name = "consumers",
     .arity = 4,
     .flags = kReadonly,
     .categories = kCategoryStream,
     .feeds = kFeedAsked,
     .group = "stream",
     .summary = "Returns the consumers of a group.",
     .complexity = "O(n) where n is the number of consumers",
     .syntax = "feed group",
     .handler = CmdXInfoConsumers},
    HelpSubcommand("stream"),
};

constexpr Command kStreamCommands[] = {
    {.name = "xread",
     .arity = -4,
     .flags = kReadonly | kBlocking | kMovableKeys,
     .categories = kCategoryStream,
     .feeds = {.first = 1, .last = -1, .access = KeyAccess::kRead, .keyword = "STREAMS"},
     .group = "stream",
     .summary = "Returns entries of feeds behind an id, or waits for some.",
     .complexity = "O(n) in the bytes of log that it reads",
     .syntax = "[COUNT count] [BLOCK milliseconds] STREAMS feed... id...",
     .handler = CmdXRead},
    {.name = "xrange",
     .arity = -4,
     .flags = kReadonly,
     .categories = kCategoryStream,
     .feeds = kFeedRead,
     .group = "stream",
     .summary = "Returns the entries of a feed in a range of ids.",
     .complexity = "O(n) in the bytes of log that it reads",
     .syntax = "feed start end [COUNT count]",
     .handler = CmdXRange},
    {.name = "xrevrange",
     .arity = -4,
     .flags = kReadonly,
     .categories = kCategoryStream,
     .feeds = kFeedRead,
     .group = "stream",
     .summary = "Returns the entries of a feed in a range of ids, the newest first.",
     .complexity = "O(n) in the bytes of log that it reads",
     .syntax = "feed end start [COUNT count]",
     .handler = CmdXRevRange},
    {.name = "xlen",
     .arity = 2,
     .flags = kReadonly,
     .categories = kCategoryStream,
     .feeds = kFeedRead,
     .group = "stream",
     .summary = "Returns the number of entries that a feed has.",
     .complexity = "O(n) in the bytes of log that nobody has counted yet",
     .syntax = "feed",
     .handler = CmdXLen},
    {.name = "xinfo",
     .arity = -2,
     .group = "stream",
     .summary = "Describes a feed.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kInfoRows},
    Refused("xadd", -5, "feed id (field value)..."),
    Refused("xdel", -3, "feed id..."),
    Refused("xtrim", -4, "feed (MAXLEN|MINID) threshold"),
    Refused("xsetid", -3, "feed last-id"),
};

}  // namespace

std::span<const Command> StreamCommands() { return kStreamCommands; }

}  // namespace cellar
