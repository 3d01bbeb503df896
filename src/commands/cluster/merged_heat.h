// HEAT of a table over all sets of a cluster: what the leader of each has counted, added up.
//
//   HEAD    of each set: since when, and with which rows its ranges begin. Of those that lie in what
//           it owns, as many as are asked for begin the ranges of all
//   KEYS    of each set: what it has counted, by those ranges
#pragma once

#include "commands/session/command_context.h"
#include "heat/heat_reading.h"

namespace cellar {

class Table;

// Whether there are other sets to be asked.
bool IsHeatOfSets(const CommandContext& ctx);
// REQUIRES: called last, as CommandContext::Continue().
void RunMergedHeat(CommandContext& ctx, const Table& table, const HeatQuery& query);

}  // namespace cellar
