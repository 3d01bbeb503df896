// CLUSTER ON: commands about a node, asked of another one, of a set's, or of all.
#pragma once

namespace cellar {

struct CommandContext;

// Where there are several sets: asks all nodes of the cluster this command with LOCAL behind it,
// and answers for all: the elements of their arrays in one, or the first reply if none is an array;
// an error if there is one. False: there are not, or LOCAL was said; the command is to be done
// here.
// REQUIRES: called last, as CommandContext::Continue().
bool AskAllNodes(CommandContext& ctx);
// Whether it would.
bool IsOfAllNodes(const CommandContext& ctx);

// CLUSTER ON h:p | set n | ALL command ...
void CmdClusterOn(CommandContext& ctx);

}  // namespace cellar
