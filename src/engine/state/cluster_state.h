// ClusterState: what a set knows of the cluster that it is part of, besides the rows that it owns
// (table/tablets.h): its number there, and of which number its schema is.
//
//   state  | format u8 | cluster u64 | v set | v catalog | v count { v table id, tablets } | moves
//
// (format 1: without moves, as long as there have been none; format 2: with them, tablet_moves.h)
// is what kTablets carries, and what stands in the catalog of a snapshot file. A cluster of number
// 0 is none: such a state has nothing behind it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/state/tablet_moves.h"
#include "engine/table/tablets.h"

namespace cellar {

inline constexpr uint64_t kClusterSetsMax{1'024};
// The keyspace of a cluster's own tables, in set 0 (cluster/map_tables.h): read by everybody, and
// changed by the leader alone, of itself. In a store that is part of no cluster it is any keyspace.
inline constexpr std::string_view kClusterKeyspace{"_cluster"};

struct ClusterState {
  uint64_t cluster_id{0};  // drawn at CLUSTER INIT; 0: part of none
  uint64_t set{0};         // 0 has the map
  uint64_t catalog{0};     // number of the newest change of the schema
  TabletMoves moves{};

  bool active() const { return cluster_id != 0; }
};

// By table id.
using TabletsByTable = std::map<uint64_t, Tablets::Pointer>;

void EncodeClusterState(const ClusterState& state, const TabletsByTable& tables, std::string* to);
// False if these are not the bytes of a state and nothing else.
[[nodiscard]] bool DecodeClusterState(std::string_view from, ClusterState* state,
                                      TabletsByTable* tables);

}  // namespace cellar
