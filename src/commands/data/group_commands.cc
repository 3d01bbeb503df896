// Consumer groups of Redis' streams, over feeds: XGROUP, XREADGROUP, XACK, XPENDING, XCLAIM,
// XAUTOCLAIM; XINFO's part of them. What a group is stands in engine/feeds/feed_group.h.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text/duration.h"
#include "commands/arguments/group_arguments.h"
#include "commands/cluster/whole_groups.h"
#include "commands/cluster/whole_groups_info.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/group_info_task.h"
#include "commands/feeds/group_task.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/table_events.h"
#include "store/store.h"

namespace cellar {
namespace {

int64_t NowMs(const CommandContext& ctx) { return ctx.store().now_micros() / kMicrosPerMs; }

// A feed and one of its groups, as a command names them.
struct Named {
  const Feed* feed{nullptr};
  uint64_t groups{0};               // what FeedGroups calls those of the feed
  const FeedGroup* group{nullptr};  // null: there is none
  bool is_whole() const { return groups != feed->id; }
};
// NOFEED, NOPERM; TRYAGAIN: its groups are not here.
Result<Named> FindNamed(CommandContext& ctx, std::string_view word, std::string_view group) {
  Named named;
  ASSIGN_OR_RETURN(named.feed, FindFeed(ctx, word));
  ASSIGN_OR_RETURN(named.groups, FindGroupsOf(ctx.host, *named.feed, word));
  named.group = ctx.store().engine().feeds().groups().Find(named.groups, group);
  return named;
}

// The feed of args[2]; its group of args[3], or NOGROUP.
Result<Named> FindNamed(CommandContext& ctx) {
  // Groups have no number of their own: the reply waits for the newest record.
  ctx.DependsOn(ctx.store().last_lsn());
  ASSIGN_OR_RETURN(const Named named, FindNamed(ctx, ctx.args[2], ctx.args[3]));
  if (named.group == nullptr) return NoGroup(ctx.args[2], ctx.args[3]);
  return named;
}

// Logs the changes and tells of them.
Status Change(CommandContext& ctx, const Named& named, std::string_view group,
              const FeedGroupChanges& changes, std::string_view event) {
  const Feed& feed = *named.feed;
  RETURN_IF_ERROR(ctx.store().ChangeFeedGroup(named.groups, group, changes));
  ctx.DependsOn(ctx.store().last_lsn());
  if (!event.empty()) NotifyTable(ctx.host, kNotifyTable, event, feed.keyspace, feed.name);
  return Status::Ok();
}

// --- XGROUP

void CmdXGroupCreate(CommandContext& ctx) { RunGroupStart(ctx, GroupStart::kCreate, OpenGroups); }
void CmdXGroupSetId(CommandContext& ctx) { RunGroupStart(ctx, GroupStart::kSetId, OpenGroups); }

void CmdXGroupDestroy(CommandContext& ctx) {
  ctx.DependsOn(ctx.store().last_lsn());
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx, ctx.args[2], ctx.args[3]));
  if (named.group == nullptr) return ctx.reply.Integer(0);
  FeedGroupChanges changes;
  changes.Destroy();
  REPLY_IF_ERROR(ctx, Change(ctx, named, ctx.args[3], changes, "xgroup-destroy"));
  ctx.host.WakeTasks();  // those that wait for the group look again
  ctx.reply.Integer(1);
}

void CmdXGroupCreateConsumer(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx));
  if (named.group->FindConsumer(ctx.args[4]) != nullptr) return ctx.reply.Integer(0);
  REPLY_IF_ERROR(ctx, CheckNewConsumer(*named.group, ctx.args[4]));
  FeedGroupChanges changes;
  changes.AddConsumer(ctx.args[4], NowMs(ctx));
  REPLY_IF_ERROR(ctx, Change(ctx, named, ctx.args[3], changes, "xgroup-createconsumer"));
  ctx.reply.Integer(1);
}

