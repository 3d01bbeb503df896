// See whole_groups_info.h.
#include "commands/cluster/whole_groups_info.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands/arguments/feed_arguments.h"
#include "commands/cluster/merged_feed.h"
#include "commands/cluster/part_calls.h"
#include "commands/cluster/reply_reader.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_reader.h"
#include "commands/feeds/group_info_task.h"
#include "commands/session/services.h"
#include "engine/feeds/feed_group.h"
#include "engine/feeds/merged_id.h"
#include "store/store.h"

namespace cellar {
namespace {

class WholeLagTask : public FeedTask {
  static constexpr int64_t kPatienceMicros{1'000'000};

 public:
  explicit WholeLagTask(CommandContext& ctx)
      : FeedTask(ctx),
        name_(NameOf(ctx, ctx.args[2])),
        deadline_micros_(ctx.host.clock().MonotonicMicros() + kPatienceMicros),
        behind_(ctx.host, ctx.session) {}

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&name_));
    if (MergedFeed::RefusesExec(context)) return TaskProgress::kDone;
    RETURN_IF_ERROR(CheckGroupsHere(host(), *feed, name_.word));
    const FeedGroups::OfFeed* const groups =
        host().store().engine().feeds().groups().Of(WholeFeedGroups(feed->id));
    if (!behind_.begun()) RETURN_IF_ERROR(Ask(groups));
    ASSIGN_OR_RETURN(const bool counted, behind_.TakeSome());
    ASSIGN_OR_RETURN(const bool ready, Prepare());
    const bool is_late = host().clock().MonotonicMicros() >= deadline_micros_;
    if (!(counted && ready) && !is_late) return TaskProgress::kWaiting;
    GroupLags lags;
    if (!Sum(&lags)) return SomethingElse();
    RETURN_IF_ERROR(Reply(context.reply, groups, lags));
    context.depends_on = host().store().last_lsn();
    return TaskProgress::kDone;
  }
  void ForgetPlaces() override {}

  // True: what else the reply needs is there.
  virtual Result<bool> Prepare() { return true; }
  virtual Status Reply(ReplyWriter& reply, const FeedGroups::OfFeed* groups,
                       const GroupLags& lags) = 0;
  const std::vector<uint64_t>& sets() const { return sets_; }
  const FeedName& name() const { return name_; }

 private:
  Status Ask(const FeedGroups::OfFeed* groups) {
    const ClusterView& view = host().services().cluster_view;
    if (!view.KnowsSets(host().store().engine().cluster().set))
      return StatusOfLine(ClusterView::kSetsUnknown);
    const std::set<FeedId> last_ids = LastIdsOf(groups);
    ids_.assign(last_ids.begin(), last_ids.end());
    std::vector<std::string> texts;
    for (const FeedId& id : ids_) texts.push_back(id.text());
    behind_.Begin();
    for (const auto& [number, set] : view.sets.sets()) {
      sets_.push_back(number);
      const std::string part = PartName(name_.word, number);
      std::vector<std::string_view> words{"FEED", "BEHIND", part};
      words.insert(words.end(), texts.begin(), texts.end());
      behind_.Ask(number, words);
    }
    return Status::Ok();
  }

  // Nothing is known of any group where a set has not answered. False: it is no answer.
  bool Sum(GroupLags* lags) const {
    GroupLags sum;
    for (const uint64_t set : sets_) {
      const std::string* const reply = behind_.ReplyOf(set);
      if (reply == nullptr) return true;
      ReplyReader reader(*reply);
      uint64_t count = 0;
      uint64_t told = 0;
      if (!reader.Array(&count) || count != 1 + ids_.size() || !reader.Unsigned(&told))
        return false;
      sum.told += told;
      for (const FeedId& id : ids_) {
        uint64_t behind = 0;
        if (!reader.Unsigned(&behind)) return false;
        sum.behind[id] += behind;
      }
    }
    *lags = std::move(sum);
    return true;
  }

  FeedName name_;
  const int64_t deadline_micros_;  // monotonic
  std::vector<uint64_t> sets_;
  std::vector<FeedId> ids_;
  PartCalls behind_;
};

class WholeGroupsInfoTask final : public WholeLagTask {
 public:
  using WholeLagTask::WholeLagTask;

 protected:
  Status Reply(ReplyWriter& reply, const FeedGroups::OfFeed* groups,
               const GroupLags& lags) override {
    ReplyGroupsInfo(reply, groups, lags);
    return Status::Ok();
  }
};

