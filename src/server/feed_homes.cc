// See feed_homes.h.
#include "server/feed_homes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os/log.h"
#include "base/text/quote.h"
#include "commands/cluster/cluster_part.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "engine/feeds/feed_group.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "store/catalog_changes.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr int64_t kHomeRetryMicros{50'000};
constexpr int64_t kHomeLookMicros{1'000'000};  // where nothing has changed

MoveAnswer NotYet(std::string_view why) {
  MoveAnswer answer;
  answer.code = MoveAnswer::Code::kWait;
  answer.text = why;
  return answer;
}

MoveAnswer AnswerGroup(const FeedGroups::OfFeed* groups, const MoveStep& step) {
  MoveAnswer answer;
  answer.code = MoveAnswer::Code::kEnded;
  if (groups == nullptr) return answer;
  const auto at = step.behind ? groups->upper_bound(step.ops) : groups->begin();
  if (at == groups->end()) return answer;
  answer.code = MoveAnswer::Code::kOk;
  answer.state = at->first;
  answer.text = ChangesOf(*at->second, [](const FeedId& id) { return id; }).bytes();
  return answer;
}

}  // namespace

MoveAnswer FeedHomes::Answer(Store& store, const MoveStep& step) {
  const FeedSet& feeds = store.engine().feeds();
  const Feed* const feed = feeds.FindById(step.job);
  if (feed == nullptr) return NotYet("there is no such feed");
  const uint64_t own = store.engine().cluster().set;
  // Who has been left behind may know of a move before, between the same two.
  const bool is_it = feed->home.from && feed->home.move == step.catalog;
  if (step.kind == MoveStep::Kind::kArrived) {
    const bool has_come = is_it && feed->home.set == own && !feed->home.awaits;
    return has_come ? MoveAnswer() : NotYet("they are on their way");
  }
  const bool gives = is_it && feed->home.set == step.from && feed->home.from == own;
  if (!gives) return NotYet("this set does not know yet that it is home no more");
  return AnswerGroup(feeds.groups().Of(WholeFeedGroups(feed->id)), step);
}

FeedHomes::~FeedHomes() { Forget(); }

int64_t FeedHomes::now() const { return host_.clock().MonotonicMicros(); }

void FeedHomes::Forget() {
  if (asked_.empty()) return;
  for (const auto& [id, asked] : asked_)
    if (asked.ticket != 0) calls_.Forget(asked.ticket);
  asked_.clear();
}

void FeedHomes::OnTurn() {
  const SetNode* const set = host_.replication().set();
  const bool may = set != nullptr && set->open() && set->may_append() && !host_.loading() &&
                   !host_.closed() && host_.store().engine().cluster().active() &&
                   !host_.writes_paused() && !host_.store().in_transaction() &&
                   !host_.store().following();
  if (!may) return;
  Store& store = host_.store();
  // Who leads anew asks anew.
  if (std::exchange(term_, host_.replication().term()) != host_.replication().term()) {
    Forget();
    busy_ = true;
  }
  if (std::exchange(schema_seen_, store.schema_lsn().seq) != store.schema_lsn().seq) busy_ = true;
  if (!busy_ && now() < look_micros_) return;
  look_micros_ = now() + kHomeLookMicros;
  busy_ = false;
  const bool directs = ClusterPart::Directs(host_);
  const uint64_t own = store.engine().cluster().set;
  std::vector<uint64_t> ids;
  for (const Feed* const feed : store.engine().feeds().All())
    if (feed->home.from || directs) ids.push_back(feed->id);
  std::erase_if(asked_, [&](const auto& asked) {
    const bool stays = std::binary_search(ids.begin(), ids.end(), asked.first);
    if (!stays && asked.second.ticket != 0) calls_.Forget(asked.second.ticket);
    return !stays;
  });
  for (const uint64_t id : ids) {
    const Feed* const feed = store.engine().feeds().FindById(id);
    busy_ = busy_ || feed->home.from.has_value();
    if (directs && LeaveLost(*feed)) continue;
    if (!feed->home.from) {
      LeaveDraining(*feed);
    } else if (feed->home.set == own && feed->home.awaits) {
      StepArrival(*feed);
    } else if (directs) {
      StepSettling(*feed);
    }
  }
}

void FeedHomes::Ask(const Feed& feed, uint64_t set, MoveStep::Kind kind, Asked* asked) {
  MoveStep step;
  step.kind = kind;
  step.cluster_id = host_.store().engine().cluster().cluster_id;
  step.job = feed.id;
  step.from = host_.store().engine().cluster().set;
  step.catalog = feed.home.move;
  step.behind = asked->has_some;
  step.ops = asked->after;
  asked->ticket = calls_.Ask(set, step);
}

