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
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "store/store.h"

namespace cellar {
namespace {

// The group by its name, what changes in it, and a consumer that comes into being by reading.
class GroupTask : public FeedTask {
 protected:
  GroupTask(CommandContext& ctx, std::string_view group) : FeedTask(ctx), group_(group) {}

  const std::string& group() const { return group_; }
  const FeedGroup* FindGroup(const Feed& feed) const {
    return host().store().engine().feeds().groups().Find(feed.id, group_);
  }
  int64_t now_ms() const { return host().store().now_micros() / kMicrosPerMs; }

  // Logs the changes, if there are any.
  Status Change(const Feed& feed, const FeedGroupChanges& changes) {
    CELLAR_ASSERT(!adds_consumer_ || !changes.empty());
    if (changes.empty()) return Status::Ok();
    RETURN_IF_ERROR(host().store().ChangeFeedGroup(feed.id, group_, changes));
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
  void Begin(std::vector<FeedId> ids, uint64_t more = 0) {
    CELLAR_DEBUG_ASSERT(std::is_sorted(ids.begin(), ids.end()));
    CELLAR_ASSERT(next_ == 0);
    CELLAR_ASSERT(found_.empty());
    ids_ = std::move(ids);
    more_ = more;
  }
  // True: all has been looked for, or there are enough.
  Result<bool> Look(FeedLog& log, const Feed& feed, FeedDecoder::Fields fields,
                    const TaskBudget& budget) {
    while (!done_) {
      ASSIGN_OR_RETURN(done_, log.Find(feed, ids_, fields, &next_, &scan_, this));
      if (!done_ && budget.Spent()) return false;
    }
    return true;
  }
  void ForgetPlaces() { scan_.place = {}; }

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

 private:
  std::vector<FeedId> ids_;
  uint64_t more_{0};
  size_t next_{0};
  bool done_{false};
  FeedScan scan_;
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
  };

  GroupReadTask(CommandContext& ctx, const GroupReadRequest& request, const std::vector<From>& from)
      : GroupTask(ctx, request.group),
        consumer_(request.consumer),
        count_(request.count),
        no_ack_(request.no_ack),
        claim_idle_ms_(request.claim_idle_ms),
        wait_(ctx, request.block_ms) {
    for (const From& one : from) {
      Stream& added = streams_.emplace_back();
      added.name = NameOf(ctx, one.name);
      added.news = one.news;
      added.after = one.after;
    }
  }

  size_t reply_bytes() const override { return bytes_; }
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
    // The dispatcher held the command back while writes were paused; one that waits must ask
    // itself.
    const bool paused = wait_.waiting() && host().writes_paused();
    for (; !paused && current_ < streams_.size(); ++current_) {
      if (bytes_ >= kFeedReplyBytesMax) break;
      ASSIGN_OR_RETURN(const bool read, ReadStream(&streams_[current_], context.budget));
      if (!read) return TaskProgress::kMore;
    }
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
      stream.scan.place = {};
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
    FeedId after;  // of what is pending with him; of what is new: the group's last one, as seen
    Phase phase{Phase::kSettle};
    FeedScan scan;
    FoundEntries history;
    OutputBuffer entries;
    uint64_t count{0};
    bool looked{false};  // at what is pending
    Idle idle;
  };

  static bool IsTold(const Stream& stream) { return stream.count > 0 || stream.looked; }

