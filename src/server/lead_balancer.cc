// See lead_balancer.h.
#include "server/lead_balancer.h"

#include <fmt/format.h>

#include <algorithm>
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
  tried_.clear();
  under_way_ = false;
  asked_micros_ = now();
}

int64_t LeadBalancer::Every() const {
  return std::min(host_.services().move_trials.leads_micros.value_or(kLeadsEveryMicros),
                  kLeadsEveryMicrosMax);
}

void LeadBalancer::Step() {
  if (ticket_ != 0) return TakeAnswer();
  if (now() < next_micros_) return;
  next_micros_ = now() + kRoundMicros;
  Look();
  TellIfDone();
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
  std::set<Handover> tried;
  std::erase_if(tried_, [this](const auto& each) {
    return now() - each.second.at_micros >= 2 * each.second.rest_micros;
  });
  for (const auto& [handover, each] : tried_)
    if (now() - each.at_micros < each.rest_micros) tried.insert(handover);
  std::optional<LeadStep> step = PlanLead(sets, resting, tried);
  if (!step) return;
  step_ = *std::move(step);
  asked_micros_ = now();
  Tried& of_this = tried_[{step_.set, step_.node}];
  of_this.at_micros = now();
  of_this.rest_micros =
      std::clamp(2 * of_this.rest_micros, kRestEveries * Every(), kRestEveriesMax * Every());
  const ClusterMember& member = *sets.at(step_.set).Find(step_.node);
  what_ = fmt::format("hand set {} over to {}:{}", step_.set, member.host, member.port);
  MoveStep lead;
  lead.kind = MoveStep::Kind::kLead;
  lead.cluster_id = host_.store().engine().cluster().cluster_id;
  lead.job = step_.node;
  // Of its own set this node directs no more once it has.
  if (step_.set == host_.store().engine().cluster().set)
    (void)MoveJobs::Tell(host_.store(), what_, step_.reason);
  else
    under_way_ = true;
  ticket_ = calls_.Ask(step_.set, lead);
}

void LeadBalancer::TakeAnswer() {
  if (calls_.IsPending(ticket_)) return;
  const auto answer = calls_.Take(std::exchange(ticket_, 0));
  if (answer && answer->code == MoveAnswer::Code::kOk) return;
  if (answer) Log(LogSeverity::kVerbose, "No " + what_ + ": " + answer->text);
}

// That it was begun says nothing yet.
void LeadBalancer::TellIfDone() {
  if (!under_way_) return;
  const auto seen = seen_.find(step_.set);
  const bool is_done = seen != seen_.end() && seen->second.leader == step_.node;
  if (is_done) (void)MoveJobs::Tell(host_.store(), what_, step_.reason);
  under_way_ = !is_done && now() - asked_micros_ < Every();
}

}  // namespace cellar
