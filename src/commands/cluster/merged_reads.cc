// See merged_reads.h.
#include "commands/cluster/merged_reads.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/cluster/merged_feed.h"
#include "commands/cluster/reply_reader.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_reader.h"
#include "commands/session/command_context.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"
#include "store/store.h"

namespace cellar {
namespace {

// NOFEED also of a set that there is not.
Result<const Feed*> FindPartOf(const CommandContext& ctx, std::string_view word) {
  const std::optional<FeedWord> named = ParseFeedWord(word);
  const ClusterView& view = ctx.host.services().cluster_view;
  const bool is_there = named && (!named->set || view.sets.Find(*named->set) != nullptr);
  const uint64_t own = ctx.host.store().engine().cluster().set;
  if (!is_there && named && !view.KnowsSets(own) && FindFeed(ctx, named->feed).ok())
    return StatusOfLine(ClusterView::kSetsUnknown);
  return FindFeed(ctx, is_there ? named->feed : word);
}

void AppendEntry(const MergedFeed::Entry& entry, OutputBuffer* to) {
  ReplyWriter reply(to, RespVersion::k2);  // entries are the same in both
  reply.Array(2);
  reply.Bulk(entry.id.text());
  reply.Raw(entry.fields);
}

// --- XREAD

class MergedReadTask final : public Task {
 public:
  // `feeds`: those of the request, one behind the other.
  MergedReadTask(CommandContext& ctx, const FeedReadRequest& request,
                 const std::vector<const Feed*>& feeds)
      : host_(ctx.host), count_(request.count), wait_(ctx, request.block_ms) {
    for (const FeedReadRequest::Stream& stream : request.streams) {
      Stream& added = streams_.emplace_back(MergedFeed(ctx.host, ctx.session, stream.name));
      added.feed_id = feeds[streams_.size() - 1]->id;
      added.last_one = stream.last_one;
      if (stream.from_end)
        added.feed.BeginAtEnd(count_);
      else if (stream.last_one)
        added.feed.Begin({.after = {}, .from_oldest = true}, true, 1);
      else
        added.feed.Begin({.after = stream.after, .from_oldest = stream.from_oldest}, false, count_);
    }
  }

  size_t reply_bytes() const override { return bytes_; }
  size_t memory_bytes() const override {
    size_t bytes = bytes_;
    for (const Stream& stream : streams_) bytes += stream.feed.memory_bytes();
    return bytes;
  }
  bool Unblock(UnblockReason reason) override { return wait_.Unblock(reason); }

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = host_.store().schema_lsn();
    if (MergedFeed::RefusesExec(context) || wait_.RepliesError(context)) return TaskProgress::kDone;
    bool all_known = true;
    std::string error;
    for (Stream& stream : streams_) {
      if (stream.at_end) continue;
      all_known = Read(&stream, &error) && all_known;
      stream.is_away = !error.empty();
      if (stream.is_away && !(wait_.blocks() && stream.feed.may_come_back())) {
        context.Fail(error);
        return TaskProgress::kDone;
      }
      error.clear();
    }
    // A set may not answer for as long as it likes. What there is from the beginning is waited for.
    if (!all_known) wait_.BeginWaiting();
    if (!all_known && !wait_.IsOver(context, has_looked_ ? 0 : kFirstLookMicros))
      return TaskProgress::kWaiting;
    has_looked_ = true;
    const auto told = std::count_if(streams_.begin(), streams_.end(),
                                    [](const Stream& stream) { return stream.count > 0; });
    if (told > 0) {
      Reply(context.reply, static_cast<uint64_t>(told));
      return TaskProgress::kDone;
    }
    if (wait_.RepliesNothing(context)) return TaskProgress::kDone;
    const int64_t now = host_.clock().MonotonicMicros();
    bool looks = false;
    for (Stream& stream : streams_) {
      // One that was dropped and made anew is gone for this reader.
      if (host_.store().engine().feeds().FindById(stream.feed_id) == nullptr) {
        context.Fail(Status::Error(ErrorCode::kNoFeed,
                                   "no feed " + Quote(stream.feed.word()) + " any more"));
        return TaskProgress::kDone;
      }
      // Where there was no last one, the first to come is it.
      const bool begins = !stream.is_away && std::exchange(stream.last_one, false);
      if (begins) stream.feed.Begin({.after = {}, .from_oldest = true}, false, count_);
      if (now < stream.look_micros || !(begins || stream.feed.MayHaveMore())) continue;
      stream.look_micros = now + kLookMicros;
      stream.feed.LookAgain();
      stream.at_end = false;
      looks = true;
    }
    return looks ? TaskProgress::kMore : TaskProgress::kWaiting;
  }

