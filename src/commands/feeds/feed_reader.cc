// See feed_reader.h.
#include "commands/feeds/feed_reader.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/text/quote.h"
#include "commands/acl/acl_check.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/clients/acl_sessions.h"
#include "commands/feeds/feed_access.h"
#include "engine/schema/column_set.h"
#include "store/store.h"

namespace cellar {

void AppendFeedEntry(ReplyWriter& reply, const FeedEntry& entry, uint64_t more) {
  reply.Array(2 + more);
  reply.Bulk(entry.id.text());
  reply.Array(uint64_t{2} * entry.pairs);
  reply.Raw(entry.fields);
}

void ReplyStreamCounts(ReplyWriter& reply, const FeedCounts& counts, FeedId first) {
  reply.Bulk("length");
  reply.Unsigned(counts.length);
  reply.Bulk("radix-tree-keys");
  reply.Integer(1);
  reply.Bulk("radix-tree-nodes");
  reply.Integer(1);
  reply.Bulk("last-generated-id");
  reply.Bulk(counts.last.text());
  reply.Bulk("max-deleted-entry-id");
  reply.Bulk(counts.dropped.text());
  reply.Bulk("entries-added");
  reply.Unsigned(counts.told);
  reply.Bulk("recorded-first-entry-id");
  reply.Bulk(first.text());
}

bool FeedReplySink::OnEntry(const FeedEntry& entry) {
  CELLAR_ASSERT(count_left_ > 0);
  CELLAR_ASSERT(!full_);
  ReplyWriter reply(to_, RespVersion::k2);  // entries are the same in both
  AppendFeedEntry(reply, entry, tells_delivery_ ? 2 : 0);
  if (tells_delivery_) {
    reply.Integer(0);
    reply.Integer(0);
  }
  ids_.push_back(entry.id);
  // The entry that passes the limit belongs to the reply: one that is larger than the limit must
  // come out at some time, too.
  full_ = --count_left_ == 0 || bytes_before_ + to_->size() >= kFeedReplyBytesMax;
  return !full_;
}

FeedWait::FeedWait(const CommandContext& ctx, const std::optional<int64_t>& block_ms)
    : blocks_(block_ms.has_value() && !ctx.session.exec_running) {
  const int64_t ms = block_ms.value_or(0);
  deadline_micros_ =
      ms == 0 ? std::numeric_limits<int64_t>::max() : ctx.now_micros + ms * kMicrosPerMs;
}

bool FeedWait::IsOver(const TaskContext& context, int64_t by_micros) const {
  return waiting_ && (unblocked_ || context.now_micros - by_micros >= deadline_micros_);
}

bool FeedWait::Unblock(UnblockReason reason) {
  if (!waiting_) return false;
  unblocked_ = reason;
  return true;
}

bool FeedWait::RepliesError(TaskContext& context) const {
  if (unblocked_ != UnblockReason::kError) return false;
  context.Fail(kUnblockedError);
  return true;
}

bool FeedWait::RepliesNothing(TaskContext& context) {
  const bool waits = blocks_ && !unblocked_ && context.now_micros < deadline_micros_ &&
                     !context.budget.unlimited();
  if (waits) {
    waiting_ = true;
  } else {
    context.reply.NullArray();
  }
  return !waits;
}

FeedTask::FeedTask(CommandContext& ctx)
    : host_(ctx.host), session_id_(ctx.session.id), command_(ctx.command) {
  // What access control may ask of a command's words.
  for (const std::string_view word : ctx.args.first(std::min<size_t>(ctx.args.size(), 2)))
    words_.emplace_back(word);
}

FeedLog& FeedTask::feed_log() const { return host_.store().feed_log(); }

TaskProgress FeedTask::Step(TaskContext& context) {
  // That there is such a feed, or none any more, is what the schema says.
  context.depends_on = host_.store().schema_lsn();
  if (log_number_ != feed_log().number()) {  // all has been loaded again
    log_number_ = feed_log().number();
    ForgetPlaces();
  }
  if (const Status updated = host_.store().UpdateFeedLog(); !updated.ok()) {
    context.Fail(updated);
    return TaskProgress::kDone;
  }
  if (!feed_log().has_log()) {  // of a follower: a leader has no feeds then
    context.Fail("ERR a feed is read from the log, and there is none (appendonly no)");
    return TaskProgress::kDone;
  }
  const Result<TaskProgress> progress = Go(context);
  if (progress.ok()) return *progress;
  context.Fail(progress.status());
  return TaskProgress::kDone;
}

FeedName FeedTask::NameOf(const CommandContext& ctx, std::string_view word) {
  const TableName name = SplitTableName(ctx.session.keyspace, word);
  return {std::string(word), std::string(name.keyspace), std::string(name.table)};
}

Result<const Feed*> FeedTask::Find(FeedName* name) const {
  const Feed* feed = FeedNamed(host_.store(), name->keyspace, name->name);
  // One that was dropped and made anew has another id: for this reader it is gone.
  if (feed == nullptr || (name->id != 0 && name->id != feed->id)) {
    return Status::Error(ErrorCode::kNoFeed,
                         "no feed " + Quote(name->name) + " in keyspace " + Quote(name->keyspace));
  }
  name->id = feed->id;
  // Rights may have changed since the last step, so they are asked with what is kept of the words.
  Session* session = host_.FindSession(session_id_);
  if (session == nullptr || !session->restricted) return feed;
  CELLAR_ASSERT(session->user != nullptr);
  const std::vector<std::string_view> words(words_.begin(), words_.end());
  const AclVerdict verdict = CheckCommand(*session->user, command_, words, session->keyspace);
  const CommandRights rights(*session->user, verdict.selectors);
  if (verdict.denied == Denied::kNothing && MayReadFeed(&rights, *feed)) return feed;
  LogDenied(host_, *session, Denied::kKey, name->name, session->user_name);
  return NoPermission();
}

Result<bool> SettleFeed(FeedLog& log, const Feed& feed, const TaskBudget& budget) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool settled, log.Settle(feed));
    if (settled || budget.Spent()) return settled;
  }
}

Result<bool> FeedTask::Settle(const Feed& feed, const TaskBudget& budget) const {
  return SettleFeed(feed_log(), feed, budget);
}

Result<const Feed*> FeedTask::FindSettled(FeedName* name, const TaskBudget& budget) const {
  ASSIGN_OR_RETURN(const Feed* const feed, Find(name));
  if (!name->settled) {
    ASSIGN_OR_RETURN(name->settled, Settle(*feed, budget));
  }
  return name->settled ? feed : nullptr;
}

Status FeedTask::CheckKept(const Feed& feed, const FeedName& name, const FeedId& after) const {
  return CheckFeedKept(feed_log(), feed, name.word, after);
}

Status CheckFeedKept(const FeedLog& log, const Feed& feed, std::string_view word,
                     const FeedId& after) {
  const FeedId dropped = log.DroppedOf(feed);
  if (after >= dropped) return Status::Ok();
  return Status::Error(ErrorCode::kTrimmed,
                       "feed " + Quote(word) + " has dropped entries up to " + dropped.text());
}

}  // namespace cellar
