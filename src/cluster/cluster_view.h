// ClusterView: what a node knows of its cluster: the sets, and whose which rows are. Of a node of
// set 0 the map is what its own store has (cluster_map.h); any other node has the director's copy.
#pragma once

#include "cluster/map_cache.h"
#include "cluster/set_directory.h"

namespace cellar {

struct ClusterView {
  SetDirectory sets;
  MapCache map;  // outside of set 0
  // Whether there are others than the own one.
  bool has_others() const { return sets.sets().size() > 1; }
};

}  // namespace cellar
