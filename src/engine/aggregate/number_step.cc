// See number_step.h.
#include "engine/aggregate/number_step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr double kDoubleDigits{1e15};  // no two decimals of 15 digits have one double
constexpr double kFloatDigits{1e6};    // of 6 one float
constexpr int64_t kExactPowerMax{22};  // 10^22 is a double
constexpr int64_t kExactIntegerMax{int64_t{1} << 53};
// Of a double that lies half way between two floats.
constexpr uint64_t kBelowFloat{(uint64_t{1} << 29) - 1};
constexpr uint64_t kHalfFloat{uint64_t{1} << 28};

// Adds to the number that the digits say, or takes from it. REQUIRES: that is not below 0.
void AddToDigits(int64_t sign, uint64_t amount, std::string* digits) {
  int64_t carry = 0;
  for (size_t i = digits->size(); i > 0 && (amount > 0 || carry != 0); --i) {
    int64_t digit = (*digits)[i - 1] - '0' + sign * static_cast<int64_t>(amount % 10) + carry;
    amount /= 10;
    carry = digit < 0 ? -1 : digit > 9 ? 1 : 0;
    digit -= 10 * carry;
    (*digits)[i - 1] = static_cast<char>('0' + digit);
  }
  CELLAR_ASSERT(carry >= 0);
  amount += static_cast<uint64_t>(carry);
  if (amount > 0) digits->insert(0, FormatUint64(amount));
}

}  // namespace

Result<NumberStep> NumberStep::Parse(std::string_view text) {
  NumberStep step;
  Decimal decimal;
  if (ParseDouble(text, &step.nearest_) != NumberError::kNone || !std::isfinite(step.nearest_) ||
      step.nearest_ <= 0) {
    return Status::Error(ErrorCode::kErr, "STEP " + Quote(text) + " is not a number above 0");
  }
  const bool parsed = ParseDecimal(text, &decimal);
  CELLAR_ASSERT(parsed);
  if (!DigitsOf(decimal, &step.digits_)) {
    return Status::Error(ErrorCode::kErr,
                         "STEP " + Quote(text) + " has more digits than 64 bits hold");
  }
  step.unit_ = decimal.unit();
  uint128_t integer = step.digits_;
  for (int64_t i = 0; i < step.unit_ && integer <= UINT64_MAX; ++i) integer *= 10;
  if (step.unit_ >= 0 && integer <= UINT64_MAX) step.integer_ = static_cast<uint64_t>(integer);
  if (std::abs(step.unit_) <= kExactPowerMax) {
    for (int64_t i = std::abs(step.unit_); i > 0; --i) step.power_ *= 10;
    // Three less: FloorFloat looks as far as that beside the quotient.
    const auto digits = static_cast<double>(step.digits_);
    step.quotients_ = std::max(0.0, std::floor(kDoubleDigits / digits) - 3);
    step.quotients32_ = std::max(0.0, std::floor(kFloatDigits / digits) - 3);
  }
  return step;
}

double NumberStep::Multiple(int64_t count) const {
  const auto digits = static_cast<double>(count * static_cast<int64_t>(digits_));
  return unit_ < 0 ? digits / power_ : digits * power_;
}

// The quotient is off by less than a half, so the multiple sought is one of three next to it. One
// that is short compares with the value as its double does: either both are one decimal, or the
// decimals lie as their doubles do.
double NumberStep::FloorFloat(double value) const {
  const double quotient = value / nearest_;
  if (!(std::abs(quotient) < quotients_)) [[unlikely]]
    return std::isinf(value) ? value : FloorDecimal(DecimalOf(value));
  int64_t count = static_cast<int64_t>(quotient) + 1;
  double multiple = Multiple(count);
  while (multiple > value) multiple = Multiple(--count);
  return multiple;
}

// The same with fewer digits. A multiple is taken as its float, by way of a double: that is the
// same unless the double seems to be half way between two.
double NumberStep::FloorFloat(float value) const {
  const double quotient = static_cast<double>(value) / nearest_;
  if (std::abs(quotient) < quotients32_) {
    for (int64_t count = static_cast<int64_t>(quotient) + 1;; --count) {
      const double multiple = Multiple(count);
      if ((std::bit_cast<uint64_t>(multiple) & kBelowFloat) == kHalfFloat) break;
      if (static_cast<float>(multiple) <= value) return multiple;
    }
  }
  return std::isinf(value) ? static_cast<double>(value) : FloorDecimal(DecimalOf(value));
}

double NumberStep::Nearest(bool negative, std::string digits, int64_t unit) const {
  digits.append("e").append(FormatInt64(unit));
  if (negative) digits.insert(0, "-");
  double nearest = 0;
  if (ParseDouble(digits, &nearest) == NumberError::kNone) return nearest;
  CELLAR_ASSERT(negative);  // one that is not negative lies below its number
  return std::numeric_limits<double>::lowest();
}

// In integers, in units of the lower one of the two last digits.
double NumberStep::FloorDecimal(const Decimal& value) const {
  uint64_t digits = 0;
  const bool fits = DigitsOf(value, &digits);
  CELLAR_ASSERT(fits);  // a double has 17
  if (value.is_zero()) return 0;
  if (value.unit() < unit_) {
    uint128_t step = digits_;
    for (int64_t i = value.unit(); i < unit_; ++i) {
      step *= 10;
      if (step > digits) return value.negative ? -nearest_ : 0;
    }
    const auto by = static_cast<uint64_t>(step);
    const uint64_t rest = digits % by;
    const uint64_t multiple = digits - rest + (value.negative && rest > 0 ? by : 0);
    return Nearest(value.negative, FormatUint64(multiple), value.unit());
  }
  uint64_t rest = digits % digits_;
  for (int64_t i = unit_; i < value.unit(); ++i)
    rest = static_cast<uint64_t>(static_cast<uint128_t>(rest) * 10 % digits_);
  std::string multiple = FormatUint64(digits);
  multiple.append(static_cast<size_t>(value.unit() - unit_), '0');
  if (value.negative && rest > 0)
    AddToDigits(1, digits_ - rest, &multiple);
  else
    AddToDigits(-1, rest, &multiple);
  return Nearest(value.negative, std::move(multiple), unit_);
}

// 64 bits divide in hardware.
int128_t NumberStep::FloorInteger(int128_t value) const {
  CELLAR_DEBUG_ASSERT(is_integer());
  if (value >= 0) [[likely]]
    return value - static_cast<uint64_t>(value) % integer_;
  const uint64_t rest = static_cast<uint64_t>(-value) % integer_;
  return rest == 0 ? value : value - static_cast<int128_t>(integer_ - rest);
}

// From half a step behind it, so that it does not matter how the sum is rounded.
double NumberStep::NextFloat(double multiple) const {
  const double behind = multiple + 1.5 * nearest_;
  return std::isinf(behind) ? behind : FloorFloat(behind);
}

bool NumberStep::Floor(ValueType type, std::string_view stored, Number* multiple) const {
  multiple->is_integer = false;
  if (IsFloatType(type)) {
    const double value = DecodeValue(type, stored).floating;
    multiple->floating =
        type == ValueType::kF32 ? FloorFloat(static_cast<float>(value)) : FloorFloat(value);
    return true;
  }
  const int128_t integer = NumberOf(type, stored).integer;
  if (is_integer()) [[likely]] {
    multiple->is_integer = true;
    multiple->integer = FloorInteger(integer);
    return true;
  }
  if (integer > kExactIntegerMax || integer < -kExactIntegerMax) return false;
  multiple->floating = FloorFloat(static_cast<double>(integer));
  return true;
}

}  // namespace cellar
