// The words of consumer groups: XREADGROUP, XPENDING, XCLAIM, XAUTOCLAIM, with Redis' errors and in
// Redis' order. Plain structs out; views are of the command's words.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "commands/arguments/feed_arguments.h"
#include "engine/feeds/feed.h"

namespace cellar {

struct GroupReadRequest {
  struct Stream {
    std::string_view name;
    std::string_view id;  // `>`, or one to be parsed when its group is known to be there
  };
  std::string_view group;
  std::string_view consumer;
  uint64_t count{kFeedEntriesDefault};
  std::optional<int64_t> block_ms;
  bool no_ack{false};
  std::optional<int64_t> claim_idle_ms;  // CLAIM
  std::vector<Stream> streams;
};
// What follows XREADGROUP.
Result<GroupReadRequest> ParseGroupRead(ArgumentCursor at);
// An id of XREADGROUP that is not `>`.
Result<FeedId> ParseHistoryId(std::string_view word);

struct PendingRequest {
  int64_t idle_ms_min{0};
  FeedRange range;
  uint64_t count{0};
  std::string_view consumer;
  bool of_consumer{false};
};
// What follows the group in XPENDING's extended form.
Result<PendingRequest> ParsePending(Arguments words);

struct ClaimRequest {
  int64_t idle_ms_min{0};
  std::vector<FeedId> ids;
  std::optional<int64_t> delivered_ms;  // IDLE, TIME
  std::optional<uint64_t> times;        // RETRYCOUNT
  std::optional<FeedId> last;           // LASTID
  bool force{false};
  bool just_ids{false};
};
// What follows the consumer in XCLAIM.
Result<ClaimRequest> ParseClaim(Arguments words, int64_t now_ms);

struct AutoClaimRequest {
  int64_t idle_ms_min{0};
  FeedRange range;  // from where
  uint64_t count{100};
  bool just_ids{false};
};
// What follows the consumer in XAUTOCLAIM.
Result<AutoClaimRequest> ParseAutoClaim(Arguments words);

// Options behind the id in XGROUP CREATE and SETID, of which only the words are looked at: a feed
// is there or is not, and what a group has read is counted.
Status CheckGroupOptions(Arguments words, bool creates);

}  // namespace cellar
