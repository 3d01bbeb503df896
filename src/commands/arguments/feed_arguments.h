// The words of feeds: FEED CREATE, ids of entries, XREAD. As text in and plain structs out, with
// Redis' errors where the command is Redis' own.
//
//   id        ms-n | ms | - | + | $            as in Redis' streams
//   bound     [(]id
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "engine/feeds/feed.h"

namespace cellar {

inline constexpr uint64_t kFeedEntriesDefault{1'000};  // of a reply
inline constexpr uint64_t kFeedEntriesMax{100'000};

// `ms-n`, or `ms` alone: then n is `n_default`. Redis' error for what is none.
Result<FeedId> ParseFeedId(std::string_view word, uint64_t n_default);

// The entries behind `after` up to `to`.
struct FeedRange {
  FeedId after;
  FeedId to{FeedId::Max()};
  bool from_oldest{false};  // `-`, `0` and `0-0`: where the oldest stands does not matter
  bool empty{false};        // no id can be in it
};
Result<FeedRange> ParseFeedRange(std::string_view from, std::string_view to);
// Of a whole XRANGE, or, in reverse, XREVRANGE. *count: 0 if nothing is to be read.
Status ParseFeedRangeWords(Arguments args, bool reverse, FeedRange* range, uint64_t* count);

// XREAD's arguments behind the command's name.
struct FeedReadRequest {
  struct Stream {
    std::string_view name;
    FeedId after;
    bool from_oldest{false};
    bool from_end{false};  // `$`: what comes from now on
    bool last_one{false};  // `+`
  };
  uint64_t count{kFeedEntriesDefault};
  std::optional<int64_t> block_ms;  // 0: for ever
  std::vector<Stream> streams;
};
Result<FeedReadRequest> ParseFeedRead(ArgumentCursor at);

// Of COUNT: how many entries a reply may have; 0 and less stand for the default.
Result<uint64_t> ParseFeedCount(std::string_view word);
// Of BLOCK, milliseconds.
Result<int64_t> ParseBlock(std::string_view word);

// What follows the name in FEED CREATE, up to the end.
Result<Feed> ParseFeedCreate(ArgumentCursor at);

}  // namespace cellar
