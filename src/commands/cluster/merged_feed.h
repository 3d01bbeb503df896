// MergedFeed: entries of one feed of all sets of a cluster, in the order of their ids
// (engine/feeds/merged_id.h), as a task reads them through RemoteCalls.
//
//   each set   FEED RESOLVED f@n   up to where it tells all (`resolved`)
//              XRANGE f@n ...      its entries up to there, a reply at a time
//
// The entry with the smallest id is told when no set can have a smaller one: each has one that is
// larger, or has told all up to there. A set that is quiet and whose `resolved` is too old for that
// is asked with NOW, and logs that time has passed.
// If that does not help (its clock is behind, its disk is full, writes are paused there), what is
// newer is not told by now.
//
// Who has come to the end and waits is told by what each set is asked for all who wait at this node
// (feed_look.h).
//
// Backwards it is known first up to where all sets tell all, and what is behind that is not there
// yet.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/arguments/feed_arguments.h"
#include "commands/cluster/feed_look.h"
#include "commands/session/host.h"
#include "commands/session/session.h"
#include "commands/session/task.h"
#include "engine/feeds/feed.h"

namespace cellar {

class MergedFeed {
 public:
  struct Entry {
    FeedId id;           // in the order of all sets
    FeedId own;          // as its set has it
    std::string fields;  // as a reply has them
  };
  // `word`: the feed as the client has named it, f or f@n. `host` and `session` outlive it.
  MergedFeed(Host& host, Session& session, std::string_view word);
  ~MergedFeed();
  MergedFeed(MergedFeed&&) noexcept;
  MergedFeed(const MergedFeed&) = delete;
  MergedFeed& operator=(const MergedFeed&) = delete;
  MergedFeed& operator=(MergedFeed&&) = delete;

  // In EXEC there is no waiting for others: it has failed then.
  static bool RefusesExec(TaskContext& context);

  const std::string& word() const { return word_; }
  // Reads what is behind `range.after`, or, in reverse, from `range.to` downwards. `count`: about
  // so many entries are wanted. What it has been asked for before is forgotten.
  void Begin(const FeedRange& range, bool reverse, uint64_t count);
  // Likewise, what comes from now on.
  void BeginAtEnd(uint64_t count);
  // It has come to the end of what is told by now, and waits: whether there may be more. Then, and
  // where a set is behind or away from time to time, LookAgain.
  bool MayHaveMore();
  // Looks whether there is more.
  void LookAgain();

  enum class Came : uint8_t { kNothing, kEntry, kEnd, kError };
  // The next entry, if it is known; kEnd: there is none by now. After kError, of which *error is
  // the line, it is over, unless LookAgain begins anew from where it stands.
  Came Next(Entry* entry, std::string* error);
  // Of a reader that waits: the set that cannot be asked; the last error said so.
  bool may_come_back() const { return is_away_; }
  size_t memory_bytes() const { return bytes_; }

 private:
  enum class Asked : uint8_t { kNothing, kResolved, kNow, kEntries };
  struct Part {
    uint64_t set{0};
    std::string name;  // f@n
    Asked asked{Asked::kNothing};
    uint64_t ticket{0};
    FeedId after;  // told up to there, or kept in `entries`
    FeedId to;     // in reverse
    bool from_oldest{false};
    bool from_end{false};
    bool is_resolved{false};
    bool was_asked_now{false};  // since it was looked at anew
    bool complete{false};       // nothing is left up to `resolved`
    uint64_t wanted{0};         // entries, of its last call
    FeedId resolved;
    FeedId looked_to;  // there is nothing left up to here
    std::deque<Entry> entries;
    std::shared_ptr<FeedLook> look;  // null: it has not waited yet
    uint64_t news_seen{0};           // by this reader
  };

  void ForgetCalls();
  void AddPart(uint64_t set);
  void BeginPart(Part* part) const;
  void AddNewSets();
  void DropGone();
  void Ask(Part* part, Asked what);
  void AskEntries(Part* part);
  // False: *error.
  bool TakeAnswers(std::string* error);
  bool TakeEntries(Part* part, std::string_view reply);
  bool TakeResolved(Part* part, std::string_view reply);
  // What is to be asked before anything can be told; kEntry: nothing is.
  Came Prepare();
  Part* First();
  FeedId IdOf(const Part& part, const FeedId& own) const;

  Host& host_;
  Session& session_;
  std::string word_;
  const bool is_merged_;
  std::vector<Part> parts_;
  bool knows_sets_{true};
  FeedRange range_;
  bool at_end_{false};       // it has begun there
  int64_t begun_micros_{0};  // monotonic; then
  int64_t begun_wall_{0};    // Unix micros; then
  uint64_t lacks_{0};        // a set that set 0 knows of, and this node does not yet; 0: none
  FeedId end_;               // in reverse: what is behind it is not told yet
  bool reverse_{false};
  bool is_away_{false};
  uint64_t count_{0};
  size_t bytes_{0};
};

}  // namespace cellar
