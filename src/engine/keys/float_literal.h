// Numbers in text that are larger, or smaller, than all finite values of a float type, as 1e39 is
// for f32. No cell can be such a number, but each compares with it.
#pragma once

#include <string_view>

#include "base/text/number.h"
#include "engine/keys/value.h"

namespace cellar {

// 1 for a number above all finite values of the type, -1 for one below them, else 0: also for inf,
// which is a value of the type, and for what is no number. REQUIRES: IsFloatType(type).
inline int SideBeyondFloat(ValueType type, std::string_view literal) {
  float single = 0;
  double number = 0;
  const NumberError error =
      type == ValueType::kF32 ? ParseFloat(literal, &single) : ParseDouble(literal, &number);
  if (error != NumberError::kOutOfRange) return 0;
  return literal.front() == '-' ? -1 : 1;
}

// How a value of a float type compares with a number on that side: only the infinity there is
// further away.
inline int CompareBeyondFloat(double value, int side) {
  constexpr double kInfinity{__builtin_huge_val()};
  return value == side * kInfinity ? side : -side;
}

}  // namespace cellar
