// See group_info_task.h.
#include "commands/feeds/group_info_task.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/assert.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_reader.h"
#include "commands/feeds/group_lags.h"
#include "engine/feeds/feed_group.h"
#include "store/store.h"

namespace cellar {
namespace {

// The lists of a reply of XINFO STREAM FULL.
class GroupLists {
 public:
  GroupLists(ReplyWriter& reply, const GroupLags& lags, uint64_t count)
      : reply_(reply), lags_(lags), count_(count) {}

  void ReplyGroup(const FeedGroup& group) {
    reply_.Map(7);
    reply_.Bulk("name");
    reply_.Bulk(group.name);
    reply_.Bulk("last-delivered-id");
    reply_.Bulk(group.last.text());
    lags_.Reply(reply_, group);
    reply_.Bulk("pel-count");
    reply_.Unsigned(group.pending.size());
    reply_.Bulk("pending");
    uint64_t left = Take(group.pending.size());
    reply_.Array(left);
    for (auto entry = group.pending.begin(); left > 0; ++entry, --left) {
      reply_.Array(4);
      reply_.Bulk(entry->first.text());
      reply_.Bulk(entry->second.consumer->name);
      reply_.Integer(entry->second.delivered_ms);
      reply_.Unsigned(entry->second.times);
    }
    reply_.Bulk("consumers");
    const uint64_t consumers = std::min<uint64_t>(group.consumers.size(), rows_left_);
    rows_left_ -= consumers;
    reply_.Array(consumers);
    left = consumers;
    for (auto consumer = group.consumers.begin(); left > 0; ++consumer, --left)
      ReplyConsumer(group, *consumer->second);
  }

 private:
  // So many of `n` rows, each of which is counted.
  uint64_t Take(uint64_t n) {
    // One allowance for all groups, so that many small ones cannot make a reply without bounds.
    const uint64_t taken = std::min({n, count_, rows_left_});
    rows_left_ -= taken;
    return taken;
  }

  void ReplyConsumer(const FeedGroup& group, const FeedConsumer& consumer) {
    reply_.Map(4);
    reply_.Bulk("name");
    reply_.Bulk(consumer.name);
    reply_.Bulk("seen-time");
    reply_.Integer(consumer.seen_ms);
    reply_.Bulk("pel-count");
    reply_.Unsigned(consumer.pending.size());
    reply_.Bulk("pending");
    uint64_t left = Take(consumer.pending.size());
    reply_.Array(left);
    for (auto id = consumer.pending.begin(); left > 0; ++id, --left) {
      const auto found = group.pending.find(*id);
      CELLAR_ASSERT(found != group.pending.end());  // what a consumer has, its group has
      const FeedPending& pending = found->second;
      reply_.Array(3);
      reply_.Bulk(id->text());
      reply_.Integer(pending.delivered_ms);
      reply_.Unsigned(pending.times);
    }
  }

  ReplyWriter& reply_;
  const GroupLags& lags_;
  const uint64_t count_;
  uint64_t rows_left_{kStreamFullRowsMax};
};

// What both have in common: the feed is settled, and its groups' lags are counted.
class LagTask : public FeedTask {
 public:
  LagTask(CommandContext& ctx, std::string_view feed) : FeedTask(ctx), name_(NameOf(ctx, feed)) {}

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, FindSettled(&name_, context.budget));
    if (feed == nullptr) return TaskProgress::kMore;
    const FeedGroups::OfFeed* groups = host().store().engine().feeds().groups().Of(feed->id);
    if (!count_.begun()) last_ids_ = LastIdsOf(groups);
    ASSIGN_OR_RETURN(const bool counted,
                     count_.Count(feed_log(), *feed, last_ids_, context.budget));
    if (!counted) return TaskProgress::kMore;
    ASSIGN_OR_RETURN(const bool ready, Prepare(*feed, context.budget));
    if (!ready) return TaskProgress::kMore;
    feed_log().AskForSync();
    Reply(context.reply, *feed, groups);
    context.depends_on = host().store().last_lsn();
    return TaskProgress::kDone;
  }
  void ForgetPlaces() override { count_.ForgetPlace(); }