bool FeedHomes::Take(const Feed& feed, uint64_t set, MoveStep::Kind kind, MoveAnswer* answer) {
  Asked& asked = asked_[feed.id];
  if (asked.ticket == 0) {
    if (now() >= asked.next_micros) Ask(feed, set, kind, &asked);
    return false;
  }
  if (calls_.IsPending(asked.ticket)) return false;
  const std::optional<MoveAnswer> taken = calls_.Take(std::exchange(asked.ticket, 0));
  if (!taken || taken->code == MoveAnswer::Code::kWait) {
    asked.next_micros = now() + kHomeRetryMicros;
    return false;
  }
  *answer = *taken;
  return true;
}

void FeedHomes::StepArrival(const Feed& feed) {
  MoveAnswer answer;
  if (!Take(feed, *feed.home.from, MoveStep::Kind::kGroups, &answer)) return;
  CatalogChanges changes(host_.store());
  Asked& asked = asked_[feed.id];
  const uint64_t from = *feed.home.from;
  if (answer.code != MoveAnswer::Code::kOk && answer.code != MoveAnswer::Code::kEnded) {
    asked.next_micros = now() + kHomeRetryMicros;
    return;
  }
  if (answer.code == MoveAnswer::Code::kEnded) {
    // What it knows is of this move alone.
    if (changes.NoteArrived(feed).ok())
      asked_.erase(feed.id);
    else
      asked.next_micros = now() + kHomeRetryMicros;
    return;
  }
  // A full disk, say, or what is no group: it is asked for again.
  const uint64_t id = feed.id;
  if (const Status taken = changes.TakeGroup(feed, answer.state, answer.text); !taken.ok()) {
    if (!std::exchange(asked.is_told, true))
      Log(LogSeverity::kWarning, fmt::format("Group {} of feed {} cannot be taken from set {}: {}",
                                             Quote(answer.state), id, from, taken.text()));
    asked.next_micros = now() + kHomeRetryMicros;
    return;
  }
  asked.after = answer.state;
  asked.has_some = true;
  if (const Feed* const still = host_.store().engine().feeds().FindById(id); still != nullptr)
    Ask(*still, from, MoveStep::Kind::kGroups, &asked);
}

void FeedHomes::StepSettling(const Feed& feed) {
  const uint64_t id = feed.id;
  const bool is_here = feed.home.set == host_.store().engine().cluster().set;
  Asked& asked = asked_[id];
  MoveAnswer answer;
  if (is_here ? now() < asked.next_micros
              : !Take(feed, feed.home.set, MoveStep::Kind::kArrived, &answer))
    return;
  // What keeps it from being logged now does not for ever. The feed may be another object then.
  const bool is_logged = answer.code == MoveAnswer::Code::kOk &&
                         CatalogChanges(host_.store()).MoveHome(feed, {.set = feed.home.set}).ok();
  if (is_logged)
    asked_.erase(id);
  else
    asked.next_micros = now() + kHomeRetryMicros;
}

bool FeedHomes::LeaveLost(const Feed& feed) {
  Store& store = host_.store();
  ClusterMap& map = host_.services().cluster_map;
  const std::optional<uint64_t> from = feed.home.from;
  const bool is_there = map.Has(store, feed.home.set);
  if (is_there && (!from || map.Has(store, *from))) return false;
  uint64_t to = feed.home.set;
  if (!is_there) to = from && map.Has(store, *from) ? *from : map.NextHome(store.engine().feeds());
  const uint64_t lost = is_there ? *from : feed.home.set;
  const std::string name = feed.name;
  if (!CatalogChanges(store).MoveHome(feed, {.set = to}).ok()) return true;
  const ClusterTelling telling(host_);
  (void)MoveJobs::Tell(store, fmt::format("set {} is home to the groups of feed {}", to, name),
                       fmt::format("set {}, and what it alone had of them, is lost", lost));
  return true;
}

void FeedHomes::LeaveDraining(const Feed& feed) {
  ClusterMap& map = host_.services().cluster_map;
  const auto& sets = map.Sets(host_.store());
  const bool drains = std::any_of(sets.begin(), sets.end(), [&feed](const auto& set) {
    return set.number == feed.home.set && set.draining;
  });
  const uint64_t to = drains ? map.NextHome(host_.store().engine().feeds()) : feed.home.set;
  if (to == feed.home.set) return;
  (void)CatalogChanges(host_.store())
      .MoveHome(feed, {.set = to, .from = feed.home.set, .awaits = true});
}

}  // namespace cellar
