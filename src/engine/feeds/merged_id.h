// Ids of entries in a feed that is read of all sets of a cluster together.
//
// A set's own ids (feed.h) name a microsecond and a place in it; two sets may have the same one. In
// the merged feed they stand in this order, and an id says of which set it is:
//
//   ms   milliseconds of the commit time
//   n    (microseconds in it + 1) x 10^12 + set x 10^6 + place
//
// The 1 keeps them apart from a set's own, whose n is below 10^9: each of the two is understood
// wherever an id is. n stays below 2^53.
#pragma once

#include <cstdint>

#include "engine/feeds/feed.h"

namespace cellar {

// Of an entry of that set. REQUIRES: set < 1,000,000; the id is the set's own.
FeedId MergedIdOf(uint64_t set, const FeedId& id);

// Whether it is one that a set has of its own; whether it can be a merged one, and then of which
// set.
bool IsOwnId(const FeedId& id);
bool IsMergedId(const FeedId& id);
uint64_t SetOfMerged(const FeedId& id);

// Of the set's own ids the last one that is not behind `id`, a merged one; an own one is itself.
FeedId OwnIdUpTo(uint64_t set, const FeedId& id);

}  // namespace cellar
