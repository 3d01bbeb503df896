// GroupSource: where the groups of a feed are, and where their entries come from, as tasks of
// groups ask for them (group_task.h).
//
//   f@n, and f where there is one set    this set's own, in the log of this node
//   f, over several sets                 at its home, of all sets (cluster/whole_groups.h)
//
// A task has one for each feed that it names, and keeps it from step to step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/feeds/feed_reader.h"
#include "commands/session/command_context.h"
#include "commands/session/task.h"
#include "engine/feeds/feed.h"
#include "store/history/feed_log.h"

namespace cellar {

// Looks for entries by their ids.
class EntryFinder {
 public:
  virtual ~EntryFinder() = default;
  // Goes on to look for the entries `ids`, which ascend, from the `*next`th on; `sink` gets those
  // that are there. True: all have been looked for, or `sink` wants no more. REQUIRES: the same ids
  // at each call.
  virtual Result<bool> Look(const Feed& feed, const std::vector<FeedId>& ids, size_t* next,
                            FeedSink* sink, const TaskBudget& budget) = 0;
  virtual void ForgetPlace() = 0;
  virtual size_t memory_bytes() const { return 0; }
};

class GroupSource {
 public:
  virtual ~GroupSource() = default;

  // What FeedGroups calls them.
  virtual uint64_t GroupsOf(const Feed& feed) const = 0;
  // TRYAGAIN: they are not here (yet, or any more).
  virtual Status CheckHere(const Feed& feed) const = 0;
  // An id that a client has named, as groups have it.
  virtual FeedId IdOf(const FeedId& id) const = 0;
  // How a step ends that has not come to an end of what is asked below.
  virtual TaskProgress unfinished() const = 0;
  // Whether the last error was that of a set that is away, so that one that waits may go on
  // waiting; said once.
  virtual bool TakeIsAway() { return false; }

  // True: CheckKept, ReadBehind and finders are right.
  virtual Result<bool> Settle(const Feed& feed, const TaskBudget& budget) = 0;
  // Likewise HasDropped and DroppedOf.
  virtual Result<bool> SettleDropped(const Feed& feed, const TaskBudget& budget) = 0;
  virtual bool HasDropped(const Feed& feed, const FeedId& id) const = 0;
  // Behind it all is there.
  virtual FeedId DroppedOf(const Feed& feed) const = 0;
  // TRIMMED: entries behind `after` have been dropped.
  virtual Status CheckKept(const Feed& feed, std::string_view word, const FeedId& after) const = 0;
  // True: *last is the last entry that is told by now; 0-0: there is none.
  virtual Result<bool> FindLast(const Feed& feed, FeedId* last, const TaskBudget& budget) = 0;

  // Of who waits: whether it is worth while to read.
  virtual Result<FeedLog::Behind> LookBehind(const Feed& feed, const FeedId& last) = 0;
  // Goes on to read behind `last`, which may differ from call to call: `sink` gets entries behind
  // it, none left out, `count` at most. True: there are no more, or `sink` is full.
  virtual Result<bool> ReadBehind(const Feed& feed, const FeedId& last, uint64_t count,
                                  FeedReplySink* sink, const TaskBudget& budget) = 0;
  virtual std::unique_ptr<EntryFinder> NewFinder(FeedDecoder::Fields fields) = 0;
  virtual void ForgetPlaces() = 0;
  // What it has read and not given out.
  virtual size_t memory_bytes() const = 0;
};

// Of the feed that is called so. CROSSSET: no EXEC goes there.
using OpenGroupSource = Result<std::unique_ptr<GroupSource>> (*)(CommandContext& ctx,
                                                                 const Feed& feed,
                                                                 std::string_view word);

// This set's own. `word`: as the client calls the feed.
std::unique_ptr<GroupSource> OpenOwnGroups(Host& host, std::string_view word);

}  // namespace cellar
