// See feed_arguments.h.
#include "commands/arguments/feed_arguments.h"

#include <algorithm>
#include <limits>

#include "base/text/duration.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/arguments/syntax_error.h"

namespace cellar {
namespace {

constexpr int64_t kBlockMsMax{std::numeric_limits<int64_t>::max() / 4000};

Status BadId() {
  return Status::Error(ErrorCode::kErr, "Invalid stream ID specified as stream command argument");
}

// Digits only: no sign, no blank.
bool ParseDigits(std::string_view word, uint64_t* number) {
  if (word.empty() || word.size() > 20) return false;
  uint64_t value = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return false;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *number = value;
  return true;
}

bool IsOldest(std::string_view word) { return word == "-" || word == "0" || word == "0-0"; }

Status ParseStream(std::string_view name, std::string_view id, FeedReadRequest::Stream* stream) {
  stream->name = name;
  if (id == "$") {
    stream->from_end = true;
  } else if (id == "+") {
    stream->last_one = true;
  } else if (id == ">") {
    return Status::Error(ErrorCode::kErr,
                         "The > ID can be specified only when calling XREADGROUP using the GROUP "
                         "<group> <consumer> option.");
  } else {
    stream->from_oldest = id == "0" || id == "0-0";
    ASSIGN_OR_RETURN(stream->after, ParseFeedId(id, 0));
  }
  return Status::Ok();
}

Status OnlyOfGroups(std::string_view option) {
  return Status::Error(ErrorCode::kErr, "The " + std::string(option) +
                                            " option is only supported by XREADGROUP. You called "
                                            "XREAD instead.");
}

// Behind ON, or TABLE: SNAPSHOT CREATE's word for the same.
Status TakeOn(std::string_view option, ArgumentCursor* at, Feed* feed) {
  constexpr std::string_view kWords{"count table|table:family..."};
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny(option, kWords));
  ASSIGN_OR_RETURN(const uint64_t count, ParseWordCount(option, kWords, word, 0));
  if (count > kFeedTermsMax)
    return Status::Error(ErrorCode::kTooLarge,
                         "a feed is ON at most " + std::to_string(kFeedTermsMax) + " names");
  if (count > at->left()) return TooFewWords(option, count, at->left());
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view table = at->Take();
    std::string_view family;
    if (IsColumn(table)) {
      const std::string_view term = table;
      (void)SplitColumn(term, &table, &family);
      RETURN_IF_ERROR(CheckName("family", family));
    }
    RETURN_IF_ERROR(CheckName("table", table));
    Feed::On on{std::string(table), std::string(family)};
    if (std::find(feed->on.begin(), feed->on.end(), on) == feed->on.end())
      feed->on.push_back(std::move(on));
  }
  return Status::Ok();
}

Status TakeSlice(ArgumentCursor* at, Feed* feed) {
  if (feed->slices != 0) return RepeatedOption("SLICE");
  if (at->left() < 2) return IncompleteOption("SLICE", "index count");
  ASSIGN_OR_RETURN(feed->slice, ParseCount("the SLICE", at->Take(), 0));
  ASSIGN_OR_RETURN(feed->slices, ParseCount("the number of slices", at->Take(), 1));
  if (feed->slices > kFeedSlicesMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         "a feed is one of at most " + std::to_string(kFeedSlicesMax) + " slices");
  }
  if (feed->slice < feed->slices) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "SLICE counts from 0 to " +
                                            std::to_string(feed->slices - 1) + " of " +
                                            std::to_string(feed->slices) + " slices");
}

}  // namespace

Result<FeedId> ParseFeedId(std::string_view word, uint64_t n_default) {
  const size_t dash = word.find('-');
  FeedId id{0, n_default};
  if (!ParseDigits(word.substr(0, dash), &id.ms)) return BadId();
  if (dash != std::string_view::npos && !ParseDigits(word.substr(dash + 1), &id.n)) return BadId();
  return id;
}

Result<uint64_t> ParseFeedCount(std::string_view word) {
  ASSIGN_OR_RETURN(const int64_t count, IntegerArgument(word));
  return count <= 0 ? kFeedEntriesDefault : std::min(static_cast<uint64_t>(count), kFeedEntriesMax);
}

Result<int64_t> ParseBlock(std::string_view word) {
  const Result<int64_t> block = IntegerArgument(word);
  if (!block.ok() || *block > kBlockMsMax)
    return Status::Error(ErrorCode::kErr, "timeout is not an integer or out of range");
  if (*block < 0) return Status::Error(ErrorCode::kErr, "timeout is negative");
  return *block;
}

Result<FeedRange> ParseFeedRange(std::string_view from, std::string_view to) {
  FeedRange range;
  const bool from_behind = from.starts_with('(');
  const bool to_before = to.starts_with('(');
  if (from_behind) from.remove_prefix(1);
  if (to_before) to.remove_prefix(1);
  if (from == "-" || from == "+") {
    if (from_behind) return BadId();
    range.empty = from == "+";
    range.from_oldest = from == "-";
  } else {
    ASSIGN_OR_RETURN(const FeedId id, ParseFeedId(from, 0));
    range.from_oldest = !from_behind && IsOldest(from);
    if (from_behind && id == FeedId::Max())
      return Status::Error(ErrorCode::kErr, "invalid start ID for the interval");
    // `after` is exclusive, so the id before it takes its place; 0-0 has none.
    range.after = from_behind || id == FeedId{} ? id : id.Previous();
  }
  if (to == "-" || to == "+") {
    if (to_before) return BadId();
    range.empty = range.empty || to == "-";
  } else {
    ASSIGN_OR_RETURN(const FeedId id, ParseFeedId(to, UINT64_MAX));
    if (to_before && id == FeedId{})
      return Status::Error(ErrorCode::kErr, "invalid end ID for the interval");
    range.to = to_before ? id.Previous() : id;
  }
  range.empty = range.empty || range.to <= range.after;
  return range;
}

