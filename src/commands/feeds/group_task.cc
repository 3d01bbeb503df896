// See group_task.h.
// A step finds the feed and the group anew: others may have read, claimed or destroyed since the
// last one.
#include "commands/feeds/group_task.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/duration.h"
#include "commands/config/config.h"
#include "commands/feeds/feed_access.h"
#include "commands/feeds/feed_reader.h"
#include "commands/feeds/group_source.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "store/catalog_changes.h"
#include "store/store.h"

namespace cellar {
namespace {

// The group by its name, what changes in it, and a consumer that comes into being by reading.
class GroupTask : public FeedTask {
 protected:
  GroupTask(CommandContext& ctx, std::string_view group) : FeedTask(ctx), group_(group) {}

  const std::string& group() const { return group_; }
  // Null: there is none of that name. TRYAGAIN: it is not here.
  Result<const FeedGroup*> FindGroup(const Feed& feed, const GroupSource& source) const {
    RETURN_IF_ERROR(source.CheckHere(feed));
    return host().store().engine().feeds().groups().Find(source.GroupsOf(feed), group_);
  }
  int64_t now_ms() const { return host().store().now_micros() / kMicrosPerMs; }

  // Writes have been paused while it asked other sets.
  bool IsHeldBack(const TaskContext& context) const {
    return host().writes_paused() && !context.budget.unlimited();
  }
  // Logs the changes, if there are any.
  Status Change(const Feed& feed, const GroupSource& source, const FeedGroupChanges& changes) {
    CELLAR_ASSERT(!adds_consumer_ || !changes.empty());
    if (changes.empty()) return Status::Ok();
    RETURN_IF_ERROR(host().store().ChangeFeedGroup(source.GroupsOf(feed), group_, changes));
    // The consumer is there only now, so it is told only now.
    if (std::exchange(adds_consumer_, false))
      NotifyTable(host(), kNotifyTable, "xgroup-createconsumer", feed.keyspace, feed.name);
    return Status::Ok();
  }

  // The consumer comes into being with what he gets.
  Status AddConsumer(const FeedGroup& group, std::string_view consumer, FeedGroupChanges* changes) {
    const FeedConsumer* known = group.FindConsumer(consumer);
    if (known != nullptr) {
      // Kept in memory alone: when it was seen last is not worth a record.
      known->seen_ms = std::max(known->seen_ms, now_ms());
      return Status::Ok();
    }
    RETURN_IF_ERROR(CheckNewConsumer(group, consumer));
    changes->AddConsumer(consumer, now_ms());
    adds_consumer_ = true;
    return Status::Ok();
  }

  TaskProgress Done(TaskContext& context) const {
    context.depends_on = host().store().last_lsn();
    return TaskProgress::kDone;
  }

 private:
  const std::string group_;
  bool adds_consumer_{false};
};

// Entries that are looked for by their ids, as they stand in a reply.
class FoundEntries final : public FeedSink {
 public:
  // `ids` ascend. `more`: elements that follow each entry in the reply, which are not in Find's.
  void Begin(std::unique_ptr<EntryFinder> finder, std::vector<FeedId> ids, uint64_t more = 0) {
    CELLAR_DEBUG_ASSERT(std::is_sorted(ids.begin(), ids.end()));
    CELLAR_ASSERT(next_ == 0);
    CELLAR_ASSERT(found_.empty());
    finder_ = std::move(finder);
    ids_ = std::move(ids);
    more_ = more;
  }
  // True: all has been looked for, or there are enough. REQUIRES: it has begun.
  Result<bool> Look(const Feed& feed, const TaskBudget& budget) {
    return finder_->Look(feed, ids_, &next_, this, budget);
  }
  void ForgetPlaces() {
    if (finder_ != nullptr) finder_->ForgetPlace();
  }

  bool OnEntry(const FeedEntry& entry) override {
    OutputBuffer text;
    ReplyWriter reply(&text, RespVersion::k2);
    AppendFeedEntry(reply, entry, more_);
    bytes_ += text.size();
    found_.emplace(entry.id, text.view());
    return bytes_ < kFeedReplyBytesMax;
  }

  const std::vector<FeedId>& ids() const { return ids_; }
  // How many of them have been looked for.
  size_t looked_for() const { return next_; }
  bool LookedFor(const FeedId& id) const { return next_ == ids_.size() || id < ids_[next_]; }
  // Null: it is not there.
  const std::string* Find(const FeedId& id) const {
    const auto found = found_.find(id);
    return found == found_.end() ? nullptr : &found->second;
  }
  size_t bytes() const { return bytes_; }
  // With what its finder holds.
  size_t memory_bytes() const {
    return bytes_ + (finder_ == nullptr ? 0 : finder_->memory_bytes());
  }

