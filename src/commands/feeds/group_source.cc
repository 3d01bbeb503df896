// See group_source.h.
#include "commands/feeds/group_source.h"

#include "base/text/quote.h"
#include "commands/feeds/feed_access.h"
#include "commands/session/host.h"
#include "store/store.h"

namespace cellar {
namespace {

class OwnFinder final : public EntryFinder {
 public:
  OwnFinder(Host& host, FeedDecoder::Fields fields) : host_(host), fields_(fields) {}

  Result<bool> Look(const Feed& feed, const std::vector<FeedId>& ids, size_t* next, FeedSink* sink,
                    const TaskBudget& budget) override {
    while (!done_) {
      ASSIGN_OR_RETURN(done_,
                       host_.store().feed_log().Find(feed, ids, fields_, next, &scan_, sink));
      if (!done_ && budget.Spent()) return false;
    }
    return true;
  }
  void ForgetPlace() override { scan_.place = {}; }

 private:
  Host& host_;
  const FeedDecoder::Fields fields_;
  FeedScan scan_;
  bool done_{false};
};

class OwnGroups final : public GroupSource {
 public:
  OwnGroups(Host& host, std::string_view word) : host_(host), word_(word) {}

  uint64_t GroupsOf(const Feed& feed) const override { return feed.id; }
  // They may have become those of the whole feed since.
  Status CheckHere(const Feed& feed) const override {
    if (!IsWholeFeed(host_, feed, word_)) return Status::Ok();
    return Status::Error(ErrorCode::kTryAgain,
                         "feed " + Quote(word_) + " lies on several sets from now on");
  }
  FeedId IdOf(const FeedId& id) const override { return id; }
  TaskProgress unfinished() const override { return TaskProgress::kMore; }

  Result<bool> Settle(const Feed& feed, const TaskBudget& budget) override {
    return SettleFeed(log(), feed, budget);
  }
  Result<bool> SettleDropped(const Feed& feed, const TaskBudget& budget) override {
    return Settle(feed, budget);
  }
  bool HasDropped(const Feed& feed, const FeedId& id) const override {
    return id <= log().DroppedOf(feed);
  }
  FeedId DroppedOf(const Feed& feed) const override { return log().DroppedOf(feed); }
  Status CheckKept(const Feed& feed, std::string_view word, const FeedId& after) const override {
    return CheckFeedKept(log(), feed, word, after);
  }
  // `$` is the last entry, so all of them have to be seen.
  Result<bool> FindLast(const Feed& feed, FeedId* last, const TaskBudget& budget) override {
    for (;;) {
      ASSIGN_OR_RETURN(const bool counted, log().Count(feed));
      *last = log().CountsOf(feed).last;
      if (counted || budget.Spent()) return counted;
    }
  }

  Result<FeedLog::Behind> LookBehind(const Feed& feed, const FeedId& last) override {
    return log().LookBehind(feed, last);
  }
  Result<bool> ReadBehind(const Feed& feed, const FeedId& last, uint64_t, FeedReplySink* sink,
                          const TaskBudget& budget) override {
    // Others may have read meanwhile, or somebody has set the group back.
    if (last < after_) scan_.place = {};
    scan_.after = last;
    bool done = false;
    while (!done) {
      ASSIGN_OR_RETURN(done, log().Read(feed, &scan_, sink));
      if (!done && budget.Spent()) break;
    }
    after_ = sink->count() > 0 ? sink->last() : last;
    if (done && !sink->full()) log().NoteQuiet(feed, after_, scan_);
    return done;
  }
  std::unique_ptr<EntryFinder> NewFinder(FeedDecoder::Fields fields) override {
    return std::make_unique<OwnFinder>(host_, fields);
  }
  void ForgetPlaces() override { scan_.place = {}; }
  size_t memory_bytes() const override { return 0; }

 private:
  FeedLog& log() const { return host_.store().feed_log(); }

  Host& host_;
  const std::string word_;
  FeedScan scan_;
  FeedId after_;  // the group's last one, as seen
};

}  // namespace

std::unique_ptr<GroupSource> OpenOwnGroups(Host& host, std::string_view word) {
  return std::make_unique<OwnGroups>(host, word);
}

}  // namespace cellar