class WholeStreamFullTask final : public WholeLagTask {
 public:
  WholeStreamFullTask(CommandContext& ctx, uint64_t count)
      : WholeLagTask(ctx),
        count_(StreamFullCount(count)),
        streams_(ctx.host, ctx.session),
        feed_(ctx.host, ctx.session, ctx.args[2]) {
    feed_.Begin({.after = {}, .from_oldest = true}, false, count_);
  }

  size_t reply_bytes() const override { return entries_.size(); }
  size_t memory_bytes() const override { return entries_.size() + feed_.memory_bytes(); }

 protected:
  Result<bool> Prepare() override {
    if (!streams_.begun()) {
      for (const uint64_t set : sets()) {
        const std::string part = PartName(name().word, set);
        streams_.Ask(set, {"XINFO", "STREAM", part});
      }
    }
    ASSIGN_OR_RETURN(const bool all, streams_.TakeSome());
    return ReadOn() && all;
  }

  Status Reply(ReplyWriter& reply, const FeedGroups::OfFeed* groups,
               const GroupLags& lags) override {
    FeedCounts counts;
    FeedId first;
    for (const uint64_t set : sets()) {
      const std::string* const stream = streams_.ReplyOf(set);
      if (stream != nullptr) RETURN_IF_ERROR(Add(set, *stream, &counts, &first));
    }
    reply.Map(kStreamCounts + 2);
    ReplyStreamCounts(reply, counts, first);
    reply.Bulk("entries");
    if (is_read_) {
      reply.Array(told_);
      reply.Raw(entries_.view());
    } else {
      reply.NullArray();
    }
    ReplyStreamGroups(reply, groups, lags, count_);
    return Status::Ok();
  }

 private:
  // True: there is nothing to wait for. What a set that is away holds back is not told in part.
  bool ReadOn() {
    MergedFeed::Entry entry;
    std::string error;
    while (!is_read_ && !has_failed_) {
      const MergedFeed::Came came = feed_.Next(&entry, &error);
      if (came == MergedFeed::Came::kNothing) return false;
      has_failed_ = came == MergedFeed::Came::kError;
      is_read_ = came == MergedFeed::Came::kEnd;
      if (came != MergedFeed::Came::kEntry) continue;
      ReplyWriter to(&entries_, RespVersion::k2);  // entries are the same in both
      to.Array(2);
      to.Bulk(entry.id.text());
      to.Raw(entry.fields);
      is_read_ = ++told_ == count_ || entries_.size() >= kFeedReplyBytesMax;
    }
    return true;
  }

  static Status Add(uint64_t set, std::string_view stream, FeedCounts* counts, FeedId* first) {
    ReplyFields fields;
    bool fits = ReadReplyFields(stream, &fields);
    for (const auto& [name, value] : fields) {
      uint64_t number = 0;
      std::string_view text;
      if (name == "length" || name == "entries-added") {
        fits = fits && ReplyReader(value).Unsigned(&number);
        (name == "length" ? counts->length : counts->told) += number;
        continue;
      }
      FeedId* const to = name == "last-generated-id"         ? &counts->last
                         : name == "max-deleted-entry-id"    ? &counts->dropped
                         : name == "recorded-first-entry-id" ? first
                                                             : nullptr;
      if (to == nullptr || !fits) continue;
      FeedId own;
      fits = ReplyReader(value).Bulk(&text) && ReadOwnId(text, &own);
      if (!fits || own == FeedId{}) continue;
      const FeedId id = MergedIdOf(set, own);
      const bool is_it = *to == FeedId{} || (to == first ? id < *to : *to < id);
      if (is_it) *to = id;
    }
    if (fits) return Status::Ok();
    return SomethingElse();
  }

  const uint64_t count_;
  PartCalls streams_;
  MergedFeed feed_;
  bool is_read_{false};
  bool has_failed_{false};
  uint64_t told_{0};
  OutputBuffer entries_;
};

}  // namespace

void RunWholeGroupsInfo(CommandContext& ctx) {
  ctx.Continue(std::make_unique<WholeGroupsInfoTask>(ctx));
}

void RunWholeStreamFull(CommandContext& ctx, uint64_t count) {
  ctx.Continue(std::make_unique<WholeStreamFullTask>(ctx, count));
}

}  // namespace cellar
