// See decimal.h.
#include "base/text/decimal.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr int64_t kExponentLimit{int64_t{1} << 40};  // more than any text has digits

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "e-17", or nothing.
bool ReadExponent(std::string_view text, int64_t* exponent) {
  *exponent = 0;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsDigit)) return false;
  for (const char c : text) *exponent = std::min(kExponentLimit, *exponent * 10 + (c - '0'));
  if (negative) *exponent = -*exponent;
  return true;
}

}  // namespace

bool ParseDecimal(std::string_view text, Decimal* decimal) {
  *decimal = {};
  decimal->negative = text.starts_with('-');
  if (decimal->negative || text.starts_with('+')) text.remove_prefix(1);
  size_t at = 0;
  size_t before_point = 0;
  bool point = false;
  for (; at < text.size() && (IsDigit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.')
      point = true;
    else
      decimal->digits.push_back(text[at]);
    if (!point) ++before_point;
  }
  int64_t exponent = 0;
  if (decimal->digits.empty() || !ReadExponent(text.substr(at), &exponent)) return false;
  const size_t zeros = std::min(decimal->digits.find_first_not_of('0'), decimal->digits.size());
  decimal->digits.erase(0, zeros);
  decimal->digits.erase(decimal->digits.find_last_not_of('0') + 1);
  if (decimal->digits.empty()) {
    *decimal = {};
    return true;
  }
  decimal->exponent = static_cast<int64_t>(before_point) - static_cast<int64_t>(zeros) + exponent;
  return true;
}

Decimal DecimalOf(double value) {
  Decimal decimal;
  const bool parsed = ParseDecimal(FormatDouble(value), &decimal);
  CELLAR_ASSERT(parsed);
  return decimal;
}

Decimal DecimalOf(float value) {
  Decimal decimal;
  const bool parsed = ParseDecimal(FormatFloat(value), &decimal);
  CELLAR_ASSERT(parsed);
  return decimal;
}

Decimal DecimalOf(int128_t value) {
  Decimal decimal;
  decimal.negative = value < 0;
  auto left = static_cast<uint128_t>(value);
  if (decimal.negative) left = -left;
  for (; left > 0; left /= 10)
    decimal.digits.push_back(static_cast<char>('0' + static_cast<int>(left % 10)));
  std::reverse(decimal.digits.begin(), decimal.digits.end());
  decimal.exponent = static_cast<int64_t>(decimal.digits.size());
  decimal.digits.erase(decimal.digits.find_last_not_of('0') + 1);
  return decimal;
}

int CompareDecimals(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int order = 0;
  if (a.is_zero() || b.is_zero())
    order = static_cast<int>(b.is_zero()) - static_cast<int>(a.is_zero());
  else if (a.exponent != b.exponent)
    order = a.exponent < b.exponent ? -1 : 1;
  else
    order = a.digits.compare(b.digits);  // a beginning of the other is less
  return a.negative ? -order : order;
}

bool DigitsOf(const Decimal& decimal, uint64_t* digits) {
  *digits = 0;
  for (const char c : decimal.digits) {
    if (__builtin_mul_overflow(*digits, uint64_t{10}, digits) ||
        __builtin_add_overflow(*digits, static_cast<uint64_t>(c - '0'), digits)) {
      return false;
    }
  }
  return true;
}

// Horner's rule from the last digit: what falls off at a division is a fraction, and it is enough
// to know whether there was one.
uint64_t CeilOfPart(const Decimal& part, uint64_t count) {
  CELLAR_ASSERT(!part.negative);
  if (part.is_zero() || count == 0) return 0;
  if (part.exponent > 0) return count;  // 1 is 0.1 * 10^1
  uint128_t product = 0;
  bool has_rest = false;
  const auto divide = [&] {
    has_rest |= product % 10 != 0;
    product /= 10;
  };
  for (size_t i = part.digits.size(); i > 0; --i) {
    product += static_cast<uint128_t>(part.digits[i - 1] - '0') * count;
    divide();
  }
  for (int64_t zeros = part.exponent; zeros < 0 && product > 0; ++zeros) divide();
  return static_cast<uint64_t>(product) + (has_rest ? 1 : 0);
}

}  // namespace cellar
