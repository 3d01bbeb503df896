// What a change of the schema of a cluster waits for: OK is told when every set has it.
#pragma once

namespace cellar {

struct CommandContext;

// Behind a change that has been made: whether the command goes on as a task that replies, since
// there are other sets, and not all have the newest change.
bool AwaitOtherSets(CommandContext& ctx);

}  // namespace cellar