 private:
  std::unique_ptr<EntryFinder> finder_;
  std::vector<FeedId> ids_;
  uint64_t more_{0};
  size_t next_{0};
  size_t bytes_{0};
  std::map<FeedId, std::string> found_;
};

// --- XREADGROUP

class GroupReadTask final : public GroupTask {
  // CLAIM that waits looks at all that is pending so often at least.
  static constexpr int64_t kLookAgainMsMax{1'000};

 public:
  struct From {
    std::string_view name;
    bool news{false};  // `>`
    FeedId after;
    std::unique_ptr<GroupSource> source;
  };

  GroupReadTask(CommandContext& ctx, const GroupReadRequest& request, std::vector<From> from)
      : GroupTask(ctx, request.group),
        consumer_(request.consumer),
        count_(request.count),
        no_ack_(request.no_ack),
        claim_idle_ms_(request.claim_idle_ms),
        wait_(ctx, request.block_ms) {
    for (From& one : from) {
      Stream& added = streams_.emplace_back();
      added.name = NameOf(ctx, one.name);
      added.news = one.news;
      added.after = one.after;
      added.source = std::move(one.source);
    }
  }

  size_t reply_bytes() const override { return bytes_; }
  size_t memory_bytes() const override {
    size_t bytes = bytes_;
    for (const Stream& stream : streams_) {
      bytes += stream.source->memory_bytes() + stream.history.memory_bytes() +
               stream.idle.entries.memory_bytes();
    }
    return bytes;
  }
  bool Unblock(UnblockReason reason) override { return wait_.Unblock(reason); }

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    if (wait_.RepliesError(context)) return TaskProgress::kDone;
    // Delivering is a change of the group, which only a leader can make.
    if (host().store().following()) {
      context.Fail(
          "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
          "replica?)");
      return TaskProgress::kDone;
    }
    // The dispatcher held the command back while writes were paused; one that has waited, for
    // entries or for other sets, must ask itself.
    const bool paused = IsHeldBack(context);
    if (paused && !wait_.waiting()) return TaskProgress::kWaiting;
    for (; !paused && current_ < streams_.size(); ++current_) {
      if (bytes_ >= kFeedReplyBytesMax) break;
      Stream& stream = streams_[current_];
      const Result<bool> read = ReadStream(&stream, context.budget);
      // What it has got so far is its consumer's, and so are the entries of streams before it.
      const bool is_away = stream.source->TakeIsAway() && (wait_.blocks() || HasTold());
      if (!read.ok() && !is_away) return read.status();
      if (!read.ok() || *read) continue;
      const TaskProgress unfinished = stream.source->unfinished();
      if (unfinished == TaskProgress::kMore) return unfinished;
      // Others are asked, who may not answer for as long as they like.
      wait_.BeginWaiting();
      if (!wait_.IsOver(context, has_looked_ ? 0 : kFirstLookMicros)) return unfinished;
    }
    has_looked_ = true;
    const auto told = std::count_if(streams_.begin(), streams_.end(), IsTold);
    if (told > 0) {
      Reply(context.reply, static_cast<uint64_t>(told));
      return Done(context);
    }
    feed_log().AskForSync();
    if (wait_.RepliesNothing(context)) return TaskProgress::kDone;
    if (paused) return TaskProgress::kWaiting;
    current_ = 0;
    for (Stream& stream : streams_) {
      stream.phase = Phase::kSettle;
      stream.idle.done = false;
    }
    return TaskProgress::kWaiting;
  }

  void ForgetPlaces() override {
    for (Stream& stream : streams_) {
      stream.source->ForgetPlaces();
      stream.history.ForgetPlaces();
      stream.idle.entries.ForgetPlaces();
    }
  }

 private:
  enum class Phase : uint8_t { kSettle, kLook, kRead };
  // CLAIM: what is pending and idle, the longest idle one first.
  struct Idle {
    bool done{false};                            // for this time
    bool chosen{false};                          // all that is pending has been looked at
    FeedId looked_at;                            // up to here
    std::set<std::pair<int64_t, FeedId>> found;  // when it was delivered, at most `count_`
    int64_t next_ms{0};                          // when one can be idle for so long, the next time
    FoundEntries entries;
  };
  struct Stream {
    FeedName name;
    bool news{false};
    FeedId after;  // of what is pending with him
    std::unique_ptr<GroupSource> source;
    Phase phase{Phase::kSettle};
    FoundEntries history;
    OutputBuffer entries;
    uint64_t count{0};
    bool looks{false};  // at what is pending
    bool looked{false};
    Idle idle;
  };

  // Who waits for sets that have not answered waits at first for a moment more.
  static constexpr int64_t kFirstLookMicros{1'000'000};

  static bool IsTold(const Stream& stream) { return stream.count > 0 || stream.looked; }
  bool HasTold() const { return std::any_of(streams_.begin(), streams_.end(), IsTold); }