Status ParseFeedRangeWords(Arguments args, bool reverse, FeedRange* range, uint64_t* count) {
  ASSIGN_OR_RETURN(*range, ParseFeedRange(args[reverse ? 3 : 2], args[reverse ? 2 : 3]));
  *count = kFeedEntriesDefault;
  ArgumentCursor at(args, 4);
  while (!at.done()) {
    if (!at.TakeWord("COUNT")) return Status::SyntaxError();
    ASSIGN_OR_RETURN(const int64_t wanted, at.TakeInteger());
    *count = wanted <= 0 ? 0 : std::min(static_cast<uint64_t>(wanted), kFeedEntriesMax);
  }
  return Status::Ok();
}

// Options end with STREAMS; what follows are names, then as many ids. GROUP and NOACK are
// XREADGROUP's and get an error that says so.
Result<FeedReadRequest> ParseFeedRead(ArgumentCursor at) {
  FeedReadRequest request;
  bool has_streams = false;
  while (!has_streams && !at.done()) {
    if (at.TakeWord("COUNT")) {
      if (at.done()) return Status::SyntaxError();
      ASSIGN_OR_RETURN(request.count, ParseFeedCount(at.Take()));
    } else if (at.TakeWord("BLOCK")) {
      if (at.done()) return Status::SyntaxError();
      ASSIGN_OR_RETURN(request.block_ms, ParseBlock(at.Take()));
    } else if (at.TakeWord("STREAMS")) {
      has_streams = true;
    } else if (at.left() > 2 && at.TakeWord("GROUP")) {
      return OnlyOfGroups("GROUP");
    } else if (at.TakeWord("NOACK")) {
      return OnlyOfGroups("NOACK");
    } else {
      return Status::SyntaxError();
    }
  }
  if (!has_streams) return Status::SyntaxError();
  const Arguments words = at.Rest();
  if (words.empty() || words.size() % 2 != 0) {
    return Status::Error(ErrorCode::kErr,
                         "Unbalanced 'xread' list of streams: for each stream key an ID, '+', or "
                         "'$' must be specified.");
  }
  const size_t count = words.size() / 2;
  request.streams.resize(count);
  for (size_t i = 0; i < count; ++i)
    RETURN_IF_ERROR(ParseStream(words[i], words[count + i], &request.streams[i]));
  return request;
}

// Options come in any order. ON is needed, PREFIX may be repeated, every other one may not.
Result<Feed> ParseFeedCreate(ArgumentCursor at) {
  Feed feed;
  bool has_on = false;
  bool has_entries = false;
  int64_t keep_ms = 0;
  while (!at.done()) {
    const bool on = at.TakeWord("ON");
    if (on || at.TakeWord("TABLE")) {
      const std::string_view option = on ? "ON" : "TABLE";
      if (has_on) return RepeatedOption(option);
      has_on = true;
      RETURN_IF_ERROR(TakeOn(option, &at, &feed));
    } else if (at.TakeWord("PREFIX")) {
      ASSIGN_OR_RETURN(const std::string_view prefix, at.TakeAny("PREFIX", "prefix"));
      if (feed.prefixes.size() == kFeedTermsMax) {
        return Status::Error(ErrorCode::kTooLarge,
                             "a feed has at most " + std::to_string(kFeedTermsMax) + " prefixes");
      }
      feed.prefixes.emplace_back(prefix);
    } else if (at.TakeWord("SLICE")) {
      RETURN_IF_ERROR(TakeSlice(&at, &feed));
    } else if (at.TakeWord("OLD")) {
      if (feed.old) return RepeatedOption("OLD");
      feed.old = true;
    } else if (at.TakeWord("EXPIRED")) {
      if (feed.expired) return RepeatedOption("EXPIRED");
      feed.expired = true;
    } else if (at.TakeWord("ENTRIES")) {
      if (has_entries) return RepeatedOption("ENTRIES");
      has_entries = true;
      feed.by_row = at.TakeWord("ROW");
      if (!feed.by_row && !at.TakeWord("CELL")) {
        if (at.done()) return IncompleteOption("ENTRIES", "CELL|ROW");
        return UnexpectedWord(at.Peek(), "CELL or ROW");
      }
    } else if (at.TakeWord("KEEP")) {
      if (keep_ms != 0) return RepeatedOption("KEEP");
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("KEEP", "duration"));
      ASSIGN_OR_RETURN(keep_ms, ParseDurationMs(word));
    } else {
      return UnexpectedWord(at.Peek(), "ON, PREFIX, SLICE, OLD, EXPIRED, ENTRIES or KEEP");
    }
  }
  if (!has_on) return SyntaxErrorBecause("a feed needs ON");
  feed.keep_micros = (keep_ms == 0 ? kFeedKeepMsDefault : keep_ms) * kMicrosPerMs;
  return feed;
}

}  // namespace cellar