void CmdXGroupDelConsumer(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx));
  const FeedConsumer* const consumer = named.group->FindConsumer(ctx.args[4]);
  if (consumer == nullptr) return ctx.reply.Integer(0);
  const size_t pending = consumer->pending.size();
  FeedGroupChanges changes;
  changes.DropConsumer(ctx.args[4]);
  REPLY_IF_ERROR(ctx, Change(ctx, named, ctx.args[3], changes, "xgroup-delconsumer"));
  ctx.reply.Unsigned(pending);
}

// --- XREADGROUP, XACK, XCLAIM, XAUTOCLAIM

void CmdXReadGroup(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const GroupReadRequest request, ParseGroupRead(ArgumentCursor(ctx.args, 1)));
  RunGroupRead(ctx, request, OpenGroups);
}

void CmdXAck(CommandContext& ctx) {
  ctx.DependsOn(ctx.store().last_lsn());
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx, ctx.args[1], ctx.args[2]));
  if (named.group == nullptr) return ctx.reply.Integer(0);
  // All words are read before anything is logged: a bad one refuses the whole command. An id that
  // is given twice is acknowledged once.
  std::vector<FeedId> ids;
  for (const std::string_view word : ctx.args.subspan(3)) {
    ASSIGN_OR_REPLY(ctx, const FeedId id, ParseFeedId(word, 0));
    const FeedId known = named.is_whole() ? WholeIdOf(id) : id;
    if (named.group->pending.contains(known)) ids.push_back(known);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty()) return ctx.reply.Integer(0);
  FeedGroupChanges changes;
  changes.Forget(ids);
  REPLY_IF_ERROR(ctx, Change(ctx, named, ctx.args[2], changes, {}));
  ctx.reply.Unsigned(ids.size());
}

void CmdXClaim(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx, ctx.args[1], ctx.args[2]));
  if (named.group == nullptr) return ctx.Fail(NoGroupOfKey(ctx.args[1], ctx.args[2], ""));
  ASSIGN_OR_REPLY(ctx, ClaimRequest request, ParseClaim(ctx.args.subspan(4), NowMs(ctx)));
  ASSIGN_OR_REPLY(ctx, auto source, OpenGroups(ctx, *named.feed, ctx.args[1]));
  RunClaim(ctx, std::move(source), std::move(request));
}

void CmdXAutoClaim(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const AutoClaimRequest request, ParseAutoClaim(ctx.args.subspan(4)));
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx, ctx.args[1], ctx.args[2]));
  if (named.group == nullptr) return ctx.Fail(NoGroupOfKey(ctx.args[1], ctx.args[2], ""));
  ASSIGN_OR_REPLY(ctx, auto source, OpenGroups(ctx, *named.feed, ctx.args[1]));
  RunAutoClaim(ctx, std::move(source), request);
}

// --- XPENDING

void ReplySummary(CommandContext& ctx, const FeedGroup& group) {
  ctx.reply.Array(4);
  ctx.reply.Unsigned(group.pending.size());
  if (group.pending.empty()) {
    ctx.reply.Null();
    ctx.reply.Null();
    return ctx.reply.NullArray();
  }
  ctx.reply.Bulk(group.pending.begin()->first.text());
  ctx.reply.Bulk(group.pending.rbegin()->first.text());
  const auto mark = ctx.reply.BeginArray(group.consumers.size());
  uint64_t consumers = 0;
  for (const auto& [name, consumer] : group.consumers) {
    if (consumer->pending.empty()) continue;
    ctx.reply.Array(2);
    ctx.reply.Bulk(name);
    // Redis tells these counts as strings.
    ctx.reply.Bulk(std::to_string(consumer->pending.size()));
    ++consumers;
  }
  ctx.reply.EndArray(mark, consumers);
}