  Result<const FeedGroup*> GroupOf(const Feed& feed, const Stream& stream) const {
    ASSIGN_OR_RETURN(const FeedGroup* const group, FindGroup(feed, *stream.source));
    if (group != nullptr) return group;
    if (!wait_.waiting())
      return NoGroupOfKey(stream.name.word, this->group(), " in XREADGROUP with GROUP option");
    return Status::Error(ErrorCode::kNoGroup,
                         "the consumer group this client was blocked on no longer exists");
  }

  // True: all that the reply gets of it has been read.
  Result<bool> ReadStream(Stream* stream, const TaskBudget& budget) {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&stream->name));
    ASSIGN_OR_RETURN(const FeedGroup* const group, GroupOf(*feed, *stream));
    if (stream->phase == Phase::kSettle) {
      ASSIGN_OR_RETURN(const bool settled, stream->source->Settle(*feed, budget));
      if (!settled) return false;
      stream->phase = wait_.waiting() ? Phase::kLook : Phase::kRead;
    }
    if (!stream->news) return ReadHistory(*feed, *group, stream, budget);
    // Entries that the group has not read may be gone. It says so and does not pass over them.
    RETURN_IF_ERROR(stream->source->CheckKept(*feed, stream->name.word, group->last));
    if (claim_idle_ms_ && !stream->idle.done) {
      ASSIGN_OR_RETURN(stream->idle.done, ClaimIdle(*feed, *group, stream, budget));
      if (!stream->idle.done) return false;
      if (stream->count == count_ || bytes_ >= kFeedReplyBytesMax) return true;
      // There is something to reply, so it does not wait and reads without a look before.
      if (stream->count > 0) stream->phase = Phase::kRead;
    }
    while (stream->phase == Phase::kLook) {
      ASSIGN_OR_RETURN(const FeedLog::Behind behind,
                       stream->source->LookBehind(*feed, group->last));
      if (behind == FeedLog::Behind::kNothing) return true;
      if (behind == FeedLog::Behind::kPerhaps) stream->phase = Phase::kRead;
      if (budget.Spent()) return false;
    }
    return ReadNews(*feed, *group, stream, budget);
  }

  bool IsIdle(const FeedPending& pending) const {
    CELLAR_ASSERT(claim_idle_ms_.has_value());
    return now_ms() - pending.delivered_ms >= *claim_idle_ms_;
  }

  // True: `found` is what is idle, as far as there is room for it in a reply.
  bool ChooseIdle(const FeedGroup& group, Idle* idle, const TaskBudget& budget) {
    constexpr size_t kBetweenClocks{256};
    size_t seen = 0;
    for (auto at = group.pending.upper_bound(idle->looked_at); at != group.pending.end(); ++at) {
      const auto& [id, pending] = *at;
      idle->looked_at = id;
      if (IsIdle(pending)) {
        idle->found.emplace(pending.delivered_ms, id);
        // Sorted by when they were delivered: the last one has been idle for the shortest time.
        if (idle->found.size() > count_) idle->found.erase(std::prev(idle->found.end()));
      } else {
        // When the first of the others will have been idle for long enough.
        idle->next_ms = std::min(idle->next_ms, pending.delivered_ms + *claim_idle_ms_);
      }
      if (++seen % kBetweenClocks == 0 && budget.Spent()) return false;
    }
    CELLAR_ASSERT(idle->found.size() <= count_);
    return true;
  }

  static void LookForIdle(GroupSource* source, Idle* idle) {
    std::vector<FeedId> ids;
    for (const auto& [delivered_ms, id] : idle->found) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    idle->entries = FoundEntries();
    idle->entries.Begin(source->NewFinder(FeedDecoder::Fields::kYes), std::move(ids), 2);
  }

  // True: what is idle is this consumer's, and in the reply.
  Result<bool> ClaimIdle(const Feed& feed, const FeedGroup& group, Stream* stream,
                         const TaskBudget& budget) {
    Idle& idle = stream->idle;
    if (!idle.chosen) {
      if (idle.looked_at == FeedId{}) {
        const int64_t left_ms = idle.next_ms - now_ms();
        // No wait is ever set for longer than that.
        const bool clock_went_back = left_ms > kLookAgainMsMax;
        if (wait_.waiting() && left_ms > 0 && !clock_went_back) return true;
        // What is delivered meanwhile is not idle before; what XCLAIM makes older is seen then.
        idle.next_ms = now_ms() + std::clamp<int64_t>(*claim_idle_ms_, 1, kLookAgainMsMax);
      }
      if (!ChooseIdle(group, &idle, budget)) return false;
      idle.chosen = true;
      LookForIdle(stream->source.get(), &idle);
    }
    for (;;) {
      ASSIGN_OR_RETURN(const bool all, idle.entries.Look(feed, budget));
      if (!all) return false;
      // Where not all fit, those that fit are not the longest idle ones: as many of these instead.
      const size_t fit = std::max<size_t>(idle.entries.looked_for(), 1);
      if (fit >= idle.found.size()) break;
      idle.found.erase(std::next(idle.found.begin(), static_cast<std::ptrdiff_t>(fit)),
                       idle.found.end());
      LookForIdle(stream->source.get(), &idle);
    }
    const Idle claimed = std::exchange(idle, Idle{});
    idle.next_ms = claimed.next_ms;
    RETURN_IF_ERROR(TakeIdle(feed, group, claimed, stream));
    return true;
  }

