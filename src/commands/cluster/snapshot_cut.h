// Snapshots of tables whose rows lie on several sets: SNAPSHOT CREATE at the director, and what
// SNAPSHOT INFO sums over all sets.
//
//   at a cut     each set freezes the tables at its record, under no name (cluster/cut_desk.h)
//   it is good   the next change of the schema gives the snapshot its name, everywhere
//   it is bad    what was frozen goes, and nobody has seen it
//
// Where the rows of a frozen table are stands in the map, under the table's own id, and does not
// change: reads of table@snapshot go there from any node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellar {

struct CommandContext;

struct ClusterSnapshot {
  std::string keyspace;
  std::string name;
  std::vector<std::string> tables;
  bool all_tables{false};  // whatever tables the keyspace has at the cut, in place of these
  int64_t ttl_micros{0};
  bool replace{false};
};

// Whether snapshots of this node's cluster are of several sets.
bool SnapshotsAreOfSets(const CommandContext& ctx);
// Answers the command later. REQUIRES: SnapshotsAreOfSets, and this node is the director.
void CreateClusterSnapshot(CommandContext& ctx, ClusterSnapshot snapshot);
// SNAPSHOT INFO of all sets. `word`: the snapshot, as the client has called it.
void DescribeClusterSnapshot(CommandContext& ctx, std::string_view word);

}  // namespace cellar
