// What a set owns, as it tells the director.
#pragma once

#include "engine/state/cluster_state.h"

namespace cellar {

class Engine;

// By table: what is owned, or given to who may not own it yet, and what snapshots hold. Tables of
// which there is nothing are left out. O(tablets)
TabletsByTable OwnTablets(const Engine& engine);

}  // namespace cellar