  // Entries that are gone from the feed are forgotten by the group on the way.
  Status TakeIdle(const Feed& feed, const FeedGroup& group, const Idle& idle, Stream* stream) {
    std::vector<FeedGroupChanges::Claimed> claimed;
    std::vector<FeedId> gone;
    ReplyWriter reply(&stream->entries, RespVersion::k2);
    const size_t bytes_before = stream->entries.size();
    for (const auto& [delivered_ms, id] : idle.found) {
      const auto pending = group.pending.find(id);
      // Another one may have got it, or acknowledged it, meanwhile.
      if (pending == group.pending.end() || !IsIdle(pending->second)) continue;
      // The reply was full before it came to this one, which stays as it is.
      if (!idle.entries.LookedFor(id)) continue;
      const std::string* entry = idle.entries.Find(id);
      if (entry == nullptr) {
        gone.push_back(id);
        continue;
      }
      reply.Raw(*entry);
      reply.Integer(now_ms() - pending->second.delivered_ms);
      reply.Unsigned(pending->second.times);
      claimed.push_back({id, now_ms(), pending->second.times + 1});
    }
    FeedGroupChanges changes;
    if (!claimed.empty()) {
      RETURN_IF_ERROR(AddConsumer(group, consumer_, &changes));
      changes.Claim(consumer_, claimed);
    }
    if (!gone.empty()) changes.Forget(gone);
    RETURN_IF_ERROR(Change(feed, *stream->source, changes));
    stream->count += claimed.size();
    bytes_ += stream->entries.size() - bytes_before;
    return Status::Ok();
  }

  Result<bool> ReadNews(const Feed& feed, const FeedGroup& group, Stream* stream,
                        const TaskBudget& budget) {
    CELLAR_ASSERT(stream->count < count_);
    uint64_t room = count_ - stream->count;
    // At the limit one entry is looked for nevertheless: without one there is nothing to refuse
    // (CheckRoom).
    if (!no_ack_) {
      const uint64_t free = kFeedPendingMax - std::min(kFeedPendingMax, group.pending.size());
      if (free == 0 && stream->count > 0) return true;
      room = std::clamp<uint64_t>(free, 1, room);  // is there anything at all?
    }
    const size_t bytes_before = stream->entries.size();
    FeedReplySink sink(&stream->entries, room, bytes_ - bytes_before, claim_idle_ms_.has_value());
    ASSIGN_OR_RETURN(const bool done,
                     stream->source->ReadBehind(feed, group.last, room, &sink, budget));
    if (sink.count() > 0) {
      if (!no_ack_) RETURN_IF_ERROR(CheckRoom(group));
      RETURN_IF_ERROR(Deliver(feed, group, *stream, sink.ids()));
    }
    stream->count += sink.count();
    bytes_ += stream->entries.size() - bytes_before;
    return done;
  }

  // Pending entries are memory that consumers make us keep: bounded by number, and by maxmemory.
  Status CheckRoom(const FeedGroup& group) const {
    if (group.pending.size() >= kFeedPendingMax) {
      return Status::Error(
          ErrorCode::kTooLarge,
          "a group has at most " + std::to_string(kFeedPendingMax) + " entries pending: XACK some");
    }
    const int64_t memory_max = host().services().config.maxmemory;
    if (memory_max <= 0 || host().memory_used_bytes() <= static_cast<uint64_t>(memory_max))
      return Status::Ok();
    return Status::Error(ErrorCode::kOom, "command not allowed when used memory > 'maxmemory'.");
  }

  Status Deliver(const Feed& feed, const FeedGroup& group, const Stream& stream,
                 const std::vector<FeedId>& ids) {
    CELLAR_ASSERT(!ids.empty());
    FeedGroupChanges changes;
    RETURN_IF_ERROR(AddConsumer(group, consumer_, &changes));
    // Nothing becomes pending: the group only moves on.
    if (no_ack_) {
      changes.SetLast(ids.back());
    } else {
      changes.Deliver(consumer_, now_ms(), ids);
    }
    return Change(feed, *stream.source, changes);
  }

