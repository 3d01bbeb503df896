// Decimal: a finite number as its digits say it, exactly.
//
// 0.1 is no double, and the double that is written so is a little more. Where a decimal of a
// request meets one that is stored, both are taken as they are written: a stored float as the
// fewest digits that read back to it (number.h), which is what its owner has put there and sees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/number.h"

namespace cellar {

// 0.DIGITS * 10^exponent.
struct Decimal {
  bool negative{false};  // never of zero
  std::string digits;    // none of zero; neither the first nor the last one is a 0
  int64_t exponent{0};

  bool is_zero() const { return digits.empty(); }
  // The power of ten of the last digit.
  int64_t unit() const { return exponent - static_cast<int64_t>(digits.size()); }
};

// Takes every finite text that ParseDouble takes, and those beyond its range. O(text.size()).
[[nodiscard]] bool ParseDecimal(std::string_view text, Decimal* decimal);
// As they print. REQUIRES: finite.
Decimal DecimalOf(double value);
Decimal DecimalOf(float value);
Decimal DecimalOf(int128_t value);
// Negative, zero, positive.
int CompareDecimals(const Decimal& a, const Decimal& b);
// The digits as one number; false if that takes more than 64 bits.
[[nodiscard]] bool DigitsOf(const Decimal& decimal, uint64_t* digits);
// The least integer that is not below `part` times `count`. REQUIRES: 0 <= part <= 1.
uint64_t CeilOfPart(const Decimal& part, uint64_t count);

}  // namespace cellar