  virtual Result<bool> Prepare(const Feed& feed, const TaskBudget& budget) = 0;
  // `groups` null: there are none.
  virtual void Reply(ReplyWriter& reply, const Feed& feed, const FeedGroups::OfFeed* groups) = 0;
  GroupLags lags() const { return count_.lags(); }

 private:
  FeedName name_;
  std::set<FeedId> last_ids_;
  LagCount count_;
};

class GroupsInfoTask final : public LagTask {
 public:
  using LagTask::LagTask;

 protected:
  Result<bool> Prepare(const Feed&, const TaskBudget&) override { return true; }

  void Reply(ReplyWriter& reply, const Feed&, const FeedGroups::OfFeed* groups) override {
    ReplyGroupsInfo(reply, groups, lags());
  }
};

class StreamFullTask final : public LagTask {
 public:
  StreamFullTask(CommandContext& ctx, std::string_view feed, uint64_t count)
      : LagTask(ctx, feed), count_(StreamFullCount(count)) {}

  size_t reply_bytes() const override { return entries_.size(); }

 protected:
  Result<bool> Prepare(const Feed& feed, const TaskBudget& budget) override {
    while (!read_) {
      FeedReplySink sink(&entries_, count_ - told_, 0);
      ASSIGN_OR_RETURN(read_, feed_log().Read(feed, &scan_, &sink));
      if (sink.count() > 0 && told_ == 0) first_ = sink.ids().front();
      told_ += sink.count();
      CELLAR_ASSERT(told_ <= count_);
      if (sink.count() > 0) scan_.after = sink.last();
      read_ = read_ || sink.full();
      if (!read_ && budget.Spent()) return false;
    }
    return true;
  }

  void ForgetPlaces() override {
    LagTask::ForgetPlaces();
    scan_.place = {};
  }

  void Reply(ReplyWriter& reply, const Feed& feed, const FeedGroups::OfFeed* groups) override {
    const FeedCounts counts = feed_log().CountsOf(feed);
    reply.Map(kStreamCounts + 2);
    ReplyStreamCounts(reply, counts, first_);
    reply.Bulk("entries");
    reply.Array(told_);
    reply.Raw(entries_.view());
    ReplyStreamGroups(reply, groups, lags(), count_);
  }

 private:
  const uint64_t count_;
  FeedScan scan_;
  bool read_{false};
  uint64_t told_{0};
  FeedId first_;
  OutputBuffer entries_;
};

}  // namespace

// 0 is all of them in Redis; here there is a limit.
uint64_t StreamFullCount(uint64_t count) {
  return count == 0 ? kFeedEntriesMax : std::min(count, kFeedEntriesMax);
}

void ReplyGroupsInfo(ReplyWriter& reply, const FeedGroups::OfFeed* groups, const GroupLags& lags) {
  reply.Array(groups == nullptr ? 0 : groups->size());
  if (groups == nullptr) return;
  for (const auto& [name, group] : *groups) {
    reply.Map(6);
    reply.Bulk("name");
    reply.Bulk(name);
    reply.Bulk("consumers");
    reply.Unsigned(group->consumers.size());
    reply.Bulk("pending");
    reply.Unsigned(group->pending.size());
    reply.Bulk("last-delivered-id");
    reply.Bulk(group->last.text());
    lags.Reply(reply, *group);
  }
}

void ReplyStreamGroups(ReplyWriter& reply, const FeedGroups::OfFeed* groups, const GroupLags& lags,
                       uint64_t count) {
  reply.Bulk("groups");
  reply.Array(groups == nullptr ? 0 : groups->size());
  if (groups == nullptr) return;
  GroupLists lists(reply, lags, count);
  for (const auto& [name, group] : *groups) lists.ReplyGroup(*group);
}

void RunGroupsInfo(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, FindFeed(ctx, ctx.args[2]).status());
  ctx.Continue(std::make_unique<GroupsInfoTask>(ctx, ctx.args[2]));
}

void RunStreamFull(CommandContext& ctx, std::string_view feed, uint64_t count) {
  REPLY_IF_ERROR(ctx, FindFeed(ctx, feed).status());
  ctx.Continue(std::make_unique<StreamFullTask>(ctx, feed, count));
}

}  // namespace cellar
