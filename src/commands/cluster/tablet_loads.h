// What the tablets of the own set take of this node's time, beside what they have in memory.
#pragma once

#include <vector>

#include "store/tablet_sizes.h"

namespace cellar {

class Host;

// Fills in the loads of `sizes`, which are of tablets that the own set has.
void AddTabletLoads(Host& host, std::vector<TabletSize>* sizes);

}  // namespace cellar
