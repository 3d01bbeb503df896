// See group_info_task.h.
#include "commands/feeds/group_info_task.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_reader.h"
#include "engine/feeds/feed_group.h"
#include "store/store.h"

namespace cellar {
namespace {

// Counts, for each group, the entries behind its last id.
class GroupLags {
 public:
  // False: the budget is spent.
  Result<bool> Count(FeedLog& log, const Feed& feed, const FeedGroups::OfFeed* groups,
                     const TaskBudget& budget) {
    while (!begun_) {
      ASSIGN_OR_RETURN(begun_, log.Count(feed));
      if (!begun_ && budget.Spent()) return false;
      if (!begun_) continue;
      // One pass for all groups, from the last id of the one that is furthest behind. An entry
      // counts for the nearest id before it; a group's lag is the sum from its own id on.
      told_ = log.CountsOf(feed).told;
      if (groups == nullptr) return true;
      for (const auto& [name, group] : *groups) behind_.counts.emplace(group->last, 0);
      behind_.scan.after = behind_.counts.begin()->first;
      // As far as `told_` goes: both figures are of one moment.
      behind_.scan.to = log.CountsOf(feed).last;
    }
    while (!done_ && !behind_.counts.empty()) {
      ASSIGN_OR_RETURN(done_, log.CountThrough(feed, &behind_.scan, &behind_));
      if (!done_ && budget.Spent()) return false;
    }
    return true;
  }

  // "entries-read" and "lag". Of a group that has read on, or has come, while it was counted: null.
  void Reply(ReplyWriter& reply, const FeedGroup& group) const {
    const bool is_known = behind_.counts.contains(group.last);
    const uint64_t lag = is_known ? behind_.Of(group.last) : 0;
    reply.Bulk("entries-read");
    ReplyNumber(reply, is_known, told_ - std::min(told_, lag));
    reply.Bulk("lag");
    ReplyNumber(reply, is_known, lag);
  }

  void ForgetPlace() { behind_.scan.place = {}; }

 private:
  struct Behind final : public FeedSink {
    FeedScan scan;
    std::map<FeedId, uint64_t> counts;  // up to the next id

    bool OnEntry(const FeedEntry& entry) override {
      const auto behind = counts.lower_bound(entry.id);
      if (behind != counts.begin()) ++std::prev(behind)->second;
      return true;
    }
    uint64_t Of(const FeedId& id) const {
      uint64_t sum = 0;
      for (auto at = counts.find(id); at != counts.end(); ++at) sum += at->second;
      return sum;
    }
  };

  static void ReplyNumber(ReplyWriter& reply, bool is_known, uint64_t number) {
    if (is_known) {
      reply.Unsigned(number);
    } else {
      reply.Null();
    }
  }

  uint64_t told_{0};
  bool begun_{false};
  bool done_{false};
  Behind behind_;
};

// What both have in common: the feed is settled, and its groups' lags are counted.
class LagTask : public FeedTask {
 public:
  LagTask(CommandContext& ctx, std::string_view feed) : FeedTask(ctx), name_(NameOf(ctx, feed)) {}

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&name_));
    if (!settled_) {
      ASSIGN_OR_RETURN(settled_, Settle(*feed, context.budget));
      if (!settled_) return TaskProgress::kMore;
    }
    const FeedGroups::OfFeed* groups = host().store().engine().feeds().groups().Of(feed->id);
    ASSIGN_OR_RETURN(const bool counted, lags_.Count(feed_log(), *feed, groups, context.budget));
    if (!counted) return TaskProgress::kMore;
    ASSIGN_OR_RETURN(const bool ready, Prepare(*feed, context.budget));
    if (!ready) return TaskProgress::kMore;
    feed_log().AskForSync();
    Reply(context.reply, *feed, groups);
    context.depends_on = host().store().last_lsn();
    return TaskProgress::kDone;
  }
  void ForgetPlaces() override { lags_.ForgetPlace(); }

  virtual Result<bool> Prepare(const Feed& feed, const TaskBudget& budget) = 0;
  // `groups` null: there are none.
  virtual void Reply(ReplyWriter& reply, const Feed& feed, const FeedGroups::OfFeed* groups) = 0;
  const GroupLags& lags() const { return lags_; }

 private:
  FeedName name_;
  bool settled_{false};
  GroupLags lags_;
};

