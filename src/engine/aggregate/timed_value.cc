// See timed_value.h.
#include "engine/aggregate/timed_value.h"

#include "base/assert.h"

namespace cellar {

bool TimedValue::YieldsAtOneTime(Wanted wanted, const CellPlace& place) const {
  int order = place.row_key.compare(row_key());
  if (order == 0 && place.family != family_) order = place.family < family_ ? -1 : 1;
  if (order == 0) order = place.qualifier.compare(qualifier());
  return wanted == Wanted::kFirst ? order < 0 : order > 0;
}

// No more than is needed for the first one, as there may be many groups of few cells; from then on
// by half more, so that cells of growing length seldom come here.
size_t TimedValue::Grow(size_t bytes) {
  const size_t before = capacity_;
  const size_t capacity = before == 0 ? bytes : bytes + bytes / 2;
  buffer_ = std::make_unique_for_overwrite<char[]>(capacity);
  capacity_ = capacity;
  return capacity_ - before;
}

size_t TimedValue::Add(Wanted wanted, const TimedValue& other) {
  CELLAR_ASSERT(this != &other);
  if (!other.held_) return 0;
  const CellPlace place{.row_key = other.row_key(),
                        .family = other.family_,
                        .qualifier = other.qualifier(),
                        .timestamp_micros = other.timestamp_micros_};
  return YieldsTo(wanted, place) ? Hold(place, other.type_, other.stored()) : 0;
}

}  // namespace cellar
