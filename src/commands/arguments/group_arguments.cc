// See group_arguments.h.
#include "commands/arguments/group_arguments.h"

#include <algorithm>
#include <string>

namespace cellar {
namespace {

Result<int64_t> Milliseconds(std::string_view word, std::string_view what,
                             std::string_view command) {
  Result<int64_t> ms = IntegerArgument(word);
  if (ms.ok()) return ms;
  return Status::Error(ErrorCode::kErr,
                       "Invalid " + std::string(what) + " argument for " + std::string(command));
}

Status TakeStreams(ArgumentCursor* at, GroupReadRequest* request) {
  const Arguments words = at->Rest();
  if (words.empty() || words.size() % 2 != 0) {
    return Status::Error(ErrorCode::kErr,
                         "Unbalanced XREAD list of streams: for each stream key an ID or '$' must "
                         "be specified.");
  }
  const size_t count = words.size() / 2;
  for (size_t i = 0; i < count; ++i) request->streams.push_back({words[i], words[count + i]});
  return Status::Ok();
}

}  // namespace

Result<GroupReadRequest> ParseGroupRead(ArgumentCursor at) {
  GroupReadRequest request;
  bool has_group = false;
  bool has_streams = false;
  while (!at.done()) {
    if (at.left() > 1 && at.TakeWord("BLOCK")) {
      ASSIGN_OR_RETURN(request.block_ms, ParseBlock(at.Take()));
    } else if (at.left() > 1 && at.TakeWord("COUNT")) {
      ASSIGN_OR_RETURN(request.count, ParseFeedCount(at.Take()));
    } else if (at.left() > 1 && at.TakeWord("CLAIM")) {
      ASSIGN_OR_RETURN(request.claim_idle_ms,
                       Milliseconds(at.Take(), "min-idle-time", "XREADGROUP"));
      if (*request.claim_idle_ms < 0)
        return Status::Error(ErrorCode::kErr, "min-idle-time must not be negative");
    } else if (at.left() > 1 && at.TakeWord("STREAMS")) {
      RETURN_IF_ERROR(TakeStreams(&at, &request));
      has_streams = true;
    } else if (at.left() > 2 && at.TakeWord("GROUP")) {
      request.group = at.Take();
      request.consumer = at.Take();
      has_group = true;
    } else if (at.TakeWord("NOACK")) {
      request.no_ack = true;
    } else {
      return Status::SyntaxError();
    }
  }
  if (!has_streams) return Status::SyntaxError();
  if (!has_group) return Status::Error(ErrorCode::kErr, "Missing GROUP option for XREADGROUP");
  return request;
}

Result<FeedId> ParseHistoryId(std::string_view word) {
  if (word == "$") {
    return Status::Error(
        ErrorCode::kErr,
        "The $ ID is meaningless in the context of XREADGROUP: you want to read the history of "
        "this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID "
        "would just return an empty result set.");
  }
  return ParseFeedId(word, 0);
}

Result<PendingRequest> ParsePending(Arguments words) {
  PendingRequest request;
  ArgumentCursor at(words, 0);
  if (words.size() < 3 || words.size() > 6) return Status::SyntaxError();
  if (at.TakeWord("IDLE")) {
    ASSIGN_OR_RETURN(request.idle_ms_min, at.TakeInteger());
    if (at.left() < 3) return Status::SyntaxError();
  }
  const std::string_view from = at.Take();
  const std::string_view to = at.Take();
  ASSIGN_OR_RETURN(const int64_t count, at.TakeInteger());
  request.count = count <= 0 ? 0 : std::min(static_cast<uint64_t>(count), kFeedEntriesMax);
  ASSIGN_OR_RETURN(request.range, ParseFeedRange(from, to));
  if (at.done()) return request;
  request.consumer = at.Take();
  request.of_consumer = true;
  return at.done() ? Result<PendingRequest>(request) : Status::SyntaxError();
}

// The first word that is no id ends the ids and begins the options. IDLE and TIME set the same
// thing, and the last one counts.
Result<ClaimRequest> ParseClaim(Arguments words, int64_t now_ms) {
  ClaimRequest request;
  ArgumentCursor at(words, 0);
  ASSIGN_OR_RETURN(request.idle_ms_min, Milliseconds(at.Take(), "min-idle-time", "XCLAIM"));
  while (!at.done()) {
    const Result<FeedId> id = ParseFeedId(at.Peek(), 0);
    if (!id.ok()) break;
    request.ids.push_back(*id);
    (void)at.Take();
  }
  while (!at.done()) {
    if (at.TakeWord("FORCE")) {
      request.force = true;
    } else if (at.TakeWord("JUSTID")) {
      request.just_ids = true;
    } else if (at.left() > 1 && at.TakeWord("IDLE")) {
      ASSIGN_OR_RETURN(const int64_t idle, Milliseconds(at.Take(), "IDLE option", "XCLAIM"));
      request.delivered_ms = idle < 0 ? now_ms : std::max<int64_t>(now_ms - idle, -1);
    } else if (at.left() > 1 && at.TakeWord("TIME")) {
      ASSIGN_OR_RETURN(request.delivered_ms, Milliseconds(at.Take(), "TIME option", "XCLAIM"));
    } else if (at.left() > 1 && at.TakeWord("RETRYCOUNT")) {
      ASSIGN_OR_RETURN(const int64_t times, Milliseconds(at.Take(), "RETRYCOUNT option", "XCLAIM"));
      request.times.reset();
      if (times >= 0) request.times = static_cast<uint64_t>(times);
    } else if (at.left() > 1 && at.TakeWord("LASTID")) {
      ASSIGN_OR_RETURN(request.last, ParseFeedId(at.Take(), 0));
    } else {
      return Status::Error(ErrorCode::kErr,
                           "Unrecognized XCLAIM option '" + std::string(at.Peek()) + "'");
    }
  }
  // A time to come is now.
  if (request.delivered_ms && (*request.delivered_ms < 0 || *request.delivered_ms > now_ms))
    request.delivered_ms = now_ms;
  return request;
}

Result<AutoClaimRequest> ParseAutoClaim(Arguments words) {
  AutoClaimRequest request;
  ArgumentCursor at(words, 0);
  ASSIGN_OR_RETURN(request.idle_ms_min, Milliseconds(at.Take(), "min-idle-time", "XAUTOCLAIM"));
  ASSIGN_OR_RETURN(request.range, ParseFeedRange(at.Take(), "+"));
  while (!at.done()) {
    if (at.left() > 1 && at.TakeWord("COUNT")) {
      const Result<int64_t> count = IntegerArgument(at.Take());
      if (!count.ok() || *count <= 0) return Status::Error(ErrorCode::kErr, "COUNT must be > 0");
      request.count = std::min(static_cast<uint64_t>(*count), kFeedEntriesMax);
    } else if (at.TakeWord("JUSTID")) {
      request.just_ids = true;
    } else {
      return Status::SyntaxError();
    }
  }
  return request;
}

Status CheckGroupOptions(Arguments words, bool creates) {
  ArgumentCursor at(words, 0);
  while (!at.done()) {
    if (creates && at.TakeWord("MKSTREAM")) continue;
    if (at.left() < 2 || !at.TakeWord("ENTRIESREAD")) {
      return Status::Error(ErrorCode::kErr,
                           "unknown subcommand or wrong number of arguments for '" +
                               std::string(creates ? "CREATE" : "SETID") + "'. Try XGROUP HELP.");
    }
    ASSIGN_OR_RETURN(const int64_t read, at.TakeInteger());
    if (read < -1)
      return Status::Error(ErrorCode::kErr, "value for ENTRIESREAD must be positive or -1");
  }
  return Status::Ok();
}

}  // namespace cellar
