// What a set owns of all tables, as its state says it (cluster_state.h).
#pragma once

#include "engine/state/cluster_state.h"

namespace cellar {

class Engine;

// Of tables that have tablets, also those of snapshots that lack rows. O(tables)
TabletsByTable OwnedTabletsOf(const Engine& engine);

}  // namespace cellar