 private:
  // No reader that waits asks all sets more often.
  static constexpr int64_t kLookMicros{25'000};
  static constexpr int64_t kFirstLookMicros{1'000'000};

  struct Stream {
    explicit Stream(MergedFeed of) : feed(std::move(of)) {}
    MergedFeed feed;
    OutputBuffer entries;
    uint64_t feed_id{0};
    uint64_t count{0};
    bool last_one{false};
    bool at_end{false};      // by now
    bool is_away{false};     // a set that has a part of it
    int64_t look_micros{0};  // monotonic: not again before
  };

  // True: what there is of it by now is read.
  bool Read(Stream* stream, std::string* error) {
    MergedFeed::Entry entry;
    const uint64_t count_max = stream->last_one ? 1 : count_;
    while (stream->count < count_max && bytes_ < kFeedReplyBytesMax) {
      const MergedFeed::Came came = stream->feed.Next(&entry, error);
      if (came == MergedFeed::Came::kNothing) return false;
      if (came != MergedFeed::Came::kEntry) break;
      const size_t before = stream->entries.size();
      AppendEntry(entry, &stream->entries);
      bytes_ += stream->entries.size() - before;
      ++stream->count;
    }
    stream->at_end = true;
    return true;
  }

  void Reply(ReplyWriter& reply, uint64_t told) {
    if (reply.resp3())
      reply.Map(told);
    else
      reply.Array(told);
    for (const Stream& stream : streams_) {
      if (stream.count == 0) continue;
      if (!reply.resp3()) reply.Array(2);
      reply.Bulk(stream.feed.word());
      reply.Array(stream.count);
      reply.Raw(stream.entries.view());
    }
  }

  Host& host_;
  const uint64_t count_;
  FeedWait wait_;
  std::vector<Stream> streams_;
  size_t bytes_{0};
  bool has_looked_{false};  // at all of them, once
};

// --- XRANGE, XREVRANGE

class MergedRangeTask final : public Task {
 public:
  MergedRangeTask(CommandContext& ctx, std::string_view word, const FeedRange& range, bool reverse,
                  uint64_t count)
      : host_(ctx.host), feed_(ctx.host, ctx.session, word), count_(count) {
    feed_.Begin(range, reverse, count);
  }

  size_t reply_bytes() const override { return entries_.size(); }
  size_t memory_bytes() const override { return entries_.size() + feed_.memory_bytes(); }

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = host_.store().schema_lsn();
    if (MergedFeed::RefusesExec(context)) return TaskProgress::kDone;
    MergedFeed::Entry entry;
    std::string error;
    while (told_ < count_ && entries_.size() < kFeedReplyBytesMax) {
      const MergedFeed::Came came = feed_.Next(&entry, &error);
      if (came == MergedFeed::Came::kNothing) return TaskProgress::kWaiting;
      if (came == MergedFeed::Came::kEnd) break;
      if (came == MergedFeed::Came::kError) {
        context.Fail(error);
        return TaskProgress::kDone;
      }
      AppendEntry(entry, &entries_);
      ++told_;
    }
    context.reply.Array(told_);
    context.reply.Raw(entries_.view());
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  MergedFeed feed_;
  const uint64_t count_;
  uint64_t told_{0};
  OutputBuffer entries_;
};

// --- XLEN

class MergedLengthTask final : public Task {
 public:
  MergedLengthTask(CommandContext& ctx, std::string_view feed) : host_(ctx.host) {
    RemoteCalls& remote = *host_.services().remote;
    for (const auto& [number, set] : host_.services().cluster_view.sets.sets()) {
      const std::string name = std::string(feed) + "@" + std::to_string(number);
      const std::string_view words[] = {"XLEN", name};
      tickets_.push_back(remote.Ask(ctx.session, number, CallOf(words), false));
    }
  }
  ~MergedLengthTask() override {
    for (const uint64_t ticket : tickets_) host_.services().remote->Forget(ticket);
  }

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = host_.store().schema_lsn();
    if (MergedFeed::RefusesExec(context)) return TaskProgress::kDone;
    while (!tickets_.empty()) {
      const RemoteCalls::Answer& answer = host_.services().remote->AnswerTo(tickets_.back());
      if (answer.state == RemoteCalls::State::kPending) return TaskProgress::kWaiting;
      uint64_t length = 0;
      if (!ReplyReader(answer.bytes).Unsigned(&length)) {
        context.Fail(FailureOf(answer));
        return TaskProgress::kDone;
      }
      length_ += length;
      host_.services().remote->Forget(tickets_.back());
      tickets_.pop_back();
    }
    context.reply.Unsigned(length_);
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  std::vector<uint64_t> tickets_;
  uint64_t length_{0};
};

}  // namespace

void BeginMergedRead(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const FeedReadRequest request, ParseFeedRead(ArgumentCursor(ctx.args, 1)));
  std::vector<const Feed*> feeds;
  for (const FeedReadRequest::Stream& stream : request.streams) {
    ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindPartOf(ctx, stream.name));
    feeds.push_back(feed);
  }
  REPLY_IF_ERROR(ctx, CheckNamedSeldom(feeds));
  ctx.Continue(std::make_unique<MergedReadTask>(ctx, request, feeds));
}

void BeginMergedRange(CommandContext& ctx) {
  const bool reverse = ctx.command.full_name == "xrevrange";
  FeedRange range;
  uint64_t count = 0;
  REPLY_IF_ERROR(ctx, ParseFeedRangeWords(ctx.args, reverse, &range, &count));
  REPLY_IF_ERROR(ctx, FindPartOf(ctx, ctx.args[1]).status());
  if (count == 0) return ctx.reply.NullArray();
  ctx.Continue(std::make_unique<MergedRangeTask>(ctx, ctx.args[1], range, reverse, count));
}

void BeginMergedLength(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, FindPartOf(ctx, ctx.args[1]).status());
  const ClusterView& view = ctx.host.services().cluster_view;
  if (!view.KnowsSets(ctx.store().engine().cluster().set)) return ctx.Fail(view.kSetsUnknown);
  ctx.Continue(std::make_unique<MergedLengthTask>(ctx, ctx.args[1]));
}

}  // namespace cellar
