// HEAT at work: in the handler if there is little to tell, else as a task.
#pragma once

#include "commands/session/command_context.h"
#include "heat/heat_reading.h"

namespace cellar {

// REQUIRES: called last, as CommandContext::Continue().
void RunHeat(CommandContext& ctx, const Table& table, const HeatQuery& query);

}  // namespace cellar
