// ClusterState: what a set knows of the cluster that it is part of, besides the rows that it owns
// (table/tablets.h): its number there, and of which number its schema is.
//
//   state     | format u8 | cluster u64 | v set | v catalog | standing
//             | v count { v table id, tablets } | moves
//   standing  | opened as u64 | v recovered cut
//
// (format 1: without standing and moves; format 2: without standing, with moves, tablet_moves.h;
// format 3: with both) is what kTablets carries, and what stands in the catalog of a snapshot file.
// The least format that can hold it is written. A cluster of number 0 is none: such a state has
// nothing behind it.
//
// A state may come back older than others know it: out of an archive, a backup, or by
// --replica-recover. Then it is that of another replica set than it was before, by which it is
// known, and its leader serves nothing until the director has compared it with what the other sets
// own (cluster/returning_sets.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/state/tablet_moves.h"
#include "engine/table/tablets.h"

namespace cellar {

inline constexpr uint64_t kClusterSetsMax{1'024};
// No replica set has that id.
inline constexpr uint64_t kOpenedByNobody{UINT64_MAX};
// The keyspace of a cluster's own tables, in set 0 (cluster/map_tables.h): read by everybody, and
// changed by the leader alone, of itself. In a store that is part of no cluster it is any keyspace.
inline constexpr std::string_view kClusterKeyspace{"_cluster"};

struct ClusterState {
  uint64_t cluster_id{0};  // drawn at CLUSTER INIT; 0: part of none
  uint64_t set{0};         // 0 has the map
  uint64_t catalog{0};     // number of the newest change of the schema
  // The replica set as which this one serves; 0: an older version has not said it.
  uint64_t opened_as{0};
  // It was recovered to that change of the schema, and nothing behind it; 0: it was not.
  uint64_t recovered_cut{0};
  TabletMoves moves{};

  bool active() const { return cluster_id != 0; }
  // Whether it was found to be in order as that replica set.
  bool IsOpenAs(uint64_t set_id) const {
    return recovered_cut == 0 && (opened_as == 0 || opened_as == set_id);
  }
  bool has_standing() const { return opened_as != 0 || recovered_cut != 0; }
};

// By table id.
using TabletsByTable = std::map<uint64_t, Tablets::Pointer>;

void EncodeClusterState(const ClusterState& state, const TabletsByTable& tables, std::string* to);
// False if these are not the bytes of a state and nothing else.
[[nodiscard]] bool DecodeClusterState(std::string_view from, ClusterState* state,
                                      TabletsByTable* tables);

// Body of kOpenAs: opened as u64.
std::string EncodeOpenAs(uint64_t set_id);
[[nodiscard]] bool DecodeOpenAs(std::string_view from, uint64_t* set_id);

}  // namespace cellar
