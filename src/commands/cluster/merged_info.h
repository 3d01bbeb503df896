// FEED INFO and XINFO STREAM of a feed over all sets of a cluster: what the sets say of their
// parts, put together, and which set holds the whole feed back.
#pragma once

namespace cellar {

struct CommandContext;

// In the place of the command's handler.
void BeginMergedInfo(CommandContext& ctx);

}  // namespace cellar
