// See spread.h.
#include "engine/aggregate/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"

namespace cellar {

long double Spread::DistanceOf(const Number& number) const {
  if (number.is_integer && origin_.is_integer) {
    const int128_t distance = number.integer - origin_.integer;
    const auto narrow = static_cast<int64_t>(distance);
    if (narrow == distance) [[likely]]
      return static_cast<long double>(narrow);  // an instruction, where the wider is a call
    return static_cast<long double>(distance);
  }
  const auto widen = [](const Number& each) {
    return each.is_integer ? static_cast<long double>(each.integer)
                           : static_cast<long double>(each.floating);
  };
  return widen(number) - widen(origin_);
}

void Spread::Add(const Number& number) {
  if (!number.is_integer && std::isinf(number.floating)) infinite_ = true;
  if (folded_ == 0) {
    origin_ = number;
    folded_ = 1;
    return;
  }
  const long double distance = DistanceOf(number) - mean_;
  block_sum_ += distance;
  block_squares_ += distance * distance;
  if (++waiting_ == kBlock) Fold();
}

void Spread::Fold() {
  if (waiting_ == 0) return;
  const long double mean = block_sum_ / static_cast<long double>(waiting_);
  // Rounding may leave less than nothing where all are equal.
  const long double squares = std::max(block_squares_ - block_sum_ * mean, 0.0L);
  Merge(waiting_, mean_ + mean, squares);
  waiting_ = 0;
  block_sum_ = block_squares_ = 0;
}

void Spread::Merge(uint64_t count, long double mean, long double squares) {
  const auto here = static_cast<long double>(folded_);
  const auto there = static_cast<long double>(count);
  const long double delta = mean - mean_;
  const long double part = there / (here + there);
  mean_ += delta * part;
  squares_ += squares + delta * delta * (here * part);
  folded_ += count;
}

void Spread::Add(const Spread& other) {
  if (other.count() == 0) return;
  Spread whole = other;
  whole.Fold();
  if (folded_ == 0) {
    *this = whole;
    return;
  }
  Fold();
  infinite_ |= whole.infinite_;
  Merge(whole.folded_, whole.mean_ + DistanceOf(whole.origin_), whole.squares_);
}

long double Spread::SampleVariance() const {
  CELLAR_ASSERT(count() >= 2);
  if (infinite_) return std::numeric_limits<long double>::quiet_NaN();
  Spread whole = *this;
  whole.Fold();
  return whole.squares_ / static_cast<long double>(whole.folded_ - 1);
}

double Spread::Variance() const { return static_cast<double>(SampleVariance()); }
double Spread::Deviation() const { return static_cast<double>(std::sqrt(SampleVariance())); }

}  // namespace cellar
