// PlanLead: which set another of its members is to lead, so that machines lead equally many
// (SCALE-DESIGN 6.7): one core executes what a set is asked, and after a machine has been away all
// that it led is led elsewhere.
//
// A machine is what cluster-zone and cluster-machine of its members say. From the one that leads
// most to the one that leads least, where these are two apart or more; each step makes them less,
// so that it comes to rest.
//
// A pure function of what is known of the sets: the same gives the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cluster/set_directory.h"

namespace cellar {

struct LeadStep {
  uint64_t set{0};
  uint64_t node{0};  // that is to lead it
  std::string reason{};
};

// All its members are there, and none is being copied; one may be a few records behind, as all are
// now and then while there are writes.
bool IsComplete(const ClusterSet& set);

// A set, and the node that was to lead it.
using Handover = std::pair<uint64_t, uint64_t>;

// At most one step. `resting`: sets that stay as they are, and count; `tried`: what is not tried
// again now. Set 0 goes last: with its leader the director is another one, who begins anew.
// O(members)
std::optional<LeadStep> PlanLead(const std::map<uint64_t, ClusterSet>& sets,
                                 const std::set<uint64_t>& resting,
                                 const std::set<Handover>& tried);

}  // namespace cellar
