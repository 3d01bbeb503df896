// See number_bounds.h.
#include "engine/aggregate/number_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

template <typename T>
size_t CountNotAbove(const std::vector<T>& bounds, T number) {
  return static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), number) -
                             bounds.begin());
}

// `nearest` is the value next to the bound: it or the one above is the least that is not below.
template <typename T>
T LeastNotBelow(T nearest, const Decimal& bound) {
  if (CompareDecimals(DecimalOf(nearest), bound) >= 0) return nearest;
  return std::nextafter(nearest, std::numeric_limits<T>::infinity());
}

float LeastFloat(std::string_view text, const Decimal& bound) {
  float nearest = 0;
  if (ParseFloat(text, &nearest) == NumberError::kNone) return LeastNotBelow(nearest, bound);
  return bound.negative ? std::numeric_limits<float>::lowest()
                        : std::numeric_limits<float>::infinity();
}

}  // namespace

NumberBounds::Refusal NumberBounds::Add(std::string_view text) {
  double nearest = 0;
  DecimalFloor floor{};
  if (ParseDouble(text, &nearest) != NumberError::kNone) return Refusal::kNoNumber;
  const bool parsed = ParseDecimalFloor(text, &floor) == NumberError::kNone;
  CELLAR_ASSERT(parsed);
  Decimal bound;
  const bool finite = std::isfinite(nearest);
  if (finite && !ParseDecimal(text, &bound)) return Refusal::kNoNumber;
  if (size() > 0) {
    const bool both = finite && std::isfinite(last_nearest_);
    if (both ? CompareDecimals(bound, last_) <= 0 : nearest <= last_nearest_)
      return Refusal::kNotAbove;
  }
  integers_.push_back(floor.floor + (floor.exact || !finite ? 0 : 1));
  doubles_.push_back(finite ? LeastNotBelow(nearest, bound) : nearest);
  floats_.push_back(finite ? LeastFloat(text, bound) : static_cast<float>(nearest));
  last_ = std::move(bound);
  last_nearest_ = nearest;
  return Refusal::kNone;
}

size_t NumberBounds::NotAbove(ValueType type, const Number& number) const {
  if (number.is_integer) return CountNotAbove(integers_, number.integer);
  // Its number came from a float, and is one.
  if (type == ValueType::kF32) return CountNotAbove(floats_, static_cast<float>(number.floating));
  return CountNotAbove(doubles_, number.floating);
}

}  // namespace cellar
