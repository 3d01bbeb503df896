// XREAD, XRANGE, XREVRANGE and XLEN of feeds over all sets of a cluster (merged_feed.h), and XREAD
// of several sets' parts beside each other.
#pragma once

namespace cellar {

struct CommandContext;

// In the place of the command's handler, whose words they take.
void BeginMergedRead(CommandContext& ctx);
void BeginMergedRange(CommandContext& ctx);
void BeginMergedLength(CommandContext& ctx);

}  // namespace cellar
