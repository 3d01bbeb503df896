// FEED: which feeds there are. They are read by the commands of Redis' streams
// (stream_commands.cc).
#include <string>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/feed_move.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_part_task.h"
#include "commands/feeds/feed_task.h"
#include "commands/replies/schema_commands.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/table_events.h"
#include "store/store.h"

namespace cellar {
namespace {

void CmdFeedCreate(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckTableName(ctx.args[2]));
  ASSIGN_OR_REPLY(ctx, Feed feed, ParseFeedCreate(ArgumentCursor(ctx.args, 3)));
  const TableName name = SplitTableName(ctx.session.keyspace, ctx.args[2]);
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, name.keyspace));
  feed.keyspace = name.keyspace;
  REPLY_IF_ERROR(ctx, CheckMayMakeFeed(ctx.rights, feed));
  ctx.DependsOn(ctx.store().schema_lsn());
  REPLY_IF_ERROR(ctx, ctx.store().CreateFeed(name.keyspace, name.table, std::move(feed)));
  ReplyChange(ctx, Status::Ok());
  NotifyTable(ctx.host, kNotifyGeneric, "feed", name.keyspace, name.table);
}

void CmdFeedDrop(CommandContext& ctx) {
  // Whoever may change its tables may drop it, so the feed is looked up without asking for the
  // right to read it. FindFeed only words the error.
  const Feed* feed = ctx.store().FindFeed(ctx.session.keyspace, ctx.args[2]);
  if (feed == nullptr) {
    ctx.DependsOn(ctx.store().schema_lsn());
    REPLY_IF_ERROR(ctx, FindFeed(ctx, ctx.args[2]).status());
    return ctx.Fail("ERR a feed is dropped at all sets: FEED DROP without '@'");
  }
  REPLY_IF_ERROR(ctx, CheckMayMakeFeed(ctx.rights, *feed));
  // The event names the feed when it is gone.
  const std::string keyspace = feed->keyspace;
  const std::string name = feed->name;
  REPLY_IF_ERROR(ctx, ctx.store().DropFeed(*feed));
  ReplyChange(ctx, Status::Ok());
  NotifyTable(ctx.host, kNotifyGeneric, "del", keyspace, name);
  // Its readers that wait get NOFEED now, not at the next poll.
  ctx.host.WakeTasks();
}

void CmdFeedList(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, CheckKeyspace(ctx, ctx.session.keyspace));
  std::vector<std::string_view> names;
  for (const Feed* feed : VisibleFeeds(ctx)) names.push_back(feed->name);
  ctx.DependsOn(ctx.store().schema_lsn());
  ReplyNames(ctx.reply, names);
}

void CmdFeedInfo(CommandContext& ctx) { RunFeedFigures(ctx, ctx.args[2], FeedFigures::kFeedInfo); }

void CmdFeedResolved(CommandContext& ctx) {
  FeedResolving how;
  ArgumentCursor at(ctx.args, 3);
  how.now = at.TakeWord("NOW");
  if (!how.now && at.TakeWord("PAST")) {
    ASSIGN_OR_REPLY(ctx, const std::string_view word, at.TakeAny("PAST", "id"));
    ASSIGN_OR_REPLY(ctx, how.past, ParseFeedId(word, 0));
  }
  const bool has_one = how.now || how.past;
  if (!at.done()) return ctx.Fail(UnexpectedWord(at.Peek(), has_one ? "the end" : "NOW or PAST"));
  RunFeedResolved(ctx, ctx.args[2], how);
}

constexpr KeySpec kFeedAsked{.first = 2, .access = KeyAccess::kRead};

constexpr Command kFeedRows[] = {
    {.name = "create",
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .categories = kCategorySchema,
     .feeds = {.first = 2, .access = KeyAccess::kReadWrite},
     .group = "stream",
     .summary = "Creates a feed: the changes of tables from now on, as a stream.",
     .complexity = "O(n) where n is the number of tables that it covers",
     .syntax = "feed (ON|TABLE) count table|table:family... [PREFIX prefix]... [SLICE index count] "
               "[OLD] [EXPIRED] [ENTRIES (CELL|ROW)] [KEEP duration]",
     .handler = CmdFeedCreate},
    {.name = "drop",
     .arity = 3,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .feeds = {.first = 2, .access = KeyAccess::kReadWrite},
     .group = "stream",
     .summary = "Drops a feed.",
     .complexity = "O(1)",
     .syntax = "feed",
     .handler = CmdFeedDrop},
    {.name = "list",
     .arity = 2,
     .flags = kReadonly,
     .categories = kCategorySchema,
     .group = "stream",
     .summary = "Returns the names of the feeds in the keyspace, sorted.",
     .complexity = "O(n) where n is the number of feeds of the keyspace",
     .syntax = "",
     .handler = CmdFeedList},
    {.name = "info",
     .arity = 3,
     .flags = kReadonly,
     .categories = kCategorySchema | kCategoryStream,
     .feeds = {.first = 2, .access = KeyAccess::kRead},
     .group = "stream",
     .summary = "Returns what a feed covers, and which entries it has.",
     .complexity = "O(n) in the bytes of log that nobody has counted yet",
     .syntax = "feed",
     .handler = CmdFeedInfo},
    {.name = "resolved",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategorySchema | kCategoryStream,
     .feeds = {.first = 2, .access = KeyAccess::kRead},
     .group = "stream",
     .summary = "Returns an id up to which a feed is complete: no entry to come has a smaller one.",
     .complexity =
         "O(1); with NOW perhaps a record in the log; with PAST O(n) in what is behind it",
     .syntax = "feed [NOW|PAST id]",
     .handler = CmdFeedResolved},
    {.name = "move",
     .arity = 5,
     .flags = kWrite,
     .categories = kCategorySchema | kCategoryDangerous,
     .feeds = {.first = 2, .access = KeyAccess::kReadWrite},
     .group = "stream",
     .summary = "Moves the groups of a feed that goes over several sets to another set.",
     .complexity = "O(n) in what is pending in them",
     .syntax = "feed TO set",
     .handler = CmdFeedMove},
    {.name = "entries",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategorySchema | kCategoryStream,
     .feeds = kFeedAsked,
     .group = "stream",
     .summary = "Returns those entries of a feed that have one of some ids, and up to which id it "
                "has dropped its entries.",
     .complexity = "O(n) in the bytes of log around them",
     .syntax = "feed [JUSTID] [id...]",
     .handler = RunFeedEntries},
    {.name = "behind",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategorySchema | kCategoryStream,
     .feeds = kFeedAsked,
     .group = "stream",
     .summary = "Returns how many entries a feed has told, and how many of them are behind ids.",
     .complexity = "O(n) in the bytes of log behind the first of them",
     .syntax = "feed [id...]",
     .handler = RunFeedBehind},
    HelpSubcommand("stream"),
};

constexpr Command kFeedCommands[] = {
    {.name = "feed",
     .arity = -2,
     .group = "stream",
     .summary = "Creates, drops and describes feeds: changes of tables as streams.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kFeedRows},
};

}  // namespace

std::span<const Command> FeedCommands() { return kFeedCommands; }

}  // namespace cellar
