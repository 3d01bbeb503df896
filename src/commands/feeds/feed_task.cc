// See feed_task.h.
// A task keeps its places in the log and what it has written for the reply so far. Each step finds
// the feeds anew (FeedTask::Step, then Go) and goes on from there.
#include "commands/feeds/feed_task.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/duration.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_reader.h"
#include "commands/session/services.h"
#include "store/catalog_changes.h"
#include "store/store.h"

namespace cellar {
namespace {

// --- XREAD

class FeedReadTask final : public FeedTask {
 public:
  FeedReadTask(CommandContext& ctx, const FeedReadRequest& request)
      : FeedTask(ctx), count_(request.count), wait_(ctx, request.block_ms) {
    for (const FeedReadRequest::Stream& stream : request.streams) {
      Stream& added = streams_.emplace_back();
      added.name = NameOf(ctx, stream.name);
      added.after = OwnId(ctx, stream.after);
      added.from_oldest = stream.from_oldest;
      added.from_end = stream.from_end;
      added.last_one = stream.last_one;
    }
  }

  size_t reply_bytes() const override { return bytes_; }
  bool Unblock(UnblockReason reason) override { return wait_.Unblock(reason); }

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    if (wait_.RepliesError(context)) return TaskProgress::kDone;
    for (; current_ < streams_.size(); ++current_) {
      // Full: the streams behind are left to the client's next call.
      if (bytes_ >= kFeedReplyBytesMax) break;
      ASSIGN_OR_RETURN(const bool read, ReadStream(&streams_[current_], context.budget));
      if (!read) return TaskProgress::kMore;
    }
    const auto told = std::count_if(streams_.begin(), streams_.end(),
                                    [](const Stream& stream) { return stream.count > 0; });
    if (told > 0) {
      Reply(context.reply, static_cast<uint64_t>(told));
      return TaskProgress::kDone;
    }
    feed_log().AskForSync();
    if (wait_.RepliesNothing(context)) return TaskProgress::kDone;
    // When it is woken it looks at all streams again. Each is settled anew, since entries may have
    // been dropped meanwhile.
    current_ = 0;
    for (Stream& stream : streams_) stream.phase = Phase::kSettle;
    return TaskProgress::kWaiting;
  }

  void ForgetPlaces() override {
    for (Stream& stream : streams_) stream.scan.place = {};
  }

 private:
  enum class Phase : uint8_t { kSettle, kLook, kRead };
  struct Stream {
    FeedName name;
    FeedId after;
    bool from_oldest{false};
    bool from_end{false};
    bool last_one{false};
    Phase phase{Phase::kSettle};
    FeedScan scan;
    OutputBuffer entries;
    uint64_t count{0};
  };