// XPENDING's long form, from the consumer's own list if one is named. What IDLE passes over does
// not count towards COUNT, so all that is pending may be walked: kFeedPendingMax entries at most.
void ReplyPending(CommandContext& ctx, const FeedGroup& group, const PendingRequest& request) {
  const int64_t now = NowMs(ctx);
  const auto mark = ctx.reply.BeginArray(request.count);
  uint64_t told = 0;
  const auto tell = [&](const FeedId& id, const FeedPending& pending) {
    const int64_t idle = std::max<int64_t>(now - pending.delivered_ms, 0);
    if (request.idle_ms_min > 0 && idle < request.idle_ms_min) return;
    ctx.reply.Array(4);
    ctx.reply.Bulk(id.text());
    ctx.reply.Bulk(pending.consumer->name);
    ctx.reply.Integer(idle);
    ctx.reply.Unsigned(pending.times);
    ++told;
  };
  const FeedRange& range = request.range;
  const FeedConsumer* const consumer =
      request.of_consumer ? group.FindConsumer(request.consumer) : nullptr;
  if (range.empty || (request.of_consumer && consumer == nullptr)) {
    // Nothing can be in it.
  } else if (consumer != nullptr) {
    const auto& ids = consumer->pending;
    for (auto at = ids.upper_bound(range.after);
         at != ids.end() && *at <= range.to && told < request.count; ++at) {
      tell(*at, group.pending.at(*at));
    }
  } else {
    const auto& all = group.pending;
    for (auto at = all.upper_bound(range.after);
         at != all.end() && at->first <= range.to && told < request.count; ++at) {
      tell(at->first, at->second);
    }
  }
  ctx.reply.EndArray(mark, told);
}

void CmdXPending(CommandContext& ctx) {
  PendingRequest request;
  const bool extended = ctx.args.size() > 3;
  if (extended) {
    ASSIGN_OR_REPLY(ctx, request, ParsePending(ctx.args.subspan(3)));
  }
  ctx.DependsOn(ctx.store().last_lsn());
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx, ctx.args[1], ctx.args[2]));
  if (named.group == nullptr) return ctx.Fail(NoGroupOfKey(ctx.args[1], ctx.args[2], ""));
  if (named.is_whole()) {
    request.range.after = WholeIdOf(request.range.after);
    if (request.range.to != FeedId::Max()) request.range.to = WholeIdOf(request.range.to);
  }
  if (extended) return ReplyPending(ctx, *named.group, request);
  ReplySummary(ctx, *named.group);
}

constexpr KeySpec kFeedRead{.first = 1, .access = KeyAccess::kRead};
constexpr KeySpec kFeedChanged{.first = 1, .access = KeyAccess::kReadWrite};
constexpr KeySpec kGroupChanged{.first = 2, .access = KeyAccess::kReadWrite};

constexpr Command kGroupRows[] = {
    {.name = "create",
     .arity = -5,
     .flags = kWrite | kDenyOom,
     .categories = kCategoryStream,
     .feeds = kGroupChanged,
     .group = "stream",
     .summary = "Creates a group of consumers, who share the entries behind an id.",
     .complexity = "O(1), and with $ O(n) in the bytes of log that nobody has counted yet",
     .syntax = "feed group (id|$) [MKSTREAM] [ENTRIESREAD entries-read]",
     .handler = CmdXGroupCreate},
    {.name = "setid",
     .arity = -5,
     .flags = kWrite,
     .categories = kCategoryStream,
     .feeds = kGroupChanged,
     .group = "stream",
     .summary = "Says behind which id a group reads on.",
     .complexity = "O(1), and with $ O(n) in the bytes of log that nobody has counted yet",
     .syntax = "feed group (id|$) [ENTRIESREAD entries-read]",
     .handler = CmdXGroupSetId},
    {.name = "destroy",
     .arity = 4,
     .flags = kWrite,
     .categories = kCategoryStream,
     .feeds = kGroupChanged,
     .group = "stream",
     .summary = "Drops a group with its consumers and what is pending.",
     .complexity = "O(n) where n is the number of entries pending",
     .syntax = "feed group",
     .handler = CmdXGroupDestroy},
    {.name = "createconsumer",
     .arity = 5,
     .flags = kWrite | kDenyOom,
     .categories = kCategoryStream,
     .feeds = kGroupChanged,
     .group = "stream",
     .summary = "Creates a consumer of a group, which reading does by itself.",
     .complexity = "O(log n) where n is the number of consumers",
     .syntax = "feed group consumer",
     .handler = CmdXGroupCreateConsumer},
    {.name = "delconsumer",
     .arity = 5,
     .flags = kWrite,
     .categories = kCategoryStream,
     .feeds = kGroupChanged,
     .group = "stream",
     .summary = "Drops a consumer; what was pending with it counts as acknowledged.",
     .complexity = "O(n log m) where n of m entries are pending with it",
     .syntax = "feed group consumer",
     .handler = CmdXGroupDelConsumer},
    HelpSubcommand("stream"),
};