class GroupsInfoTask final : public LagTask {
 public:
  using LagTask::LagTask;

 protected:
  Result<bool> Prepare(const Feed&, const TaskBudget&) override { return true; }

  void Reply(ReplyWriter& reply, const Feed&, const FeedGroups::OfFeed* groups) override {
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
      lags().Reply(reply, *group);
    }
  }
};

class StreamFullTask final : public LagTask {
 public:
  StreamFullTask(CommandContext& ctx, std::string_view feed, uint64_t count)
      : LagTask(ctx, feed),
        // 0 is all of them in Redis; here there is a limit.
        count_(count == 0 ? kFeedEntriesMax : std::min(count, kFeedEntriesMax)) {}

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
    reply.Bulk("groups");
    reply.Array(groups == nullptr ? 0 : groups->size());
    if (groups == nullptr) return;
    for (const auto& [name, group] : *groups) ReplyGroup(reply, *group);
  }

 private:
  // So many of `n` rows, each of which is counted.
  uint64_t Take(uint64_t n) {
    // One allowance for all groups, so that many small ones cannot make a reply without bounds.
    const uint64_t taken = std::min({n, count_, rows_left_});
    rows_left_ -= taken;
    return taken;
  }

  void ReplyGroup(ReplyWriter& reply, const FeedGroup& group) {
    reply.Map(7);
    reply.Bulk("name");
    reply.Bulk(group.name);
    reply.Bulk("last-delivered-id");
    reply.Bulk(group.last.text());
    lags().Reply(reply, group);
    reply.Bulk("pel-count");
    reply.Unsigned(group.pending.size());
    reply.Bulk("pending");
    uint64_t left = Take(group.pending.size());
    reply.Array(left);
    for (auto entry = group.pending.begin(); left > 0; ++entry, --left) {
      reply.Array(4);
      reply.Bulk(entry->first.text());
      reply.Bulk(entry->second.consumer->name);
      reply.Integer(entry->second.delivered_ms);
      reply.Unsigned(entry->second.times);
    }
    reply.Bulk("consumers");
    const uint64_t consumers = std::min<uint64_t>(group.consumers.size(), rows_left_);
    rows_left_ -= consumers;
    reply.Array(consumers);
    left = consumers;
    for (auto consumer = group.consumers.begin(); left > 0; ++consumer, --left)
      ReplyConsumer(reply, group, *consumer->second);
  }

  void ReplyConsumer(ReplyWriter& reply, const FeedGroup& group, const FeedConsumer& consumer) {
    reply.Map(4);
    reply.Bulk("name");
    reply.Bulk(consumer.name);
    reply.Bulk("seen-time");
    reply.Integer(consumer.seen_ms);
    reply.Bulk("pel-count");
    reply.Unsigned(consumer.pending.size());
    reply.Bulk("pending");
    uint64_t left = Take(consumer.pending.size());
    reply.Array(left);
    for (auto id = consumer.pending.begin(); left > 0; ++id, --left) {
      const auto found = group.pending.find(*id);
      CELLAR_ASSERT(found != group.pending.end());  // what a consumer has, its group has
      const FeedPending& pending = found->second;
      reply.Array(3);
      reply.Bulk(id->text());
      reply.Integer(pending.delivered_ms);
      reply.Unsigned(pending.times);
    }
  }

  const uint64_t count_;
  uint64_t rows_left_{kStreamFullRowsMax};
  FeedScan scan_;
  bool read_{false};
  uint64_t told_{0};
  FeedId first_;
  OutputBuffer entries_;
};

}  // namespace

void RunGroupsInfo(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, FindFeed(ctx, ctx.args[2]).status());
  ctx.Continue(std::make_unique<GroupsInfoTask>(ctx, ctx.args[2]));
}

void RunStreamFull(CommandContext& ctx, std::string_view feed, uint64_t count) {
  REPLY_IF_ERROR(ctx, FindFeed(ctx, feed).status());
  ctx.Continue(std::make_unique<StreamFullTask>(ctx, feed, count));
}

}  // namespace cellar
