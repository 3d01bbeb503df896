// See feed.h.
#include "engine/feeds/feed.h"

#include <algorithm>

#include "base/coding.h"
#include "base/text/number.h"

namespace cellar {

int64_t FeedId::micros() const {
  constexpr auto kMsMax = static_cast<uint64_t>(INT64_MAX / 1000 - 1);
  if (ms > kMsMax) return INT64_MAX;
  return static_cast<int64_t>(ms * 1000 + std::min<uint64_t>(n / kFeedPlacesMax, 999));
}

std::string FeedId::text() const { return std::to_string(ms) + "-" + std::to_string(n); }

std::optional<FeedWord> ParseFeedWord(std::string_view word) {
  const size_t at = word.find('@');
  if (at == word.npos) return FeedWord{word, std::nullopt};
  uint64_t set = 0;
  const std::string_view digits = word.substr(at + 1);
  // One name for each.
  if (ParseUint64(digits, &set) != NumberError::kNone || std::to_string(set) != digits)
    return std::nullopt;
  return FeedWord{word.substr(0, at), set};
}

bool Feed::CoversTable(std::string_view table) const {
  return on.empty() ||
         std::any_of(on.begin(), on.end(), [table](const On& term) { return term.table == table; });
}

bool Feed::CoversFamily(std::string_view table, std::string_view family) const {
  return on.empty() || std::any_of(on.begin(), on.end(), [&](const On& term) {
           return term.table == table && (term.family.empty() || term.family == family);
         });
}

// definition  | v terms { b table, b family } | v prefixes { b } | v slice | v slices + flags
//             | keep i64 | after i64 |
namespace {
// Beside the number of slices, which is smaller.
constexpr uint64_t kOldFlag{1 << 20};
constexpr uint64_t kExpiredFlag{1 << 21};
constexpr uint64_t kByRowFlag{1 << 22};
constexpr uint64_t kRowsOnlyFlag{1 << 23};
constexpr uint64_t kHomeFlag{1 << 24};  // the home stands behind all else
static_assert(kFeedSlicesMax < kOldFlag);
}  // namespace

std::string EncodeFeedDefinition(const Feed& feed) {
  const bool has_home = feed.home != FeedHome{};
  std::string bytes;
  PutVarint64(&bytes, feed.on.size());
  for (const Feed::On& term : feed.on) {
    PutLengthPrefixed(&bytes, term.table);
    PutLengthPrefixed(&bytes, term.family);
  }
  PutVarint64(&bytes, feed.prefixes.size());
  for (const std::string& prefix : feed.prefixes) PutLengthPrefixed(&bytes, prefix);
  PutVarint64(&bytes, feed.slice);
  PutVarint64(&bytes, feed.slices | (feed.old ? kOldFlag : 0) | (feed.expired ? kExpiredFlag : 0) |
                          (feed.by_row ? kByRowFlag : 0) | (feed.rows_only ? kRowsOnlyFlag : 0) |
                          (has_home ? kHomeFlag : 0));
  PutFixed64(&bytes, static_cast<uint64_t>(feed.keep_micros));
  PutFixed64(&bytes, static_cast<uint64_t>(feed.after_micros));
  if (has_home) bytes += EncodeFeedHome(feed.home);
  return bytes;
}

bool DecodeFeedDefinition(std::string_view* from, Feed* feed) {
  uint64_t terms = 0;
  if (!GetVarint64(from, &terms) || terms > kFeedTermsMax) return false;
  for (uint64_t i = 0; i < terms; ++i) {
    std::string_view table;
    std::string_view family;
    if (!GetLengthPrefixed(from, &table) || !GetLengthPrefixed(from, &family)) return false;
    feed->on.push_back({std::string(table), std::string(family)});
  }
  uint64_t prefixes = 0;
  if (!GetVarint64(from, &prefixes) || prefixes > kFeedTermsMax) return false;
  for (uint64_t i = 0; i < prefixes; ++i) {
    std::string_view prefix;
    if (!GetLengthPrefixed(from, &prefix)) return false;
    feed->prefixes.emplace_back(prefix);
  }
  uint64_t keep = 0;
  uint64_t after = 0;
  if (!GetVarint64(from, &feed->slice) || !GetVarint64(from, &feed->slices) ||
      !GetFixed64(from, &keep) || !GetFixed64(from, &after)) {
    return false;
  }
  feed->old = (feed->slices & kOldFlag) != 0;
  feed->expired = (feed->slices & kExpiredFlag) != 0;
  feed->by_row = (feed->slices & kByRowFlag) != 0;
  feed->rows_only = (feed->slices & kRowsOnlyFlag) != 0;
  if ((feed->slices & kHomeFlag) != 0 && !DecodeFeedHome(from, &feed->home)) return false;
  feed->slices &= kOldFlag - 1;
  feed->keep_micros = static_cast<int64_t>(keep);
  feed->after_micros = static_cast<int64_t>(after);
  feed->through_micros = feed->after_micros;
  return feed->keep_micros > 0 && feed->after_micros >= 0 &&
         (feed->slices == 0 || feed->slice < feed->slices);
}

void EncodeFeedSchemas(const FeedSchemas& schemas, std::string* to) {
  PutVarint64(to, schemas.tables.size());
  for (const auto& [table, commands] : schemas.tables) {
    PutLengthPrefixed(to, table);
    PutLengthPrefixed(to, commands);
  }
}

bool DecodeFeedSchemas(std::string_view* from, FeedSchemas* schemas) {
  uint64_t tables = 0;
  if (!GetVarint64(from, &tables)) return false;
  for (uint64_t i = 0; i < tables; ++i) {
    std::string_view table;
    std::string_view commands;
    if (!GetLengthPrefixed(from, &table) || !GetLengthPrefixed(from, &commands)) return false;
    schemas->tables.emplace_back(table, commands);
  }
  return true;
}

std::string EncodeFeedHome(const FeedHome& home) {
  std::string bytes;
  PutVarint64(&bytes, home.set);
  PutVarint64(&bytes, home.from ? *home.from + 1 : 0);
  bytes.push_back(home.awaits ? 1 : 0);
  PutVarint64(&bytes, home.move);
  return bytes;
}

bool DecodeFeedHome(std::string_view* from, FeedHome* home) {
  uint64_t whence = 0;
  if (!GetVarint64(from, &home->set) || !GetVarint64(from, &whence) || from->empty()) return false;
  home->from = whence == 0 ? std::nullopt : std::optional(whence - 1);
  home->awaits = from->front() != 0;
  from->remove_prefix(1);
  return GetVarint64(from, &home->move) && (!home->awaits || home->from);
}

std::string EncodeFeedTrim(int64_t through_micros, const FeedId& dropped) {
  std::string bytes;
  PutFixed64(&bytes, static_cast<uint64_t>(through_micros));
  PutFixed64(&bytes, dropped.ms);
  PutFixed64(&bytes, dropped.n);
  return bytes;
}

bool DecodeFeedTrim(std::string_view from, Feed* feed) {
  uint64_t through = 0;
  FeedId dropped;
  if (!GetFixed64(&from, &through) || !GetFixed64(&from, &dropped.ms) ||
      !GetFixed64(&from, &dropped.n) || !from.empty() || through > INT64_MAX) {
    return false;
  }
  feed->through_micros = std::max(feed->through_micros, static_cast<int64_t>(through));
  feed->dropped = std::max(feed->dropped, dropped);
  return true;
}

}  // namespace cellar
