// ClusterPart: this node's part in its cluster, from where commands and the server meet it
// (cluster/cluster_map.h is what it does).
#pragma once

#include <string_view>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "commands/arguments/arguments.h"

namespace cellar {

class Host;
class Table;
struct CommandContext;

inline constexpr std::string_view kClusterDisabled{
    "ERR This instance has cluster support disabled"};

// While it lives, what the cluster's own tables come to hold is written; at its end those who track
// them are told.
class ClusterTelling {
 public:
  explicit ClusterTelling(Host& host);
  ~ClusterTelling();
  ClusterTelling(const ClusterTelling&) = delete;
  ClusterTelling& operator=(const ClusterTelling&) = delete;

 private:
  Host& host_;
  const Lsn before_;
};

class ClusterPart {
 public:
  // Now and then, and behind what changes it: cluster-reads has the default that holds here, and
  // the director's map is what the tables say. Costs nothing while nothing changes.
  static void Tend(Host& host);
  // Whether the command may go on: this node is of a set, or of a set that is part of a cluster. If
  // not, it has been answered.
  static bool IsOfSet(CommandContext& ctx);
  static bool IsOfCluster(CommandContext& ctx);
  // Whether this node is the leader of set 0, so that its map is kept here.
  static bool Directs(Host& host);
  // CLUSTERDOWN if rows of the table were lost with a set, as far as this node knows.
  static Status CheckAllThere(Host& host, const Table& table);
  // [COUNT n] of what is told newest first; ten where nothing is said.
  static Result<uint64_t> CountAsked(Arguments words);
};

}  // namespace cellar
