// GroupLags: how many entries a feed has told, and how many of them are behind each of some ids:
// what XINFO says of groups.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "commands/session/task.h"
#include "engine/feeds/feed_group.h"
#include "resp/reply_writer.h"
#include "store/history/feed_log.h"

namespace cellar {

struct GroupLags {
  uint64_t told{0};
  std::map<FeedId, uint64_t> behind;

  // "entries-read" and "lag". Of a group that has read on, or has come, while it was counted, and
  // where not all sets have answered: null.
  void Reply(ReplyWriter& reply, const FeedGroup& group) const;
};

// The last ids of all groups. `groups` null: there are none.
std::set<FeedId> LastIdsOf(const FeedGroups::OfFeed* groups);

// Counts in this set's own log, in one pass for all ids.
class LagCount {
 public:
  // False: the budget is spent. `ids`: those of the call after which it has begun are counted.
  Result<bool> Count(FeedLog& log, const Feed& feed, const std::set<FeedId>& ids,
                     const TaskBudget& budget);
  bool begun() const { return begun_; }
  // REQUIRES: Count said true.
  GroupLags lags() const;
  void ForgetPlace() { behind_.scan.place = {}; }

 private:
  struct Behind final : public FeedSink {
    FeedScan scan;
    std::map<FeedId, uint64_t> counts;  // up to the next id

    bool OnEntry(const FeedEntry& entry) override {
      const auto behind = counts.lower_bound(entry.id);
      if (behind != counts.begin()) ++std::prev(behind)->second;
      return true;
    }
  };

  uint64_t told_{0};
  bool begun_{false};
  bool done_{false};
  Behind behind_;
};

}  // namespace cellar
