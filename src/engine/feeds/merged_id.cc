// See merged_id.h.
#include "engine/feeds/merged_id.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr uint64_t kMicrosInMs{1000};
constexpr uint64_t kSetsMax{1'000'000};
constexpr uint64_t kMicroN{kSetsMax * kFeedPlacesMax};  // what one microsecond is of a merged n

}  // namespace

FeedId MergedIdOf(uint64_t set, const FeedId& id) {
  CELLAR_ASSERT(set < kSetsMax && id.n < kMicrosInMs * kFeedPlacesMax);
  const uint64_t micros = id.n / kFeedPlacesMax;
  return {id.ms, (micros + 1) * kMicroN + set * kFeedPlacesMax + id.n % kFeedPlacesMax};
}

bool IsOwnId(const FeedId& id) { return id.n < kMicrosInMs * kFeedPlacesMax; }

bool IsMergedId(const FeedId& id) { return id.n >= kMicroN && id.n / kMicroN <= kMicrosInMs; }

uint64_t SetOfMerged(const FeedId& id) {
  CELLAR_ASSERT(IsMergedId(id));
  return id.n % kMicroN / kFeedPlacesMax;
}

FeedId OwnIdUpTo(uint64_t set, const FeedId& id) {
  const auto before = [](const FeedId& first) {
    return first == FeedId{} ? first : first.Previous();
  };
  if (id.n < kMicrosInMs * kFeedPlacesMax) return id;
  // Right before the first merged one, as an open bound has it.
  if (id.n < kMicroN) return before({id.ms, 0});
  const uint64_t micros = id.n / kMicroN - 1;
  if (micros >= kMicrosInMs) return {id.ms, kMicrosInMs * kFeedPlacesMax - 1};
  const uint64_t of_set = id.n % kMicroN / kFeedPlacesMax;
  const FeedId first{id.ms, micros * kFeedPlacesMax};
  if (of_set == set) return {id.ms, first.n + id.n % kFeedPlacesMax};
  if (of_set > set) return {id.ms, first.n + kFeedPlacesMax - 1};
  return before(first);
}

}  // namespace cellar
