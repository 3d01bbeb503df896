// See feed_part_task.h.
#include "commands/feeds/feed_part_task.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_reader.h"
#include "commands/feeds/group_lags.h"
#include "engine/feeds/feed_group.h"
#include "store/store.h"

namespace cellar {
namespace {

class FeedEntriesTask final : public FeedTask {
 public:
  FeedEntriesTask(CommandContext& ctx, std::vector<FeedId> ids, FeedDecoder::Fields fields)
      : FeedTask(ctx), name_(NameOf(ctx, ctx.args[2])), ids_(std::move(ids)), fields_(fields) {}

  size_t reply_bytes() const override { return entries_.size(); }

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, FindSettled(&name_, context.budget));
    if (feed == nullptr) return TaskProgress::kMore;
    bool done = ids_.empty();
    while (!done) {
      Sink sink(&entries_, &told_);
      ASSIGN_OR_RETURN(done, feed_log().Find(*feed, ids_, fields_, &next_, &scan_, &sink));
      if (!done && context.budget.Spent()) return TaskProgress::kMore;
    }
    const FeedGroups::OfFeed* const groups =
        host().store().engine().feeds().groups().Of(WholeFeedGroups(feed->id));
    context.reply.Map(4);
    context.reply.Bulk("dropped");
    context.reply.Bulk(feed_log().DroppedOf(*feed).text());
    context.reply.Bulk("looked");
    context.reply.Unsigned(next_);
    context.reply.Bulk("entries");
    context.reply.Array(told_);
    context.reply.Raw(entries_.view());
    context.reply.Bulk("groups");
    context.reply.Unsigned(groups == nullptr ? 0 : groups->size());
    context.depends_on = host().store().last_lsn();
    return TaskProgress::kDone;
  }

  void ForgetPlaces() override { scan_.place = {}; }

 private:
  class Sink final : public FeedSink {
   public:
    Sink(OutputBuffer* to, uint64_t* told) : to_(to), told_(told) {}
    bool OnEntry(const FeedEntry& entry) override {
      ReplyWriter reply(to_, RespVersion::k2);  // entries are the same in both
      AppendFeedEntry(reply, entry);
      ++*told_;
      return to_->size() < kFeedReplyBytesMax;
    }

   private:
    OutputBuffer* const to_;
    uint64_t* const told_;
  };

  FeedName name_;
  const std::vector<FeedId> ids_;
  const FeedDecoder::Fields fields_;
  FeedScan scan_;
  size_t next_{0};
  uint64_t told_{0};
  OutputBuffer entries_;
};

class FeedBehindTask final : public FeedTask {
 public:
  FeedBehindTask(CommandContext& ctx, std::vector<FeedId> ids)
      : FeedTask(ctx),
        name_(NameOf(ctx, ctx.args[2])),
        ids_(std::move(ids)),
        counted_(ids_.begin(), ids_.end()) {}

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, FindSettled(&name_, context.budget));
    if (feed == nullptr) return TaskProgress::kMore;
    ASSIGN_OR_RETURN(const bool done, count_.Count(feed_log(), *feed, counted_, context.budget));
    if (!done) return TaskProgress::kMore;
    feed_log().AskForSync();
    const GroupLags lags = count_.lags();
    context.reply.Array(1 + ids_.size());
    context.reply.Unsigned(lags.told);
    for (const FeedId& id : ids_) context.reply.Unsigned(lags.behind.at(id));
    return TaskProgress::kDone;
  }

  void ForgetPlaces() override { count_.ForgetPlace(); }

 private:
  FeedName name_;
  const std::vector<FeedId> ids_;
  const std::set<FeedId> counted_;
  LagCount count_;
};

// In the order in which they were named.
Result<std::vector<FeedId>> ParseIds(const CommandContext& ctx, Arguments words) {
  if (words.size() > kFeedEntriesMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         "at most " + std::to_string(kFeedEntriesMax) + " ids at once");
  }
  std::vector<FeedId> ids;
  for (const std::string_view word : words) {
    ASSIGN_OR_RETURN(const FeedId id, ParseFeedId(word, 0));
    ids.push_back(OwnId(ctx, id));
  }
  return ids;
}

}  // namespace

void RunFeedEntries(CommandContext& ctx) {
  const bool just_ids = ctx.args.size() > 3 && EqualsIgnoreCase(ctx.args[3], "JUSTID");
  ASSIGN_OR_REPLY(ctx, std::vector<FeedId> ids, ParseIds(ctx, ctx.args.subspan(just_ids ? 4 : 3)));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  REPLY_IF_ERROR(ctx, FindFeed(ctx, ctx.args[2]).status());
  ctx.Continue(std::make_unique<FeedEntriesTask>(
      ctx, std::move(ids), just_ids ? FeedDecoder::Fields::kNo : FeedDecoder::Fields::kYes));
}

void RunFeedBehind(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, std::vector<FeedId> ids, ParseIds(ctx, ctx.args.subspan(3)));
  REPLY_IF_ERROR(ctx, FindFeed(ctx, ctx.args[2]).status());
  ctx.Continue(std::make_unique<FeedBehindTask>(ctx, std::move(ids)));
}

}  // namespace cellar
