// COPY of a table whose rows lie on several sets, at the director: a cut freezes it on all sets
// (cluster/cut_desk.h); then the next change of the schema makes the copy, of each set's own rows,
// which owns what the source did at the cut.
#pragma once

#include <string>

namespace cellar {

struct CommandContext;
class Table;

struct ClusterCopy {
  std::string keyspace;
  std::string name;
  bool replace{false};
};

// Answers the command later. `source` may be one of a snapshot, which needs no cut. REQUIRES:
// SnapshotsAreOfSets.
void CopyClusterTable(CommandContext& ctx, const Table& source, ClusterCopy copy);

}  // namespace cellar