  Result<bool> ReadHistory(const Feed& feed, const FeedGroup& group, Stream* stream,
                           const TaskBudget& budget) {
    const FeedConsumer* consumer = group.FindConsumer(consumer_);
    if (stream->looked) return true;
    if (!stream->looks) {
      std::vector<FeedId> ids;
      if (consumer != nullptr) {
        for (auto at = consumer->pending.upper_bound(stream->after);
             at != consumer->pending.end() && ids.size() < count_; ++at) {
          ids.push_back(*at);
        }
      }
      stream->history.Begin(stream->source->NewFinder(FeedDecoder::Fields::kYes), std::move(ids));
      stream->looks = true;
    }
    FoundEntries& history = stream->history;
    ASSIGN_OR_RETURN(const bool all, history.Look(feed, budget));
    if (!all) return false;
    stream->looked = true;
    FeedGroupChanges changes;
    RETURN_IF_ERROR(AddConsumer(group, consumer_, &changes));
    std::vector<FeedGroupChanges::Claimed> again;
    ReplyWriter reply(&stream->entries, RespVersion::k2);
    CELLAR_ASSERT(history.looked_for() <= history.ids().size());
    for (size_t i = 0; i < history.looked_for(); ++i) {
      const FeedId& id = history.ids()[i];
      const std::string* entry = history.Find(id);
      ++stream->count;
      if (entry == nullptr) {
        reply.Array(2);
        reply.Bulk(id.text());
        reply.NullArray();
        continue;
      }
      reply.Raw(*entry);
      const auto pending = group.pending.find(id);
      if (pending != group.pending.end() && pending->second.consumer == consumer)
        again.push_back({id, now_ms(), pending->second.times + 1});
    }
    bytes_ += stream->entries.size();
    if (!again.empty()) changes.Claim(consumer_, again);
    RETURN_IF_ERROR(Change(feed, *stream->source, changes));
    return true;
  }

  void Reply(ReplyWriter& reply, uint64_t told) const {
    if (reply.resp3()) {
      reply.Map(told);
    } else {
      reply.Array(told);
    }
    for (const Stream& stream : streams_) {
      if (!IsTold(stream)) continue;
      if (!reply.resp3()) reply.Array(2);
      reply.Bulk(stream.name.word);
      reply.Array(stream.count);
      reply.Raw(stream.entries.view());
    }
  }

  const std::string consumer_;
  const uint64_t count_;
  const bool no_ack_;
  const std::optional<int64_t> claim_idle_ms_;
  FeedWait wait_;
  std::vector<Stream> streams_;
  size_t current_{0};
  size_t bytes_{0};
  bool has_looked_{false};  // at all streams, once
};

// --- XCLAIM, XAUTOCLAIM

// What a claim comes to, before it is logged.
struct Claims {
  std::vector<FeedId> replied;  // in the order of the reply
  std::map<FeedId, FeedGroupChanges::Claimed> claimed;
  std::vector<FeedId> gone;

  FeedGroupChanges Changes(std::string_view consumer) const {
    FeedGroupChanges changes;
    std::vector<FeedGroupChanges::Claimed> all;
    for (const auto& [id, one] : claimed) all.push_back(one);
    if (!all.empty()) changes.Claim(consumer, all);
    if (!gone.empty()) changes.Forget(gone);
    return changes;
  }
};

void ReplyClaimed(ReplyWriter& reply, const Claims& claims, const FoundEntries& entries,
                  bool just_ids) {
  reply.Array(claims.replied.size());
  for (const FeedId& id : claims.replied) {
    if (just_ids) {
      reply.Bulk(id.text());
      continue;
    }
    const std::string* const entry = entries.Find(id);
    CELLAR_ASSERT(entry != nullptr);  // only what was found has been claimed
    reply.Raw(*entry);
  }
}

class ClaimingTask : public GroupTask {
 public:
  size_t reply_bytes() const final { return entries_.bytes(); }

 protected:
  // Of the feed args[1], the group args[2], the consumer args[3].
  ClaimingTask(CommandContext& ctx, std::unique_ptr<GroupSource> source, FeedDecoder::Fields fields)
      : GroupTask(ctx, ctx.args[2]),
        name_(NameOf(ctx, ctx.args[1])),
        consumer_(ctx.args[3]),
        fields_(fields),
        source_(std::move(source)) {}

  // Whose entries are to be looked for, ascending.
  virtual std::vector<FeedId> Wanted(const Feed& feed, const FeedGroup& group) = 0;
  // They have been looked for, as far as there is room for them in a reply.
  virtual Claims Claim(const Feed& feed, const FeedGroup& group) = 0;
  // What else changes.
  virtual void Extend(const FeedGroup&, FeedGroupChanges*) const {}
  virtual void Reply(ReplyWriter& reply, const Claims& claims) const = 0;

  const FoundEntries& entries() const { return entries_; }
  const GroupSource& source() const { return *source_; }
  size_t memory_bytes() const final { return source_->memory_bytes() + entries_.memory_bytes(); }

