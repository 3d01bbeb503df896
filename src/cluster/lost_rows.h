// Rows that were lost with a set: CLUSTER REMOVE n FORCE says that nothing of set n comes back.
//
// In the map they stay what they were, of an owner that is none: number n and a mark. So they are
// told of, commands for them are refused at once and not looked for, and a set that is to have them
// (TABLET ADOPT) gets them with a greater epoch, which takes their place in the map as any other
// owner's does.
//
// Pure data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "cluster/map_check.h"
#include "engine/state/cluster_state.h"
#include "engine/table/tablets.h"

namespace cellar {

// Lines of errors. `row`: as the client said it.
std::string LostRowText(std::string_view table, std::string_view row, uint64_t set);
std::string LostRowsText(uint64_t set);
// CLUSTERDOWN if some rows of the table are lost, so that there is no all of it.
Status CheckAllThere(const MapCache& map, uint64_t table_id, std::string_view name);

// How many tablets of the map are lost, but for those that only cursors read. O(1) where none is.
size_t LostTablets(const MapCache& map);
// By the owner that is none: what a map says is lost.
std::map<uint64_t, TabletsByTable> LostOf(const MapCache& map);
// As claims of those: what of it none of the claims there has, so that a set that has a row has it
// whatever the map believes. Tables that nobody claims anything of are left out.
void AddLost(const std::map<uint64_t, TabletsByTable>& lost, Claims* claims);
// What of the tablet none of the ranges has.
std::vector<Tablet> Uncovered(const Tablet& tablet, const KeyRangeSet& owned);

}  // namespace cellar
