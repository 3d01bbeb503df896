// ClusterView: what a node knows of its cluster: the sets, and whose which rows are. Of a node of
// set 0 the map is what its own store has (cluster_map.h); any other node has the director's copy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/map_cache.h"
#include "cluster/set_directory.h"

namespace cellar {

struct ClusterView {
  SetDirectory sets;
  MapCache map;  // outside of set 0
  // Version of the map of the director, as it said last; 0: it has not said.
  uint64_t map_heard{0};
  // Replies are held behind a change that all sets are to have: no tablet is given away until then.
  bool replies_are_held{false};
  // Why this node serves nothing: its set has come back, and it is not certain yet what it owns
  // (returning_sets.h). Empty: it does.
  std::string closed;
  // Whether it is known which sets there are. A node that has just begun does not know, and is told
  // of all of them at once.
  bool KnowsSets(uint64_t own_set) const {
    return sets.Find(0) != nullptr && sets.Find(own_set) != nullptr;
  }
  static constexpr std::string_view kSetsUnknown{
      "TRYAGAIN this node does not know the sets of its cluster yet"};
  // Whether there are others than the own one.
  bool has_others() const { return sets.sets().size() > 1; }
};

}  // namespace cellar