  // True: all that the reply gets of it has been read.
  Result<bool> ReadStream(Stream* stream, const TaskBudget& budget) {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&stream->name));
    // `$` is the end as of the first step. From then on it is an id like any other.
    if (stream->from_end) {
      ASSIGN_OR_RETURN(stream->after, feed_log().End());
      stream->from_end = false;
    }
    if (stream->phase == Phase::kSettle) {
      ASSIGN_OR_RETURN(const bool settled, Settle(*feed, budget));
      if (!settled) return false;
      // From the oldest on nothing can be missing, and `+` asks for the newest alone.
      if (!stream->from_oldest && !stream->last_one)
        RETURN_IF_ERROR(CheckKept(*feed, stream->name, stream->after));
      // Who waits takes the look that all waiters share before it reads for itself.
      stream->phase = wait_.waiting() ? Phase::kLook : Phase::kRead;
    }
    if (stream->last_one) return ReadLast(*feed, stream, budget);
    while (stream->phase == Phase::kLook) {
      ASSIGN_OR_RETURN(const FeedLog::Behind behind, feed_log().LookBehind(*feed, stream->after));
      if (behind == FeedLog::Behind::kNothing) return true;
      if (behind == FeedLog::Behind::kPerhaps) stream->phase = Phase::kRead;
      if (budget.Spent()) return false;
    }
    const size_t bytes_before = stream->entries.size();
    CELLAR_ASSERT(stream->count < count_);
    CELLAR_ASSERT(bytes_ >= bytes_before);
    // The limit is that of all streams together; the sink adds the bytes of this one itself.
    FeedReplySink sink(&stream->entries, count_ - stream->count, bytes_ - bytes_before);
    stream->scan.after = stream->after;
    bool done = false;
    while (!done) {
      const Result<bool> read = feed_log().Read(*feed, &stream->scan, &sink);
      RETURN_IF_ERROR(read.status());
      done = *read;
      if (!done && budget.Spent()) break;
    }
    stream->count += sink.count();
    bytes_ += stream->entries.size() - bytes_before;
    if (sink.count() > 0) stream->after = sink.last();
    // It has come to the end: the next look behind this id need not read that far again.
    if (done && !sink.full()) feed_log().NoteQuiet(*feed, stream->after, stream->scan);
    return done;
  }

  // `+`: the newest entry, whatever its id.
  Result<bool> ReadLast(const Feed& feed, Stream* stream, const TaskBudget& budget) {
    CELLAR_ASSERT(stream->count == 0);
    std::vector<FeedEntry> entries;
    for (;;) {
      ASSIGN_OR_RETURN(const bool done, feed_log().ReadBack(feed, &stream->scan, 1, &entries));
      if (!entries.empty()) {
        ReplyWriter reply(&stream->entries, RespVersion::k2);
        AppendFeedEntry(reply, entries.back());
        stream->count = 1;
        bytes_ += stream->entries.size();
        return true;
      }
      if (done) {
        // What comes first from now on is the newest then.
        stream->last_one = false;
        stream->scan = {};
        return true;
      }
      if (budget.Spent()) return false;
    }
  }

  void Reply(ReplyWriter& reply, uint64_t told) {
    if (reply.resp3()) {
      reply.Map(told);
    } else {
      reply.Array(told);
    }
    for (const Stream& stream : streams_) {
      if (stream.count == 0) continue;
      if (!reply.resp3()) reply.Array(2);
      reply.Bulk(stream.name.word);
      reply.Array(stream.count);
      reply.Raw(stream.entries.view());
    }
  }

  std::vector<Stream> streams_;
  const uint64_t count_;
  FeedWait wait_;
  size_t current_{0};
  size_t bytes_{0};
};

// --- XRANGE, XREVRANGE

class FeedRangeTask final : public FeedTask {
 public:
  FeedRangeTask(CommandContext& ctx, std::string_view feed, const FeedRange& range, FeedOrder order,
                uint64_t count)
      : FeedTask(ctx), name_(NameOf(ctx, feed)), range_(range), order_(order), count_(count) {
    scan_.after = range_.after;
    scan_.to = range_.to;
  }

  size_t reply_bytes() const override { return entries_.size(); }

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    const bool was_settled = name_.settled;
    ASSIGN_OR_RETURN(const Feed* const feed, FindSettled(&name_, context.budget));
    if (feed == nullptr) return TaskProgress::kMore;
    // A range that names where it begins would seem whole although its first entries are gone.
    if (!was_settled && !range_.from_oldest && !range_.empty)
      RETURN_IF_ERROR(CheckKept(*feed, name_, range_.after));
    bool done = range_.empty;
    while (!done) {
      ASSIGN_OR_RETURN(done, order_ == FeedOrder::kOldestFirst ? Read(*feed) : ReadBack(*feed));
      if (!done && context.budget.Spent()) return TaskProgress::kMore;
    }
    feed_log().AskForSync();
    context.reply.Array(told_);
    context.reply.Raw(entries_.view());
    return TaskProgress::kDone;
  }

  void ForgetPlaces() override { scan_.place = {}; }

 private:
  Result<bool> Read(const Feed& feed) {
    CELLAR_ASSERT(told_ < count_);
    FeedReplySink sink(&entries_, count_ - told_, 0);
    ASSIGN_OR_RETURN(const bool done, feed_log().Read(feed, &scan_, &sink));
    told_ += sink.count();
    if (sink.count() > 0) scan_.after = sink.last();
    return done;
  }

  Result<bool> ReadBack(const Feed& feed) {
    CELLAR_ASSERT(told_ < count_);
    std::vector<FeedEntry> entries;
    ASSIGN_OR_RETURN(const bool done, feed_log().ReadBack(feed, &scan_, count_ - told_, &entries));
    FeedReplySink sink(&entries_, count_ - told_, 0);
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      if (!sink.OnEntry(*entry)) break;
    }
    told_ += sink.count();
    // Backwards it is the upper end that moves.
    if (sink.count() > 0) scan_.to = sink.last().Previous();
    return done || sink.full();
  }

  FeedName name_;
  const FeedRange range_;
  const FeedOrder order_;
  const uint64_t count_;
  FeedScan scan_;
  uint64_t told_{0};
  OutputBuffer entries_;
};

