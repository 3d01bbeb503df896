// CLUSTER CUT, CLUSTER CUTS: moments over all sets.
#pragma once

#include <memory>

#include "engine/state/cut_mark.h"

namespace cellar {

struct CommandContext;
class Host;
class Task;

// A cut for that, begun by this node, if it is the director; the reply is its number.
std::unique_ptr<Task> MakeCutTask(Host& host, CutPurpose purpose);

void CmdClusterCut(CommandContext& ctx);
void CmdClusterCuts(CommandContext& ctx);

}  // namespace cellar
