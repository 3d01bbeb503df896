// Feed: what a feed is, as plain data: which changes it tells, and how long it keeps them. What
// it tells is nowhere but in the log (store/history/feed_decoder.h); this is the definition, which
// is a part of the catalog, and changes by mutations like a schema.
//
// FeedId names an entry: when its step was committed, and the place among the entries that this
// feed tells of the step. As text `ms-n`:
//
//   ms   milliseconds of the commit time
//   n    microseconds in it x 1,000,000 + place
//
// A step with more entries than fit takes further microseconds; its commit time is the last one.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/status.h"

namespace cellar {

inline constexpr size_t kFeedsMax{1'000};
inline constexpr size_t kFeedTermsMax{256};  // of ON, of PREFIX
inline constexpr uint64_t kFeedSlicesMax{65'536};
inline constexpr uint64_t kFeedPlacesMax{1'000'000};  // in a microsecond
inline constexpr int64_t kFeedKeepMsDefault{24LL * 3600 * 1000};

struct FeedId {
  uint64_t ms{0};
  uint64_t n{0};

  static FeedId Of(int64_t micros, uint64_t place) {
    micros += static_cast<int64_t>(place / kFeedPlacesMax);
    return {static_cast<uint64_t>(micros / 1000),
            static_cast<uint64_t>(micros % 1000) * kFeedPlacesMax + place % kFeedPlacesMax};
  }
  // The last one that a microsecond can have.
  static FeedId LastOf(int64_t micros) { return Of(micros, kFeedPlacesMax - 1); }
  static FeedId Max() { return {UINT64_MAX, UINT64_MAX}; }
  // The commit time of the entry; of an id that no entry can have the last one before it.
  int64_t micros() const;
  // The id right behind, right before. REQUIRES: not the last one, not the first one.
  FeedId Next() const { return n == UINT64_MAX ? FeedId{ms + 1, 0} : FeedId{ms, n + 1}; }
  FeedId Previous() const { return n == 0 ? FeedId{ms - 1, UINT64_MAX} : FeedId{ms, n - 1}; }
  std::string text() const;

  // NOLINTNEXTLINE(modernize-use-nullptr): what clang-tidy 14 sees in each defaulted <=>
  friend constexpr auto operator<=>(const FeedId&, const FeedId&) = default;
};

// How many microseconds a step of so many changes takes.
constexpr int64_t FeedMicrosOfStep(uint64_t changes) {
  return changes == 0 ? 1 : 1 + static_cast<int64_t>((changes - 1) / kFeedPlacesMax);
}
// Payloads below it cannot hold so many changes that a step takes more than one.
inline constexpr size_t kFeedLargeStepBytes{2 << 20};

// Where the groups of a whole feed are, in a cluster of several sets (feed_group.h).
struct FeedHome {
  uint64_t set{0};
  // They are on their way from there: who is home takes them before it does anything with them.
  std::optional<uint64_t> from{};
  // Of the home itself: it has not got them yet.
  bool awaits{false};
  // While they are on their way: the change of the schema that said so. No two moves have the same.
  uint64_t move{0};

  friend bool operator==(const FeedHome&, const FeedHome&) = default;
};

struct Feed {
  struct On {
    std::string table;
    std::string family;  // empty: the whole table
    friend bool operator==(const On&, const On&) = default;
  };

  uint64_t id{0};  // of the numbers that tables have
  std::string keyspace;
  std::string name;

  std::vector<On> on;  // empty: every table of the keyspace
  std::vector<std::string> prefixes;
  uint64_t slice{0};
  uint64_t slices{0};   // 0: all rows
  bool old{false};      // what was there before a put, and each cell that is deleted
  bool expired{false};  // what retention reclaims
  bool by_row{false};   // an entry has all changes of a row in a step, not one
  // Of a set of a cluster that is not set 0: what becomes of tables set 0 tells alone.
  bool rows_only{false};
  FeedHome home{};
  int64_t keep_micros{0};
  // Steps up to this commit time were before it was created.
  int64_t after_micros{0};

  // What the log says to be gone: entries up to `through_micros`, of which `dropped` was the last
  // one (0-0: there was none).
  int64_t through_micros{0};
  FeedId dropped{};

  bool tells_pre_images() const { return old || expired; }
  bool covers_keyspace() const { return on.empty(); }
  bool CoversTable(std::string_view table) const;
  bool CoversFamily(std::string_view table, std::string_view family) const;
};

// A feed as a command names it: `f`, or `f@3`, what set 3 of a cluster tells.
struct FeedWord {
  std::string_view feed;
  std::optional<uint64_t> set;
};
// Nothing if what stands behind an `@` is no number of a set.
std::optional<FeedWord> ParseFeedWord(std::string_view word);

// The definition, without names and id. A schema of each table that is covered stands behind it in
// a mutation: what the feed tells first.
std::string EncodeFeedDefinition(const Feed& feed);
[[nodiscard]] bool DecodeFeedDefinition(std::string_view* from, Feed* feed);

struct FeedSchemas {
  std::vector<std::pair<std::string, std::string>> tables;  // name, TABLE SHOW
};
void EncodeFeedSchemas(const FeedSchemas& schemas, std::string* to);
[[nodiscard]] bool DecodeFeedSchemas(std::string_view* from, FeedSchemas* schemas);

// What kFeedHome says: | v set | v from + 1; 0: nowhere | awaits u8 | v move |
std::string EncodeFeedHome(const FeedHome& home);
[[nodiscard]] bool DecodeFeedHome(std::string_view* from, FeedHome* home);

// What kTrimFeed says.
std::string EncodeFeedTrim(int64_t through_micros, const FeedId& dropped);
[[nodiscard]] bool DecodeFeedTrim(std::string_view from, Feed* feed);

}  // namespace cellar
