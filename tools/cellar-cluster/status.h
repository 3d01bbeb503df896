// What a cluster looks like from here: the sets as one node tells of them, each of their members
// asked by itself, and what is wrong in words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cellar-cluster/json_writer.h"
#include "cellar/status.h"
#include "client/cluster_state.h"
#include "client/connection.h"

namespace cellar::cluster_tool {

// What a member says of itself.
struct NodeState {
  std::string refusal;  // why it does not answer; empty: it does
  std::map<std::string, std::string> info;
  std::optional<client::SetState> own_set;  // which it knows better than other sets do
  std::map<std::string, int64_t> lags_ms;   // of a leader: how far each member is behind

  uint64_t Number(const std::string& field) const;
  std::string Text(const std::string& field) const;
};

struct ClusterStatus {
  std::vector<client::SetState> sets;      // in their order; those that wait at the end
  std::map<std::string, NodeState> nodes;  // by "host:port"
  std::vector<std::string> map_faults;     // of CLUSTER MAP CHECK
  std::string map_refusal;                 // why that could not be asked
};

// Asks the node of `connection` for the sets, the director for those that wait, and each member
// for its INFO, 16 of them at once. ERR: there is no cluster, and what there is instead.
Result<ClusterStatus> ReadStatus(client::Connection* connection,
                                 const client::ConnectionOptions& options);

// What is wrong, in sentences; empty: all is well.
std::vector<std::string> FaultsOf(const ClusterStatus& status);

// For people, and for programs.
std::string StatusText(const ClusterStatus& status, const std::vector<std::string>& faults);
std::string StatusJson(const ClusterStatus& status, const std::vector<std::string>& faults);

}  // namespace cellar::cluster_tool
