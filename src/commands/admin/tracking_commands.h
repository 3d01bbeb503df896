// CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO: handlers for the rows of the CLIENT container.
#pragma once

namespace cellar {

struct CommandContext;

// CLIENT TRACKING ON|OFF [REDIRECT id] [PREFIX p]... [BCAST] [OPTIN] [OPTOUT] [NOLOOP] (arity -3).
void CmdClientTracking(CommandContext& ctx);
// CLIENT CACHING YES|NO (arity 3).
void CmdClientCaching(CommandContext& ctx);
void CmdClientGetRedir(CommandContext& ctx);
void CmdClientTrackingInfo(CommandContext& ctx);

}  // namespace cellar
