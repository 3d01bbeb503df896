// Ids of a feed that is merged of several sets: one order, in which each set's own ids keep theirs.
#include "engine/feeds/merged_id.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"

namespace merged_id_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

struct Entry {
  uint64_t ms, micros, set, place;
  friend auto operator<=>(const Entry&, const Entry&) = default;
  FeedId own() const { return {ms, micros * kFeedPlacesMax + place}; }
  FeedId merged() const { return MergedIdOf(set, own()); }
};

std::vector<Entry> Drawn(Random& random) {
  const auto edge = [&random](uint64_t max) -> uint64_t {
    switch (random.Below(4)) {
      case 0:
        return 0;
      case 1:
        return max;
      default:
        return random.Below(max + 1);
    }
  };
  std::vector<Entry> entries(40);
  for (Entry& entry : entries)
    entry = Entry{1 + edge(2), edge(999), edge(random.Below(2) == 0 ? 2 : 999'999),
                  edge(kFeedPlacesMax - 1)};
  std::sort(entries.begin(), entries.end());
  return entries;
}

TEST_CASE("Merged ids are in one order, and name an entry of a set", "[feeds]") {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Entry> entries = Drawn(random);
    for (size_t i = 0; i < entries.size(); ++i) {
      const FeedId id = entries[i].merged();
      REQUIRE(OwnIdUpTo(entries[i].set, id) == entries[i].own());
      REQUIRE(id.n < (uint64_t{1} << 53));
      for (size_t j = 0; j < entries.size(); ++j) {
        REQUIRE((entries[j] <= entries[i]) == (entries[j].merged() <= id));
        // As a set takes it: what is up to the merged one is up to its own one.
        REQUIRE((entries[j] <= entries[i]) == (entries[j].own() <= OwnIdUpTo(entries[j].set, id)));
        // Before and behind it, as bounds of ranges that are open have it.
        REQUIRE((entries[j] < entries[i]) ==
                (entries[j].own() <= OwnIdUpTo(entries[j].set, id.Previous())));
      }
    }
  }
}

TEST_CASE("Ids of a set are understood beside merged ones", "[feeds]") {
  for (const uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{999'999'999}})
    REQUIRE(OwnIdUpTo(3, {5, n}) == FeedId{5, n});
  // What is no id: the end of its millisecond.
  REQUIRE(OwnIdUpTo(3, {5, UINT64_MAX}) == FeedId{5, 999'999'999});
  REQUIRE(OwnIdUpTo(3, {5, 1'001'000'000'000'000}) == FeedId{5, 999'999'999});
  // Right before all merged ones of it.
  REQUIRE(OwnIdUpTo(3, {5, 999'999'999'999}) == FeedId{4, UINT64_MAX});
  // Nothing is before the first one.
  REQUIRE(OwnIdUpTo(3, {0, 1'000'000'000'000}) == FeedId{});
  REQUIRE(OwnIdUpTo(3, {1, 1'000'000'000'000}) == FeedId{0, UINT64_MAX});
  REQUIRE(OwnIdUpTo(0, {1, 1'000'000'000'000}) == FeedId{1, 0});
}

TEST_CASE("A feed is named with a set, or without", "[feeds]") {
  const auto text = [](std::string_view word) -> std::string {
    const std::optional<FeedWord> read = ParseFeedWord(word);
    if (!read) return "none";
    return std::string(read->feed) + " " + (read->set ? std::to_string(*read->set) : "all");
  };
  REQUIRE(text("f") == "f all");
  REQUIRE(text("k/f@0") == "k/f 0");
  REQUIRE(text("f@18446744073709551615") == "f 18446744073709551615");
  for (const char* const word : {"f@", "f@x", "f@-1", "f@1@2", "f@18446744073709551616", "f@1 "})
    REQUIRE(text(word) == "none");
}

}  // namespace merged_id_test
