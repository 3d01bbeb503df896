// See group_lags.h.
#include "commands/feeds/group_lags.h"

#include <algorithm>

namespace cellar {
namespace {

void ReplyNumber(ReplyWriter& reply, bool is_known, uint64_t number) {
  if (is_known) {
    reply.Unsigned(number);
  } else {
    reply.Null();
  }
}

}  // namespace

void GroupLags::Reply(ReplyWriter& reply, const FeedGroup& group) const {
  const auto found = behind.find(group.last);
  const bool is_known = found != behind.end();
  const uint64_t lag = is_known ? found->second : 0;
  reply.Bulk("entries-read");
  ReplyNumber(reply, is_known, told - std::min(told, lag));
  reply.Bulk("lag");
  ReplyNumber(reply, is_known, lag);
}

std::set<FeedId> LastIdsOf(const FeedGroups::OfFeed* groups) {
  std::set<FeedId> ids;
  if (groups == nullptr) return ids;
  for (const auto& [name, group] : *groups) ids.insert(group->last);
  return ids;
}

// From the last id of the group that is furthest behind. An entry counts for the nearest id before
// it; a group's lag is the sum from its own id on.
Result<bool> LagCount::Count(FeedLog& log, const Feed& feed, const std::set<FeedId>& ids,
                             const TaskBudget& budget) {
  while (!begun_) {
    ASSIGN_OR_RETURN(begun_, log.Count(feed));
    if (!begun_ && budget.Spent()) return false;
    if (!begun_) continue;
    told_ = log.CountsOf(feed).told;
    if (ids.empty()) return true;
    for (const FeedId& id : ids) behind_.counts.emplace(id, 0);
    behind_.scan.after = behind_.counts.begin()->first;
    // As far as `told_` goes: both figures are of one moment.
    behind_.scan.to = log.CountsOf(feed).last;
  }
  while (!done_ && !behind_.counts.empty()) {
    ASSIGN_OR_RETURN(done_, log.CountThrough(feed, &behind_.scan, &behind_));
    if (!done_ && budget.Spent()) return false;
  }
  return true;
}

GroupLags LagCount::lags() const {
  GroupLags lags{.told = told_, .behind = {}};
  uint64_t sum = 0;
  for (auto at = behind_.counts.rbegin(); at != behind_.counts.rend(); ++at)
    lags.behind.emplace(at->first, sum += at->second);
  return lags;
}

}  // namespace cellar
