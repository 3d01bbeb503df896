// Reading feeds: XREAD, XRANGE, XREVRANGE, XLEN, XINFO STREAM and FEED INFO as tasks, since what
// they look for may be far apart in the log.
//
// A reader that waits keeps a place in the log and nothing else. It looks again whenever the server
// steps waiting tasks: after each sync, and every 10 ms. Whether the feed is there, and may be read
// by the user, is asked each time.
#pragma once

#include <optional>
#include <string_view>

#include "commands/arguments/feed_arguments.h"
#include "commands/session/command_context.h"

namespace cellar {

void RunFeedRead(CommandContext& ctx, const FeedReadRequest& request);

enum class FeedOrder : uint8_t { kOldestFirst, kNewestFirst };
// Replies the entries of the range, `count` at most.
void RunFeedRange(CommandContext& ctx, std::string_view feed, const FeedRange& range,
                  FeedOrder order, uint64_t count);

enum class FeedFigures : uint8_t { kLength, kStreamInfo, kFeedInfo };
void RunFeedFigures(CommandContext& ctx, std::string_view feed, FeedFigures figures);

struct FeedResolving {
  bool now{false};
  std::optional<FeedId> past;
};
// FEED RESOLVED: replies an id behind all entries that there are, once all is on disk that has been
// written; no entry to come has a smaller one. `now`: it is one of now at least, for which a record
// is logged if nothing else is. `past`: once there is an entry behind that one, or it has been
// dropped, or after five seconds; it says which. At set 0 of a cluster also which sets there are.
void RunFeedResolved(CommandContext& ctx, std::string_view feed, const FeedResolving& how);

}  // namespace cellar