  Result<TaskProgress> Go(TaskContext& context) final {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&name_));
    ASSIGN_OR_RETURN(const FeedGroup* const group, FindGroup(*feed, *source_));
    if (group == nullptr) return NoGroupOfKey(name_.word, this->group(), "");
    if (!settled_) {
      ASSIGN_OR_RETURN(settled_, source_->SettleDropped(*feed, context.budget));
      if (!settled_) return source_->unfinished();
      entries_.Begin(source_->NewFinder(fields_), Wanted(*feed, *group));
    }
    ASSIGN_OR_RETURN(const bool all, entries_.Look(*feed, context.budget));
    if (!all) return source_->unfinished();
    if (IsHeldBack(context)) return TaskProgress::kWaiting;
    const Claims claims = Claim(*feed, *group);
    FeedGroupChanges changes;
    Extend(*group, &changes);
    if (!claims.claimed.empty()) RETURN_IF_ERROR(AddConsumer(*group, consumer_, &changes));
    changes.Append(claims.Changes(consumer_));
    RETURN_IF_ERROR(Change(*feed, *source_, changes));
    Reply(context.reply, claims);
    return Done(context);
  }

  void ForgetPlaces() final {
    source_->ForgetPlaces();
    entries_.ForgetPlaces();
  }

 private:
  FeedName name_;
  const std::string consumer_;
  const FeedDecoder::Fields fields_;
  const std::unique_ptr<GroupSource> source_;
  bool settled_{false};
  FoundEntries entries_;
};

FeedDecoder::Fields FieldsOf(bool just_ids) {
  return just_ids ? FeedDecoder::Fields::kNo : FeedDecoder::Fields::kYes;
}

class ClaimTask final : public ClaimingTask {
 public:
  ClaimTask(CommandContext& ctx, std::unique_ptr<GroupSource> source, ClaimRequest request)
      : ClaimingTask(ctx, std::move(source), FieldsOf(request.just_ids)),
        request_(std::move(request)) {}

 protected:
  void Extend(const FeedGroup& group, FeedGroupChanges* changes) const override {
    if (request_.last && *request_.last > group.last) changes->SetLast(*request_.last);
  }

  void Reply(ReplyWriter& reply, const Claims& claims) const override {
    ReplyClaimed(reply, claims, entries(), request_.just_ids);
  }

  // JUSTID needs none but those that nobody has.
  std::vector<FeedId> Wanted(const Feed&, const FeedGroup& group) override {
    std::set<FeedId> wanted;
    for (const FeedId& id : request_.ids) {
      const bool known = group.pending.contains(id);
      if (known ? !request_.just_ids : request_.force) wanted.insert(id);
    }
    return {wanted.begin(), wanted.end()};
  }

  Claims Claim(const Feed& feed, const FeedGroup& group) override {
    const int64_t now = now_ms();
    std::set<FeedId> gone;
    Claims claims;
    size_t fresh = 0;
    for (const FeedId& id : request_.ids) {
      // The reply had no room for it.
      if (!entries().LookedFor(id)) continue;
      const auto pending = group.pending.find(id);
      const auto again = claims.claimed.find(id);
      const bool is_known = pending != group.pending.end();
      // With JUSTID a pending entry is not read: it is there unless the feed has dropped it.
      const bool is_there = is_known && request_.just_ids ? !source().HasDropped(feed, id)
                                                          : entries().Find(id) != nullptr;
      if (!is_there) {
        if (is_known) gone.insert(id);
        continue;
      }
      FeedGroupChanges::Claimed one{id, now, 1};
      // Given twice: the second claim goes on from what the first one has made of it.
      if (again != claims.claimed.end()) {
        one = again->second;
      } else if (is_known) {
        one = {id, pending->second.delivered_ms, pending->second.times};
      } else if (!request_.force || group.pending.size() + fresh >= kFeedPendingMax) {
        // FORCE makes pending what was not. Beyond the limit it is passed over.
        continue;
      } else {
        ++fresh;
      }
      const bool has_owner = is_known || again != claims.claimed.end();
      if (has_owner && request_.idle_ms_min > 0 && now - one.delivered_ms < request_.idle_ms_min)
        continue;
      one.delivered_ms = request_.delivered_ms.value_or(now);
      if (request_.times) {
        one.times = *request_.times;
      } else if (!request_.just_ids) {
        ++one.times;
      }
      claims.claimed[id] = one;
      claims.replied.push_back(id);
    }
    claims.gone.assign(gone.begin(), gone.end());
    return claims;
  }

 private:
  const ClaimRequest request_;
};

class AutoClaimTask final : public ClaimingTask {
 public:
  AutoClaimTask(CommandContext& ctx, std::unique_ptr<GroupSource> source,
                const AutoClaimRequest& request)
      : ClaimingTask(ctx, std::move(source), FieldsOf(request.just_ids)), request_(request) {}