class FirstEntrySink final : public FeedSink {
 public:
  explicit FirstEntrySink(std::optional<FeedEntry>* first) : first_(*first) {}
  bool OnEntry(const FeedEntry& entry) override {
    first_ = entry;
    return false;
  }

 private:
  std::optional<FeedEntry>& first_;
};

// --- figures

class FeedFiguresTask final : public FeedTask {
 public:
  FeedFiguresTask(CommandContext& ctx, std::string_view feed, FeedFigures figures)
      : FeedTask(ctx),
        name_(NameOf(ctx, feed)),
        figures_(figures),
        sees_log_(ctx.rights == nullptr || ctx.rights->MayReadEverything()) {}

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, FindSettled(&name_, context.budget));
    if (feed == nullptr) return TaskProgress::kMore;
    ASSIGN_OR_RETURN(const bool ready, Prepare(*feed, context.budget));
    if (!ready) return TaskProgress::kMore;
    feed_log().AskForSync();
    const FeedCounts counts = feed_log().CountsOf(*feed);
    const uint64_t groups_id =
        IsWholeFeed(host(), *feed, name_.word) ? WholeFeedGroups(feed->id) : feed->id;
    const FeedGroups::OfFeed* of_feed = host().store().engine().feeds().groups().Of(groups_id);
    const size_t groups = of_feed == nullptr ? 0 : of_feed->size();
    switch (figures_) {
      case FeedFigures::kLength:
        context.reply.Unsigned(counts.length);
        break;
      case FeedFigures::kStreamInfo:
        ReplyStreamInfo(context.reply, counts, groups);
        break;
      case FeedFigures::kFeedInfo:
        ReplyFeedInfo(context.reply, *feed, counts, groups);
        break;
    }
    return TaskProgress::kDone;
  }

  void ForgetPlaces() override {
    first_scan_.place = {};
    last_scan_.place = {};
  }

 private:
  // Counts, then looks for the first entry and the last. Each of these may stop when the
  // budget is spent, and goes on where it was.
  Result<bool> Prepare(const Feed& feed, const TaskBudget& budget) {
    for (;;) {
      ASSIGN_OR_RETURN(const bool counted, feed_log().Count(feed));
      if (counted) break;
      if (budget.Spent()) return false;
    }
    if (figures_ == FeedFigures::kLength) return true;
    if (feed_log().CountsOf(feed).length == 0) return true;
    while (!first_) {
      FirstEntrySink sink(&first_);
      ASSIGN_OR_RETURN(const bool done, feed_log().Read(feed, &first_scan_, &sink));
      if (done) break;
      if (budget.Spent()) return false;
    }
    std::vector<FeedEntry> newest;
    while (figures_ == FeedFigures::kStreamInfo && !last_) {
      ASSIGN_OR_RETURN(const bool done, feed_log().ReadBack(feed, &last_scan_, 1, &newest));
      if (!newest.empty()) last_ = std::move(newest.back());
      if (done) break;
      if (!last_ && budget.Spent()) return false;
    }
    return true;
  }

  static void ReplyEntry(ReplyWriter& reply, const std::optional<FeedEntry>& entry) {
    if (!entry) return reply.Null();
    AppendFeedEntry(reply, *entry);
  }

  void ReplyStreamInfo(ReplyWriter& reply, const FeedCounts& counts, size_t groups) const {
    reply.Map(kStreamCounts + 3);
    ReplyStreamCounts(reply, counts, first_ ? first_->id : FeedId{});
    reply.Bulk("groups");
    reply.Unsigned(groups);
    reply.Bulk("first-entry");
    ReplyEntry(reply, first_);
    reply.Bulk("last-entry");
    ReplyEntry(reply, last_);
  }

  void ReplyFeedInfo(ReplyWriter& reply, const Feed& feed, const FeedCounts& counts,
                     size_t groups) const {
    CELLAR_ASSERT(figures_ == FeedFigures::kFeedInfo);
    reply.Map(13);
    reply.Bulk("name");
    reply.Bulk(feed.name);
    reply.Bulk("on");
    reply.Array(feed.on.size());
    for (const Feed::On& on : feed.on)
      reply.Bulk(on.family.empty() ? on.table : on.table + ":" + on.family);
    reply.Bulk("prefix");
    reply.Array(feed.prefixes.size());
    for (const std::string& prefix : feed.prefixes) reply.Bulk(prefix);
    reply.Bulk("slice");
    if (feed.slices == 0) {
      reply.Null();
    } else {
      reply.Array(2);
      reply.Unsigned(feed.slice);
      reply.Unsigned(feed.slices);
    }
    reply.Bulk("old");
    reply.Boolean(feed.old);
    reply.Bulk("expired");
    reply.Boolean(feed.expired);
    reply.Bulk("entries");
    reply.Bulk(feed.by_row ? "row" : "cell");
    reply.Bulk("keep");
    reply.Bulk(FormatDurationShort(feed.keep_micros / kMicrosPerMs));
    reply.Bulk("first");
    reply.Bulk(first_ ? first_->id.text() : FeedId{}.text());
    reply.Bulk("last");
    reply.Bulk(counts.last.text());
    reply.Bulk("dropped");
    reply.Bulk(counts.dropped.text());
    reply.Bulk("groups");
    reply.Unsigned(groups);
    reply.Bulk("bytes");
    // The log is that of all tables: how it grows tells of those that may not be read.
    if (!sees_log_) return reply.Null();
    reply.Unsigned(counts.log_bytes);
  }

  FeedName name_;
  const FeedFigures figures_;
  const bool sees_log_;
  FeedScan first_scan_;
  FeedScan last_scan_;
  std::optional<FeedEntry> first_;
  std::optional<FeedEntry> last_;
};

