// What CLUSTER SETS and INFO tell of a cluster: of the sets, as this node knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/set_directory.h"
#include "commands/config/config.h"
#include "replica/replication.h"

namespace cellar {

class Host;

// This node's store is part of a cluster, and this node of a replica set; what CLUSTER asks first.
bool IsInCluster(Host& host);

// Who leads this node's set, perhaps this node; nothing: nobody is known to. REQUIRES: a set.
std::optional<NodeAddress> SetLeader(Host& host);
// "host:port"; empty: nobody does.
std::string SetLeaderText(Host& host);

struct SetReport {
  uint64_t set{0};
  std::string id;            // 16 hexadecimal digits
  std::string_view state{};  // "ok", "no-leader"
  std::string leader;        // "host:port"; empty: nobody leads
  std::vector<MemberFigures> members;
  uint64_t tablets{0};
  uint64_t bytes{0};      // memory of the data, on this node
  uint64_t maxmemory{0};  // of this node; 0: no limit
};

// "ok", "no-leader"; "empty" if it has no tablets.
std::string_view SetStateOf(const ClusterSet& set);
// The id of the own set. REQUIRES: a set.
uint64_t OwnSetId(Host& host);
// The own set, as the director is told of it. REQUIRES: a set, with a state.
ClusterSet OwnClusterSet(Host& host);
// Of any set, as far as this node knows; empty: it does not. REQUIRES: this node is of a set.
std::string LeaderTextOf(Host& host, uint64_t set);
// What this node calls the machine that it runs on: cluster-machine, else the host's name.
std::string MachineOf(const Config& config);

// Of the set that this node is a member of. REQUIRES: IsInCluster.
SetReport ReportSet(Host& host);

}  // namespace cellar