 protected:
  void Reply(ReplyWriter& reply, const Claims& claims) const override {
    reply.Array(3);
    reply.Bulk(next_.text());
    ReplyClaimed(reply, claims, entries(), request_.just_ids);
    reply.Array(claims.gone.size());
    for (const FeedId& id : claims.gone) reply.Bulk(id.text());
  }

  // As Redis does: ten entries are looked at for each that is wanted.
  std::vector<FeedId> Wanted(const Feed& feed, const FeedGroup& group) override {
    CELLAR_ASSERT(chosen_.empty());
    uint64_t attempts = request_.count * 10;
    uint64_t left = request_.count;
    auto at = request_.range.empty ? group.pending.end()
                                   : group.pending.upper_bound(request_.range.after);
    std::vector<FeedId> there;
    for (; at != group.pending.end() && attempts > 0 && left > 0; ++at, --attempts) {
      const auto& [id, pending] = *at;
      // What the feed has dropped is taken however short its idle time: the group is to forget it.
      const bool is_kept = !source().HasDropped(feed, id);
      if (is_kept && !IsIdle(pending)) continue;
      --left;
      chosen_.push_back(id);
      if (is_kept && !request_.just_ids) there.push_back(id);
    }
    next_ = at == group.pending.end() ? FeedId{} : at->first;
    return there;
  }

  Claims Claim(const Feed& feed, const FeedGroup& group) override {
    Claims claims;
    for (const FeedId& id : chosen_) {
      const bool is_dropped = source().HasDropped(feed, id);
      if (!request_.just_ids && !is_dropped && !entries().LookedFor(id)) {
        next_ = id;  // the reply is full
        break;
      }
      const auto pending = group.pending.find(id);
      if (pending == group.pending.end()) continue;
      if (is_dropped || (!request_.just_ids && entries().Find(id) == nullptr)) {
        claims.gone.push_back(id);
        continue;
      }
      if (!IsIdle(pending->second)) continue;
      const uint64_t times = pending->second.times + (request_.just_ids ? 0 : 1);
      claims.claimed[id] = {id, now_ms(), times};
      claims.replied.push_back(id);
    }
    return claims;
  }

 private:
  bool IsIdle(const FeedPending& pending) const {
    return request_.idle_ms_min <= 0 || now_ms() - pending.delivered_ms >= request_.idle_ms_min;
  }

  const AutoClaimRequest request_;
  std::vector<FeedId> chosen_;
  FeedId next_;
};

// --- XGROUP CREATE, SETID

class GroupStartTask final : public GroupTask {
 public:
  GroupStartTask(CommandContext& ctx, std::unique_ptr<GroupSource> source, GroupStart start,
                 const std::optional<FeedId>& id)
      : GroupTask(ctx, ctx.args[3]),
        name_(NameOf(ctx, ctx.args[2])),
        source_(std::move(source)),
        start_(start),
        id_(id) {}

  size_t memory_bytes() const override { return source_->memory_bytes(); }

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&name_));
    ASSIGN_OR_RETURN(const bool ready, Prepare(*feed, context.budget));
    if (!ready) return source_->unfinished();
    if (IsHeldBack(context)) return TaskProgress::kWaiting;
    ASSIGN_OR_RETURN(const FeedGroup* const group, FindGroup(*feed, *source_));
    FeedId last = id_ ? *id_ : last_;
    if (last == FeedId{}) last = source_->DroppedOf(*feed);  // from the oldest that is kept
    FeedGroupChanges changes;
    // Asked only now: several steps may lie behind it, in which others have changed the group.
    if (start_ == GroupStart::kCreate) {
      if (group != nullptr)
        return Status::Error(ErrorCode::kBusyGroup, "Consumer Group name already exists");
      RETURN_IF_ERROR(CheckNewGroup(*feed));
      changes.Create(last);
    } else {
      if (group == nullptr) return NoGroup(name_.word, this->group());
      changes.SetLast(last);
    }
    RETURN_IF_ERROR(Change(*feed, *source_, changes));
    NotifyTable(host(), kNotifyTable,
                start_ == GroupStart::kCreate ? "xgroup-create" : "xgroup-setid", feed->keyspace,
                feed->name);
    context.reply.Ok();
    return Done(context);
  }

  void ForgetPlaces() override { source_->ForgetPlaces(); }

 private:
  Result<bool> Prepare(const Feed& feed, const TaskBudget& budget) {
    RETURN_IF_ERROR(source_->CheckHere(feed));
    if (!settled_) {
      ASSIGN_OR_RETURN(settled_, source_->SettleDropped(feed, budget));
      if (!settled_) return false;
    }
    if (id_) return true;
    return source_->FindLast(feed, &last_, budget);
  }

  Status CheckNewGroup(const Feed& feed) const {
    const uint64_t id = source_->GroupsOf(feed);
    if (id != feed.id) RETURN_IF_ERROR(CatalogChanges(host().store()).CheckWholeGroups());
    const FeedGroups::OfFeed* groups = host().store().engine().feeds().groups().Of(id);
    if (groups != nullptr && groups->size() >= kFeedGroupsMax) {
      return Status::Error(ErrorCode::kTooLarge,
                           "a feed has at most " + std::to_string(kFeedGroupsMax) + " groups");
    }
    return CheckGroupName(group());
  }

  FeedName name_;
  const std::unique_ptr<GroupSource> source_;
  const GroupStart start_;
  const std::optional<FeedId> id_;
  FeedId last_;
  bool settled_{false};
};

}  // namespace

