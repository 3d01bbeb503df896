// See growth.h.
#include "engine/aggregate/growth.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

void AddNumber(const Number& number, ExactSum* sum) {
  if (number.is_integer)
    sum->AddInteger(number.integer);
  else
    sum->AddDouble(number.floating);
}

Number Negative(Number number) {
  number.integer = -number.integer;
  number.floating = -number.floating;
  return number;
}

}  // namespace

void Growth::AddStep(const Number& earlier, const Number& later) {
  const int order = CompareNumbers(later, earlier);
  if (order == 0) return;  // two infinities have no difference
  AddNumber(later, &sum_);
  if (order > 0) AddNumber(Negative(earlier), &sum_);
}

void Growth::Add(const CellPlace& place, const Number& number) {
  CELLAR_ASSERT(place.column != 0);
  const int64_t micros = place.timestamp_micros;
  if (place.column == column_) {
    if (micros < micros_)
      AddStep(number, number_);
    else
      AddStep(number_, number);
  }
  if (!number.is_integer) sum_.AddDouble(0);  // of floats the sum is one, whatever it comes to
  column_ = place.column;
  number_ = number;
  micros_ = micros;
  first_micros_ = std::min(first_micros_, micros);
  last_micros_ = std::max(last_micros_, micros);
}

void Growth::Add(const Growth& other) {
  sum_.Add(other.sum_);
  first_micros_ = std::min(first_micros_, other.first_micros_);
  last_micros_ = std::max(last_micros_, other.last_micros_);
}

}  // namespace cellar
