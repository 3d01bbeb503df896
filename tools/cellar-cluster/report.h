// The tablets and the events of a cluster as texts, and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar-cluster/plan.h"
#include "client/cluster_state.h"

namespace cellar::cluster_tool {

// `shown` of them at most; more are said to be there.
std::string MapText(const client::TabletMap& map, uint64_t shown);
std::string MapJson(const client::TabletMap& map, uint64_t shown);
std::string EventsText(const std::vector<client::ClusterEvent>& events);
std::string EventsJson(const std::vector<client::ClusterEvent>& events);
// `written` names the configuration files; empty: they were not written.
std::string PlanText(const Plan& plan, const std::vector<std::string>& warnings,
                     const std::vector<std::string>& written, bool systemd);
std::string PlanJson(const Plan& plan, const std::vector<std::string>& warnings,
                     const std::vector<std::string>& configurations);

}  // namespace cellar::cluster_tool