Status CheckGroupName(std::string_view name) {
  if (name.size() <= kFeedGroupNameBytesMax) return Status::Ok();
  return Status::Error(ErrorCode::kTooLarge, "the name of a group or a consumer has at most " +
                                                 std::to_string(kFeedGroupNameBytesMax) + " bytes");
}

Status CheckNewConsumer(const FeedGroup& group, std::string_view consumer) {
  RETURN_IF_ERROR(CheckGroupName(consumer));
  if (group.consumers.size() < kFeedConsumersMax) return Status::Ok();
  return Status::Error(ErrorCode::kTooLarge,
                       "a group has at most " + std::to_string(kFeedConsumersMax) + " consumers");
}

Status NoGroupOfKey(std::string_view feed, std::string_view group, std::string_view more) {
  return Status::Error(ErrorCode::kNoGroup, "No such key '" + std::string(feed) +
                                                "' or consumer group '" + std::string(group) + "'" +
                                                std::string(more));
}

Status NoGroup(std::string_view feed, std::string_view group) {
  return Status::Error(ErrorCode::kNoGroup, "No such consumer group '" + std::string(group) +
                                                "' for key name '" + std::string(feed) + "'");
}

void RunGroupRead(CommandContext& ctx, const GroupReadRequest& request, OpenGroupSource open) {
  std::vector<GroupReadTask::From> from;
  std::vector<const Feed*> feeds;
  for (const GroupReadRequest::Stream& stream : request.streams) {
    ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, stream.name));
    feeds.push_back(feed);
    GroupReadTask::From& one = from.emplace_back();
    ASSIGN_OR_REPLY(ctx, one.source, open(ctx, *feed, stream.name));
    REPLY_IF_ERROR(ctx, one.source->CheckHere(*feed));
    const uint64_t groups = one.source->GroupsOf(*feed);
    if (ctx.store().engine().feeds().groups().Find(groups, request.group) == nullptr) {
      return ctx.Fail(NoGroupOfKey(stream.name, request.group, " in XREADGROUP with GROUP option"));
    }
    one.name = stream.name;
    one.news = stream.id == ">";
    if (!one.news) {
      ASSIGN_OR_REPLY(ctx, const FeedId after, ParseHistoryId(stream.id));
      one.after = one.source->IdOf(after);
    }
  }
  REPLY_IF_ERROR(ctx, CheckNamedSeldom(std::move(feeds)));
  ctx.Continue(std::make_unique<GroupReadTask>(ctx, request, std::move(from)));
}

void RunClaim(CommandContext& ctx, std::unique_ptr<GroupSource> source, ClaimRequest request) {
  for (FeedId& id : request.ids) id = source->IdOf(id);
  ctx.Continue(std::make_unique<ClaimTask>(ctx, std::move(source), std::move(request)));
}

void RunAutoClaim(CommandContext& ctx, std::unique_ptr<GroupSource> source,
                  AutoClaimRequest request) {
  request.range.after = source->IdOf(request.range.after);
  ctx.Continue(std::make_unique<AutoClaimTask>(ctx, std::move(source), request));
}

void RunGroupStart(CommandContext& ctx, GroupStart start, OpenGroupSource open) {
  REPLY_IF_ERROR(ctx, CheckGroupOptions(ctx.args.subspan(5), start == GroupStart::kCreate));
  ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, ctx.args[2]));
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<GroupSource> source, open(ctx, *feed, ctx.args[2]));
  const uint64_t groups = source->GroupsOf(*feed);
  if (start == GroupStart::kSetId) {
    REPLY_IF_ERROR(ctx, source->CheckHere(*feed));
    if (ctx.store().engine().feeds().groups().Find(groups, ctx.args[3]) == nullptr)
      return ctx.Fail(NoGroup(ctx.args[2], ctx.args[3]));
  }
  std::optional<FeedId> id;
  if (ctx.args[4] != "$") {
    ASSIGN_OR_REPLY(ctx, const FeedId named, ParseFeedId(ctx.args[4], 0));
    id = groups == feed->id ? OwnId(ctx, named) : named;
  }
  ctx.Continue(std::make_unique<GroupStartTask>(ctx, std::move(source), start, id));
}

}  // namespace cellar
