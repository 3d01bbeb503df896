// See feed_move.h.
#include "commands/cluster/feed_move.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/config/config.h"
#include "commands/feeds/feed_access.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "store/catalog_changes.h"
#include "store/store.h"

namespace cellar {
namespace {

Status OnTheirWay(const Feed& feed) {
  return Status::Error(ErrorCode::kTryAgain,
                       fmt::format("the groups of feed {} are on their way from set {} to set {}",
                                   Quote(feed.name), feed.home.from.value_or(0), feed.home.set));
}

class FeedMoveTask final : public Task {
 public:
  FeedMoveTask(CommandContext& ctx, const Feed& feed, uint64_t to)
      : host_(ctx.host),
        id_(feed.id),
        name_(feed.name),
        to_(to),
        deadline_micros_(ctx.host.clock().MonotonicMicros() +
                         ctx.host.services().config.cluster_wait * 1000) {}

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = host_.store().last_lsn();
    const Feed* const feed = host_.store().engine().feeds().FindById(id_);
    if (feed == nullptr) {
      context.Fail(Status::Error(ErrorCode::kNoFeed, "no feed " + Quote(name_) + " any more"));
      return TaskProgress::kDone;
    }
    if (feed->home == FeedHome{.set = to_}) {
      context.reply.Ok();
      return TaskProgress::kDone;
    }
    const bool is_over = host_.store().following() || context.budget.unlimited() ||
                         host_.clock().MonotonicMicros() >= deadline_micros_;
    if (!is_over && feed->home.set == to_) return TaskProgress::kWaiting;
    context.Fail(OnTheirWay(*feed));
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  const uint64_t id_;
  const std::string name_;
  const uint64_t to_;
  const int64_t deadline_micros_;  // monotonic
};

Status CheckTarget(CommandContext& ctx, uint64_t to) {
  if (!ctx.store().engine().cluster().active())
    return Status::Error(ErrorCode::kErr, "this server is part of no cluster");
  const auto& sets = ctx.host.services().cluster_map.Sets(ctx.store());
  const auto found =
      std::find_if(sets.begin(), sets.end(), [to](const auto& set) { return set.number == to; });
  if (found == sets.end())
    return Status::Error(ErrorCode::kErr, fmt::format("set {} is not of this cluster", to));
  if (found->draining && sets.size() > 1)
    return Status::Error(ErrorCode::kErr, fmt::format("set {} is draining", to));
  return Status::Ok();
}

}  // namespace

void CmdFeedMove(CommandContext& ctx) {
  if (!EqualsIgnoreCase(ctx.args[3], "TO")) return ctx.Fail(UnexpectedWord(ctx.args[3], "TO"));
  ASSIGN_OR_REPLY(ctx, const uint64_t to, ParseCount("set", ctx.args[4], 0));
  const Feed* const feed = ctx.store().FindFeed(ctx.session.keyspace, ctx.args[2]);
  if (feed == nullptr) {
    ctx.DependsOn(ctx.store().schema_lsn());
    if (ctx.args[2].find('@') == ctx.args[2].npos)
      return ctx.Fail(FindFeed(ctx, ctx.args[2]).status());
    return ctx.Fail("ERR what moves are the groups of all of a feed: FEED MOVE without '@'");
  }
  REPLY_IF_ERROR(ctx, CheckMayMakeFeed(ctx.rights, *feed));
  REPLY_IF_ERROR(ctx, CheckTarget(ctx, to));
  const FeedHome home = feed->home;
  if (home.from && home.set != to) return ctx.Fail(OnTheirWay(*feed));
  if (home.set != to) {
    REPLY_IF_ERROR(
        ctx,
        CatalogChanges(ctx.store()).MoveHome(*feed, {.set = to, .from = home.set, .awaits = true}));
  }
  ctx.Continue(std::make_unique<FeedMoveTask>(ctx, *feed, to));
}

}  // namespace cellar