// --- FEED RESOLVED

class FeedResolvedTask final : public FeedTask {
 public:
  FeedResolvedTask(CommandContext& ctx, std::string_view feed, const FeedResolving& how)
      : FeedTask(ctx),
        name_(NameOf(ctx, feed)),
        past_(how.past),
        wanted_micros_(how.now ? ctx.now_micros : CatalogChanges(ctx.store()).last_commit_micros()),
        deadline_micros_(ctx.host.clock().MonotonicMicros() +
                         (past_ ? kPastMicros : kPatienceMicros)) {
    if (past_) scan_.after = *past_;
  }

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&name_));
    if (past_) return Wait(*feed, context);
    ASSIGN_OR_RETURN(const FeedId end, feed_log().End());
    Store& store = host().store();
    // Who follows knows of no more than there is. What is known in the end is true, if too old for
    // some: no record may be logged, or get to disk.
    const bool is_known = end.micros() >= wanted_micros_ || store.following() ||
                          context.budget.unlimited() ||
                          host().clock().MonotonicMicros() >= deadline_micros_;
    feed_log().AskForSync();
    if (is_known) {
      Reply(context, end);
      return TaskProgress::kDone;
    }
    const int64_t last = CatalogChanges(store).last_commit_micros();
    const bool may_log = last < wanted_micros_ && !has_logged_ && !host().writes_paused() &&
                         context.now_micros - last >= kQuietMicros;
    if (may_log) has_logged_ = CatalogChanges(store).LogQuiet(*feed).ok();
    return TaskProgress::kWaiting;
  }

  void ForgetPlaces() override { scan_.place = {}; }

 private:
  static constexpr int64_t kPatienceMicros{1'000'000};
  static constexpr int64_t kPastMicros{5'000'000};
  // Who reads makes no more than a hundred records a second.
  static constexpr int64_t kQuietMicros{10'000};

  enum class Past : uint8_t { kNothing, kEntry, kMore };

  Result<TaskProgress> Wait(const Feed& feed, TaskContext& context) {
    ASSIGN_OR_RETURN(const Past found, Look(feed, context.budget));
    feed_log().AskForSync();
    const bool is_over =
        context.budget.unlimited() || host().clock().MonotonicMicros() >= deadline_micros_;
    if (found == Past::kNothing && !is_over) return TaskProgress::kWaiting;
    if (found == Past::kMore && !is_over) return TaskProgress::kMore;
    has_more_ = found != Past::kNothing;
    ASSIGN_OR_RETURN(const FeedId end, feed_log().End());
    Reply(context, end);
    return TaskProgress::kDone;
  }

  // As a reader that waits does (FeedReadTask::ReadStream).
  Result<Past> Look(const Feed& feed, const TaskBudget& budget) {
    if (*past_ < feed_log().DroppedOf(feed)) return Past::kEntry;
    for (;;) {
      if (!reads_) {
        ASSIGN_OR_RETURN(const FeedLog::Behind behind, feed_log().LookBehind(feed, *past_));
        if (behind == FeedLog::Behind::kNothing) return Past::kNothing;
        reads_ = behind == FeedLog::Behind::kPerhaps;
      } else {
        std::optional<FeedEntry> first;
        FirstEntrySink sink(&first);
        ASSIGN_OR_RETURN(const bool done, feed_log().Read(feed, &scan_, &sink));
        if (first) return Past::kEntry;
        // Whoever looks next need not read that far again.
        if (done) feed_log().NoteQuiet(feed, *past_, scan_);
        reads_ = !done;
      }
      if (budget.Spent()) return Past::kMore;
    }
  }

  void Reply(TaskContext& context, const FeedId& id) const {
    Store& store = host().store();
    const ClusterState& cluster = store.engine().cluster();
    // What is written from now on has no smaller time, whatever the clock does.
    const int64_t now = std::max(context.now_micros, CatalogChanges(store).last_commit_micros());
    ReplyWriter& reply = context.reply;
    reply.Map(past_ ? 4 : 3);
    reply.Bulk("id");
    reply.Bulk(id.text());
    reply.Bulk("now");
    reply.Unsigned(static_cast<uint64_t>(now));
    reply.Bulk("sets");
    if (!cluster.active() || cluster.set != 0) {
      reply.NullArray();
    } else {
      const auto& sets = host().services().cluster_map.Sets(store);
      reply.Array(sets.size());
      for (const auto& set : sets) reply.Unsigned(set.number);
    }
    if (!past_) return;
    reply.Bulk("more");
    reply.Unsigned(has_more_ ? 1 : 0);
  }

  FeedName name_;
  const std::optional<FeedId> past_;
  const int64_t wanted_micros_;
  const int64_t deadline_micros_;  // monotonic
  bool has_logged_{false};
  FeedScan scan_;         // behind `past_`
  bool reads_{false};     // it is not known to be quiet there
  bool has_more_{false};  // there is something
};

}  // namespace

