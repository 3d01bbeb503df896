// See lead_balancer.h.
#include "server/lead_balancer.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "base/os/log.h"
#include "cluster/lead_plan.h"
#include "cluster/map_tables.h"
#include "cluster/move_jobs.h"
#include "commands/session/services.h"
#include "store/store.h"

namespace cellar {

void LeadBalancer::Stop() {
  if (ticket_ != 0) calls_.Forget(std::exchange(ticket_, 0));
  seen_.clear();
  asked_micros_ = now();
}

int64_t LeadBalancer::Every() const {
  return host_.services().move_trials.leads_micros.value_or(kLeadsEveryMicros);
}

void LeadBalancer::Step() {
  if (ticket_ != 0) return TakeAnswer();
  if (now() < next_micros_) return;
  next_micros_ = now() + kRoundMicros;
  Look();
  if (now() - asked_micros_ >= Every() && balancer_.balances()) Ask();
}

// What is on its way goes on whoever leads, but not faster for it.
void LeadBalancer::Look() {
  const auto& sets = host_.services().cluster_view.sets.sets();
  std::erase_if(seen_, [&sets](const auto& each) { return !sets.contains(each.first); });
  for (const auto& [number, set] : sets) {
    Seen& seen = seen_[number];
    const bool rests = seen.leader == set.leader && IsComplete(set) && set.jobs == 0;
    if (!rests) seen = {.leader = set.leader, .since_micros = now()};
  }
}

void LeadBalancer::Ask() {
  const auto& sets = host_.services().cluster_view.sets.sets();
  std::set<uint64_t> resting;
  for (const auto& [number, seen] : seen_)
    if (now() - seen.since_micros < Every()) resting.insert(number);
  std::optional<LeadStep> step = PlanLead(sets, resting);
  if (!step) return;
  const ClusterSet& set = sets.at(step->set);
  const ClusterMember& member = *set.Find(step->node);
  MoveStep lead;
  lead.kind = MoveStep::Kind::kLead;
  lead.cluster_id = host_.store().engine().cluster().cluster_id;
  lead.job = step->node;
  asked_micros_ = now();
  set_ = step->set;
  what_ = fmt::format("hand set {} over to {}:{}", set_, member.host, member.port);
  why_ = std::move(step->reason);
  // Of its own set this node directs no more once it has.
  if (set_ == host_.store().engine().cluster().set)
    (void)MoveJobs::Tell(host_.store(), what_, why_);
  ticket_ = calls_.Ask(set_, lead);
}

void LeadBalancer::TakeAnswer() {
  if (calls_.IsPending(ticket_)) return;
  const auto answer = calls_.Take(std::exchange(ticket_, 0));
  if (answer && answer->code == MoveAnswer::Code::kOk) {
    if (set_ != host_.store().engine().cluster().set)
      (void)MoveJobs::Tell(host_.store(), what_, why_);
    return;
  }
  seen_[set_].since_micros = now();
  if (answer) Log(LogSeverity::kVerbose, "A set is not handed over: " + answer->text);
}

}  // namespace cellar
