// NumberStep: `STEP s` of a term of BY, which takes a number to the largest multiple of s that is
// not above it.
//
//   integers    by an integer s of at most 64 bits: in integers, exactly
//   floats      s and the float are the decimals that they are written as: 0.3 STEP 0.1 is 0.3,
//               though the doubles of that name are no multiples of each other. The result is the
//               double next to the multiple, which is never above the number. It is finite for a
//               finite number: below all doubles it is the lowest one
//   integers    by another s: as floats. Beyond 2^53 not every integer is a double, and several
//               would become one: refused
//
// Most floats need no decimals: of up to 15 digits no two have the same double, so that a multiple
// so short is compared as its double (see FloorShort).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/text/decimal.h"
#include "cellar/status.h"
#include "engine/aggregate/aggregate_value.h"

namespace cellar {

class NumberStep {
 public:
  // ERR unless it is a number above 0, of not more digits than 64 bits hold.
  static Result<NumberStep> Parse(std::string_view text);

  bool is_integer() const { return integer_ > 0; }
  // The multiple for a cell's or a component's value. False if it is an integer that no double is
  // exact for. REQUIRES: ClassOf(type) == kNumber.
  [[nodiscard]] bool Floor(ValueType type, std::string_view stored, Number* multiple) const;

  double FloorFloat(double value) const;
  double FloorFloat(float value) const;
  // REQUIRES: is_integer(), and -2^63 <= value < 2^64.
  int128_t FloorInteger(int128_t value) const;
  // The multiple behind one; of a float it may be no greater, where the step is nothing beside it.
  double NextFloat(double multiple) const;
  int128_t NextInteger(int128_t multiple) const { return multiple + integer_; }

 private:
  // The double next to `count` multiples. REQUIRES: count * digits_ is exact as a double.
  double Multiple(int64_t count) const;
  double FloorDecimal(const Decimal& value) const;
  double Nearest(bool negative, std::string digits, int64_t unit) const;

  uint64_t integer_{0};  // 0: it is none
  uint64_t digits_{1};   // s = digits_ * 10^unit_
  int64_t unit_{0};
  double nearest_{1};
  double power_{1};  // 10^|unit_|
  // A quotient below them has a multiple that is short. 0: none has.
  double quotients_{0};    // of doubles
  double quotients32_{0};  // of floats
};

}  // namespace cellar
