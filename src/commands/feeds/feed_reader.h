// What tasks that read feeds have in common: the feed is found again at each step, and whether the
// user may still read it; entries are written as they stand in a reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "commands/session/command_context.h"
#include "commands/session/task.h"
#include "store/history/feed_log.h"

namespace cellar {

// Of the entries of one reply, about.
inline constexpr size_t kFeedReplyBytesMax{1 << 20};

// `more`: so many elements of its own follow, which the caller writes.
void AppendFeedEntry(ReplyWriter& reply, const FeedEntry& entry, uint64_t more = 0);

// What XINFO STREAM begins with, with and without FULL: the first members of Redis' map. What it
// tells of its own trees is 1: there is one log.
inline constexpr uint64_t kStreamCounts{7};
void ReplyStreamCounts(ReplyWriter& reply, const FeedCounts& counts, FeedId first);

// Writes entries in the form of a reply, until there are enough.
class FeedReplySink final : public FeedSink {
 public:
  // `tells_delivery`: behind each entry stands that it was never delivered, as XREADGROUP CLAIM has
  // it: 0 milliseconds ago, 0 times.
  FeedReplySink(OutputBuffer* to, uint64_t count_left, size_t bytes_before,
                bool tells_delivery = false)
      : to_(to),
        count_left_(count_left),
        bytes_before_(bytes_before),
        tells_delivery_(tells_delivery) {}

  bool OnEntry(const FeedEntry& entry) override;
  uint64_t count() const { return ids_.size(); }
  bool full() const { return full_; }
  // REQUIRES: count() > 0.
  const FeedId& last() const {
    CELLAR_ASSERT(!ids_.empty());
    return ids_.back();
  }
  const std::vector<FeedId>& ids() const { return ids_; }

 private:
  OutputBuffer* const to_;
  uint64_t count_left_;
  const size_t bytes_before_;
  const bool tells_delivery_;
  bool full_{false};
  std::vector<FeedId> ids_;
};

// BLOCK of XREAD and XREADGROUP: until when to wait for entries, and whether CLIENT UNBLOCK ended
// that.
class FeedWait {
 public:
  // Without `block_ms`, or in EXEC: not at all. 0: for ever.
  FeedWait(const CommandContext& ctx, const std::optional<int64_t>& block_ms);

  bool blocks() const { return blocks_; }
  // There were no entries so far, and it waits for some.
  bool waiting() const { return waiting_; }
  // Who is asked has not answered yet: it waits, as if there were no entries.
  void BeginWaiting() { waiting_ = blocks_; }
  // Its time is over while it waited, by so much.
  bool IsOver(const TaskContext& context, int64_t by_micros) const;
  // False if it does not wait.
  bool Unblock(UnblockReason reason);
  // Replies the error that CLIENT UNBLOCK has asked for, if it has.
  bool RepliesError(TaskContext& context) const;
  // There are no entries: replies that, or waits from now on.
  bool RepliesNothing(TaskContext& context);

 private:
  bool blocks_{false};
  int64_t deadline_micros_{0};
  std::optional<UnblockReason> unblocked_{};
  bool waiting_{false};
};

// A feed that a task reads: found again at each step.
struct FeedName {
  std::string word;  // as the client wrote it
  std::string keyspace;
  std::string name;
  uint64_t id{0};       // once it has been found
  bool settled{false};  // it is known what the feed has dropped
};

// True: it is known what the feed has dropped; nothing of it is told.
Result<bool> SettleFeed(FeedLog& log, const Feed& feed, const TaskBudget& budget);

// TRIMMED: entries behind `after` have been dropped.
Status CheckFeedKept(const FeedLog& log, const Feed& feed, std::string_view word,
                     const FeedId& after);

class FeedTask : public Task {
 public:
  explicit FeedTask(CommandContext& ctx);

  TaskProgress Step(TaskContext& context) final;

 protected:
  // An error is the whole reply.
  virtual Result<TaskProgress> Go(TaskContext& context) = 0;
  virtual void ForgetPlaces() = 0;

  FeedLog& feed_log() const;
  Host& host() const { return host_; }

  static FeedName NameOf(const CommandContext& ctx, std::string_view word);
  Result<const Feed*> Find(FeedName* name) const;
  // SettleFeed.
  Result<bool> Settle(const Feed& feed, const TaskBudget& budget) const;
  // The feed once it is settled; null: another step goes on.
  Result<const Feed*> FindSettled(FeedName* name, const TaskBudget& budget) const;
  // TRIMMED: entries behind `after` have been dropped.
  Status CheckKept(const Feed& feed, const FeedName& name, const FeedId& after) const;

 private:
  Host& host_;
  const uint64_t session_id_;
  const CommandEntry& command_;
  std::vector<std::string> words_;
  uint64_t log_number_{0};
};

}  // namespace cellar