void RunFeedRead(CommandContext& ctx, const FeedReadRequest& request) {
  // Once here, so that a wrong name is refused at once; the task asks again at each step.
  std::vector<const Feed*> feeds;
  for (const FeedReadRequest::Stream& stream : request.streams) {
    ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, stream.name));
    feeds.push_back(feed);
  }
  REPLY_IF_ERROR(ctx, CheckNamedSeldom(std::move(feeds)));
  ctx.Continue(std::make_unique<FeedReadTask>(ctx, request));
}

void RunFeedRange(CommandContext& ctx, std::string_view feed, const FeedRange& range,
                  FeedOrder order, uint64_t count) {
  REPLY_IF_ERROR(ctx, FindFeed(ctx, feed).status());
  FeedRange own = range;
  own.after = OwnId(ctx, range.after);
  own.to = OwnId(ctx, range.to);
  own.empty = own.empty || own.to <= own.after;
  ctx.Continue(std::make_unique<FeedRangeTask>(ctx, feed, own, order, count));
}

void RunFeedResolved(CommandContext& ctx, std::string_view feed, const FeedResolving& how) {
  REPLY_IF_ERROR(ctx, FindFeed(ctx, feed).status());
  FeedResolving own = how;
  if (how.past) own.past = OwnId(ctx, *how.past);
  ctx.Continue(std::make_unique<FeedResolvedTask>(ctx, feed, own));
}

void RunFeedFigures(CommandContext& ctx, std::string_view feed, FeedFigures figures) {
  REPLY_IF_ERROR(ctx, FindFeed(ctx, feed).status());
  ctx.Continue(std::make_unique<FeedFiguresTask>(ctx, feed, figures));
}

}  // namespace cellar
