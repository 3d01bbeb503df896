// What a state holds that older versions cannot read (Feature): asked where it is about to be given
// to one, as when a set is founded with the data of a single server.
#pragma once

#include <set>

#include "engine/state/engine.h"
#include "store/store.h"

namespace cellar {

// By the tables, snapshots and feeds that there are. O(families).
std::set<Feature> FeaturesInUse(const Engine& engine);

}  // namespace cellar
