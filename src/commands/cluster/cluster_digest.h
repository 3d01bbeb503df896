// DEBUG DIGEST CLUSTER: one digest of the rows of all sets (store/rows_digest.h), asked for at any
// node.
//
//   CUT            the director makes a cut, at which the leader of each set takes hold of its rows
//   PART what      what the leader of a set has of that cut, or of a snapshot
//                  the sum of all parts, which have one schema, and every row once
//
// CUT and PART are what nodes ask each other. A set whose leader is another one than at the cut has
// nothing of it: there is another cut then, a few times.
#pragma once

namespace cellar {

struct CommandContext;

// DEBUG DIGEST CLUSTER, with what stands behind it.
void CmdDebugDigestCluster(CommandContext& ctx);

}  // namespace cellar
