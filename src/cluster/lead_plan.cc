// See lead_plan.h.
#include "cluster/lead_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace cellar {
namespace {

constexpr size_t kApartMin{2};  // by one step two sets that are one apart change places

// Empty: it is not known.
std::string MachineOf(const ClusterMember& member) {
  if (member.machine.empty() || member.zone.empty()) return member.machine;
  return member.zone + "/" + member.machine;
}

bool IsHere(const ClusterMember& member) {
  return member.state == "leader" || member.state == "online" || member.state == "behind";
}

}  // namespace

bool IsComplete(const ClusterSet& set) {
  const ClusterMember* const leader = set.Find(set.leader);
  return leader != nullptr && std::all_of(set.members.begin(), set.members.end(), IsHere);
}

std::optional<LeadStep> PlanLead(const std::map<uint64_t, ClusterSet>& sets,
                                 const std::set<uint64_t>& resting,
                                 const std::set<Handover>& tried) {
  std::map<std::string, size_t> leads;
  for (const auto& [number, set] : sets)
    if (const ClusterMember* const leader = set.Find(set.leader)) ++leads[MachineOf(*leader)];
  std::optional<LeadStep> best;
  size_t best_apart = 0;
  for (const auto& [number, set] : sets) {
    if (resting.contains(number) || !IsComplete(set)) continue;
    const std::string from = MachineOf(*set.Find(set.leader));
    if (from.empty()) continue;
    for (const ClusterMember& member : set.members) {
      const std::string to = MachineOf(member);
      const bool may = member.kind == "voter" && member.node != set.leader && !to.empty() &&
                       to != from && !tried.contains({number, member.node});
      const size_t most = leads[from];
      const size_t least = leads[to];
      if (!may || most < least + kApartMin) continue;
      const bool takes_place_of_0 = best && best->set == 0 && number != 0;
      if (most - least <= best_apart && !takes_place_of_0) continue;
      best_apart = most - least;
      best =
          LeadStep{.set = number,
                   .node = member.node,
                   .reason = fmt::format("machine {} leads {} sets, {} {}", from, most, to, least)};
    }
  }
  return best;
}

}  // namespace cellar