  Result<const FeedGroup*> GroupOf(const Feed& feed, const Stream& stream) const {
    const FeedGroup* group = FindGroup(feed);
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
      ASSIGN_OR_RETURN(const bool settled, Settle(*feed, budget));
      if (!settled) return false;
      stream->phase = wait_.waiting() ? Phase::kLook : Phase::kRead;
    }
    if (!stream->news) return ReadHistory(*feed, *group, stream, budget);
    // Entries that the group has not read may be gone. It says so and does not pass over them.
    RETURN_IF_ERROR(CheckKept(*feed, stream->name, group->last));
    if (claim_idle_ms_ && !stream->idle.done) {
      ASSIGN_OR_RETURN(stream->idle.done, ClaimIdle(*feed, *group, stream, budget));
      if (!stream->idle.done) return false;
      if (stream->count == count_ || bytes_ >= kFeedReplyBytesMax) return true;
      // There is something to reply, so it does not wait and reads without a look before.
      if (stream->count > 0) stream->phase = Phase::kRead;
    }
    while (stream->phase == Phase::kLook) {
      ASSIGN_OR_RETURN(const FeedLog::Behind behind, feed_log().LookBehind(*feed, group->last));
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

  static void LookForIdle(Idle* idle) {
    std::vector<FeedId> ids;
    for (const auto& [delivered_ms, id] : idle->found) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    idle->entries = FoundEntries();
    idle->entries.Begin(std::move(ids), 2);
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
      LookForIdle(&idle);
    }
    for (;;) {
      ASSIGN_OR_RETURN(const bool all,
                       idle.entries.Look(feed_log(), feed, FeedDecoder::Fields::kYes, budget));
      if (!all) return false;
      // Where not all fit, those that fit are not the longest idle ones: as many of these instead.
      const size_t fit = std::max<size_t>(idle.entries.looked_for(), 1);
      if (fit >= idle.found.size()) break;
      idle.found.erase(std::next(idle.found.begin(), static_cast<std::ptrdiff_t>(fit)),
                       idle.found.end());
      LookForIdle(&idle);
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
    RETURN_IF_ERROR(Change(feed, changes));
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
    // Others may have read meanwhile, or somebody has set the group back.
    if (group.last < stream->after) stream->scan.place = {};
    stream->after = group.last;
    stream->scan.after = group.last;
    const size_t bytes_before = stream->entries.size();
    FeedReplySink sink(&stream->entries, room, bytes_ - bytes_before, claim_idle_ms_.has_value());
    bool done = false;
    while (!done) {
      ASSIGN_OR_RETURN(done, feed_log().Read(feed, &stream->scan, &sink));
      if (!done && budget.Spent()) break;
    }
    if (sink.count() > 0) {
      if (!no_ack_) RETURN_IF_ERROR(CheckRoom(group));
      RETURN_IF_ERROR(Deliver(feed, group, sink.ids()));
      stream->after = sink.last();
    }
    stream->count += sink.count();
    bytes_ += stream->entries.size() - bytes_before;
    if (done && !sink.full()) feed_log().NoteQuiet(feed, stream->after, stream->scan);
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

  Status Deliver(const Feed& feed, const FeedGroup& group, const std::vector<FeedId>& ids) {
    CELLAR_ASSERT(!ids.empty());
    FeedGroupChanges changes;
    RETURN_IF_ERROR(AddConsumer(group, consumer_, &changes));
    // Nothing becomes pending: the group only moves on.
    if (no_ack_) {
      changes.SetLast(ids.back());
    } else {
      changes.Deliver(consumer_, now_ms(), ids);
    }
    return Change(feed, changes);
  }

  Result<bool> ReadHistory(const Feed& feed, const FeedGroup& group, Stream* stream,
                           const TaskBudget& budget) {
    const FeedConsumer* consumer = group.FindConsumer(consumer_);
    if (!stream->looked) {
      std::vector<FeedId> ids;
      if (consumer != nullptr) {
        for (auto at = consumer->pending.upper_bound(stream->after);
             at != consumer->pending.end() && ids.size() < count_; ++at) {
          ids.push_back(*at);
        }
      }
      stream->history.Begin(std::move(ids));
      stream->looked = true;
    }
    FoundEntries& history = stream->history;
    ASSIGN_OR_RETURN(const bool all,
                     history.Look(feed_log(), feed, FeedDecoder::Fields::kYes, budget));
    if (!all) return false;
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
    RETURN_IF_ERROR(Change(feed, changes));
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
  ClaimingTask(CommandContext& ctx, FeedDecoder::Fields fields)
      : GroupTask(ctx, ctx.args[2]),
        name_(NameOf(ctx, ctx.args[1])),
        consumer_(ctx.args[3]),
        fields_(fields) {}

  // Whose entries are to be looked for, ascending.
  virtual std::vector<FeedId> Wanted(const Feed& feed, const FeedGroup& group) = 0;
  // They have been looked for, as far as there is room for them in a reply.
  virtual Claims Claim(const Feed& feed, const FeedGroup& group) = 0;
  // What else changes.
  virtual void Extend(const FeedGroup&, FeedGroupChanges*) const {}
  virtual void Reply(ReplyWriter& reply, const Claims& claims) const = 0;

  const FoundEntries& entries() const { return entries_; }

  Result<TaskProgress> Go(TaskContext& context) final {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&name_));
    const FeedGroup* const group = FindGroup(*feed);
    if (group == nullptr) return NoGroupOfKey(name_.word, this->group(), "");
    if (!settled_) {
      ASSIGN_OR_RETURN(settled_, Settle(*feed, context.budget));
      if (!settled_) return TaskProgress::kMore;
      entries_.Begin(Wanted(*feed, *group));
    }
    ASSIGN_OR_RETURN(const bool all, entries_.Look(feed_log(), *feed, fields_, context.budget));
    if (!all) return TaskProgress::kMore;
    const Claims claims = Claim(*feed, *group);
    FeedGroupChanges changes;
    Extend(*group, &changes);
    if (!claims.claimed.empty()) RETURN_IF_ERROR(AddConsumer(*group, consumer_, &changes));
    changes.Append(claims.Changes(consumer_));
    RETURN_IF_ERROR(Change(*feed, changes));
    Reply(context.reply, claims);
    return Done(context);
  }

  void ForgetPlaces() final { entries_.ForgetPlaces(); }

 private:
  FeedName name_;
  const std::string consumer_;
  const FeedDecoder::Fields fields_;
  bool settled_{false};
  FoundEntries entries_;
};

FeedDecoder::Fields FieldsOf(bool just_ids) {
  return just_ids ? FeedDecoder::Fields::kNo : FeedDecoder::Fields::kYes;
}

class ClaimTask final : public ClaimingTask {
 public:
  ClaimTask(CommandContext& ctx, ClaimRequest request)
      : ClaimingTask(ctx, FieldsOf(request.just_ids)), request_(std::move(request)) {}

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
    const FeedId dropped = feed_log().DroppedOf(feed);
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
      const bool is_there =
          is_known && request_.just_ids ? id > dropped : entries().Find(id) != nullptr;
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
  AutoClaimTask(CommandContext& ctx, const AutoClaimRequest& request)
      : ClaimingTask(ctx, FieldsOf(request.just_ids)), request_(request) {}

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
    const FeedId dropped = feed_log().DroppedOf(feed);
    uint64_t attempts = request_.count * 10;
    uint64_t left = request_.count;
    auto at = request_.range.empty ? group.pending.end()
                                   : group.pending.upper_bound(request_.range.after);
    std::vector<FeedId> there;
    for (; at != group.pending.end() && attempts > 0 && left > 0; ++at, --attempts) {
      const auto& [id, pending] = *at;
      // What the feed has dropped is taken however short its idle time: the group is to forget it.
      if (id > dropped && !IsIdle(pending)) continue;
      --left;
      chosen_.push_back(id);
      if (id > dropped && !request_.just_ids) there.push_back(id);
    }
    next_ = at == group.pending.end() ? FeedId{} : at->first;
    return there;
  }