constexpr Command kGroupCommands[] = {
    {.name = "xgroup",
     .arity = -2,
     .group = "stream",
     .summary = "Creates, changes and drops groups of consumers.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kGroupRows},
    {.name = "xreadgroup",
     .arity = -7,
     .flags = kWrite | kBlocking | kMovableKeys,
     .categories = kCategoryStream,
     .feeds = {.first = 4, .last = -1, .access = KeyAccess::kRead, .keyword = "STREAMS"},
     .group = "stream",
     .summary =
         "Returns entries that no consumer of a group has got yet, or waits for some; or what is "
         "pending with a consumer.",
     .complexity = "O(n) in the bytes of log that it reads",
     .syntax = "GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM milliseconds] "
               "[NOACK] STREAMS feed... id...",
     .handler = CmdXReadGroup},
    {.name = "xack",
     .arity = -4,
     .flags = kWrite | kFast,
     .categories = kCategoryStream,
     .feeds = kFeedChanged,
     .group = "stream",
     .summary = "Says that entries have been dealt with. Returns how many of them were pending.",
     .complexity = "O(log n) for each id, where n entries are pending",
     .syntax = "feed group id...",
     .handler = CmdXAck},
    {.name = "xpending",
     .arity = -3,
     .flags = kReadonly,
     .categories = kCategoryStream,
     .feeds = kFeedRead,
     .group = "stream",
     .summary = "Returns what is pending with whom.",
     .complexity = "O(n) in what is looked at; without a range in the number of consumers",
     .syntax = "feed group [[IDLE min-idle-time] start end count [consumer]]",
     .handler = CmdXPending},
    {.name = "xclaim",
     .arity = -6,
     .flags = kWrite | kFast,
     .categories = kCategoryStream,
     .feeds = kFeedChanged,
     .group = "stream",
     .summary = "Makes entries that are pending a consumer's own, and returns them.",
     .complexity = "O(log n) for each id, where n entries are pending, and the log that it reads",
     .syntax = "feed group consumer min-idle-time id... [IDLE ms] [TIME unix-time-milliseconds] "
               "[RETRYCOUNT count] [FORCE] [JUSTID] [LASTID last-id]",
     .handler = CmdXClaim},
    {.name = "xautoclaim",
     .arity = -6,
     .flags = kWrite | kFast,
     .categories = kCategoryStream,
     .feeds = kFeedChanged,
     .group = "stream",
     .summary = "Makes entries that have been pending for long a consumer's own, and returns them.",
     .complexity = "O(1) if COUNT is small, and the log that it reads",
     .syntax = "feed group consumer min-idle-time start [COUNT count] [JUSTID]",
     .handler = CmdXAutoClaim},
};

}  // namespace

void CmdXInfoGroups(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, ctx.args[2]));
  if (IsWholeFeed(ctx.host, *feed, ctx.args[2])) return RunWholeGroupsInfo(ctx);
  RunGroupsInfo(ctx);
}

void CmdXInfoConsumers(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const Named named, FindNamed(ctx));
  const int64_t now = NowMs(ctx);
  ctx.reply.Array(named.group->consumers.size());
  for (const auto& [name, consumer] : named.group->consumers) {
    ctx.reply.Map(3);
    ctx.reply.Bulk("name");
    ctx.reply.Bulk(name);
    ctx.reply.Bulk("pending");
    ctx.reply.Unsigned(consumer->pending.size());
    ctx.reply.Bulk("idle");
    ctx.reply.Integer(std::max<int64_t>(now - consumer->seen_ms, 0));
  }
}

std::span<const Command> GroupCommands() { return kGroupCommands; }

}  // namespace cellar
