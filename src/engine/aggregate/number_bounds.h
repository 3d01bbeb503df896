// NumberBounds: the bounds of a HISTOGRAM. Each is the decimal that it is written as, and a stored
// float the decimal that it prints as: 0.1 as f32 is not below the bound 0.1, nor is 0.7, though
// the float of that name is less than seven tenths.
//
// Of every bound there is the least value of each kind that is not below it, so that a cell is
// compared in its own kind.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/text/decimal.h"
#include "engine/aggregate/aggregate_value.h"

namespace cellar {

class NumberBounds {
 public:
  enum class Refusal : uint8_t { kNone, kNoNumber, kNotAbove };

  // Adds one, which has to be above the one before.
  Refusal Add(std::string_view text);
  size_t size() const { return integers_.size(); }
  // How many of them are not above a cell's number.
  size_t NotAbove(ValueType type, const Number& number) const;

 private:
  std::vector<int128_t> integers_;
  std::vector<double> doubles_;
  std::vector<float> floats_;
  Decimal last_;
  double last_nearest_{0};  // tells infinities
};

}  // namespace cellar