  Claims Claim(const Feed& feed, const FeedGroup& group) override {
    const FeedId dropped = feed_log().DroppedOf(feed);
    Claims claims;
    for (const FeedId& id : chosen_) {
      if (!request_.just_ids && id > dropped && !entries().LookedFor(id)) {
        next_ = id;  // the reply is full
        break;
      }
      const auto pending = group.pending.find(id);
      if (pending == group.pending.end()) continue;
      if (id <= dropped || (!request_.just_ids && entries().Find(id) == nullptr)) {
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
  GroupStartTask(CommandContext& ctx, GroupStart start, const std::optional<FeedId>& id)
      : GroupTask(ctx, ctx.args[3]), name_(NameOf(ctx, ctx.args[2])), start_(start), id_(id) {}

 protected:
  Result<TaskProgress> Go(TaskContext& context) override {
    ASSIGN_OR_RETURN(const Feed* const feed, Find(&name_));
    ASSIGN_OR_RETURN(const bool ready, Prepare(*feed, context.budget));
    if (!ready) return TaskProgress::kMore;
    const FeedGroup* const group = FindGroup(*feed);
    const FeedId dropped = feed_log().DroppedOf(*feed);
    FeedId last = id_ ? *id_ : feed_log().CountsOf(*feed).last;
    if (last == FeedId{}) last = dropped;  // from the oldest that is kept
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
    RETURN_IF_ERROR(Change(*feed, changes));
    NotifyTable(host(), kNotifyTable,
                start_ == GroupStart::kCreate ? "xgroup-create" : "xgroup-setid", feed->keyspace,
                feed->name);
    context.reply.Ok();
    return Done(context);
  }

  void ForgetPlaces() override {}

 private:
  // `$` is the last entry, so all of them have to be seen.
  Result<bool> Prepare(const Feed& feed, const TaskBudget& budget) {
    if (!settled_) {
      ASSIGN_OR_RETURN(settled_, Settle(feed, budget));
      if (!settled_) return false;
    }
    while (!id_) {
      ASSIGN_OR_RETURN(const bool counted, feed_log().Count(feed));
      if (counted) break;
      if (budget.Spent()) return false;
    }
    return true;
  }

  Status CheckNewGroup(const Feed& feed) const {
    const FeedGroups::OfFeed* groups = host().store().engine().feeds().groups().Of(feed.id);
    if (groups != nullptr && groups->size() >= kFeedGroupsMax) {
      return Status::Error(ErrorCode::kTooLarge,
                           "a feed has at most " + std::to_string(kFeedGroupsMax) + " groups");
    }
    return CheckGroupName(group());
  }

  FeedName name_;
  const GroupStart start_;
  const std::optional<FeedId> id_;
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

void RunGroupRead(CommandContext& ctx, const GroupReadRequest& request) {
  std::vector<GroupReadTask::From> from;
  std::vector<const Feed*> feeds;
  for (const GroupReadRequest::Stream& stream : request.streams) {
    ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, stream.name));
    feeds.push_back(feed);
    if (ctx.store().engine().feeds().groups().Find(feed->id, request.group) == nullptr) {
      return ctx.Fail(NoGroupOfKey(stream.name, request.group, " in XREADGROUP with GROUP option"));
    }
    GroupReadTask::From& one = from.emplace_back();
    one.name = stream.name;
    one.news = stream.id == ">";
    if (!one.news) {
      ASSIGN_OR_REPLY(ctx, one.after, ParseHistoryId(stream.id));
    }
  }
  REPLY_IF_ERROR(ctx, CheckNamedSeldom(std::move(feeds)));
  ctx.Continue(std::make_unique<GroupReadTask>(ctx, request, from));
}

void RunClaim(CommandContext& ctx, ClaimRequest request) {
  ctx.Continue(std::make_unique<ClaimTask>(ctx, std::move(request)));
}

void RunAutoClaim(CommandContext& ctx, const AutoClaimRequest& request) {
  ctx.Continue(std::make_unique<AutoClaimTask>(ctx, request));
}

void RunGroupStart(CommandContext& ctx, GroupStart start) {
  REPLY_IF_ERROR(ctx, CheckGroupOptions(ctx.args.subspan(5), start == GroupStart::kCreate));
  ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, ctx.args[2]));
  if (start == GroupStart::kSetId &&
      ctx.store().engine().feeds().groups().Find(feed->id, ctx.args[3]) == nullptr) {
    return ctx.Fail(NoGroup(ctx.args[2], ctx.args[3]));
  }
  std::optional<FeedId> id;
  if (ctx.args[4] != "$") {
    ASSIGN_OR_REPLY(ctx, id, ParseFeedId(ctx.args[4], 0));
  }
  ctx.Continue(std::make_unique<GroupStartTask>(ctx, start, id));
}

}  // namespace cellar
