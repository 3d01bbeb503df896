// The scanners and printers behind number.h.
#include "base/text/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/assert.h"
#include "base/text/ascii.h"

namespace cellar {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A decimal number taken apart. The views point into the text.
struct Decimal {
  bool negative{false};
  bool infinite{false};
  std::string_view whole;     // digits before the point
  std::string_view fraction;  // digits behind it
  int64_t exponent{0};        // held within +-kExponentLimit
};
constexpr int64_t kExponentLimit{int64_t{1} << 40};  // more than any text has digits

std::string_view TakeDigits(std::string_view* rest) {
  size_t count = 0;
  while (count < rest->size() && IsDigit((*rest)[count])) ++count;
  const std::string_view digits = rest->substr(0, count);
  rest->remove_prefix(count);
  return digits;
}

bool TakeSign(std::string_view* rest) {
  if (rest->empty() || (rest->front() != '-' && rest->front() != '+')) return false;
  const bool negative = rest->front() == '-';
  rest->remove_prefix(1);
  return negative;
}

bool TakeExponent(std::string_view* rest, int64_t* exponent) {
  rest->remove_prefix(1);  // the letter
  const bool negative = TakeSign(rest);
  const std::string_view digits = TakeDigits(rest);
  if (digits.empty()) return false;
  int64_t value = 0;
  for (const char c : digits) value = std::min(kExponentLimit, value * 10 + (c - '0'));
  *exponent = negative ? -value : value;
  return true;
}

bool ScanDecimal(std::string_view text, Decimal* decimal) {
  std::string_view rest = text;
  decimal->negative = TakeSign(&rest);
  if (EqualsIgnoreCase(rest, "inf") || EqualsIgnoreCase(rest, "infinity")) {
    decimal->infinite = true;
    return true;
  }
  decimal->whole = TakeDigits(&rest);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    decimal->fraction = TakeDigits(&rest);
  }
  if (decimal->whole.empty() && decimal->fraction.empty()) return false;
  if (!rest.empty() && (rest.front() == 'e' || rest.front() == 'E')) {
    if (!TakeExponent(&rest, &decimal->exponent)) return false;
  }
  return rest.empty();
}

double StringToFloating(const char* text, double) { return std::strtod(text, nullptr); }
float StringToFloating(const char* text, float) { return std::strtof(text, nullptr); }

template <typename T>
NumberError ParseFloating(std::string_view text, T* value) {
  Decimal decimal;
  if (!ScanDecimal(text, &decimal)) return NumberError::kMalformed;
  if (decimal.infinite) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    *value = decimal.negative ? -kInfinity : kInfinity;
    return NumberError::kNone;
  }
  if (text.front() == '+') text.remove_prefix(1);  // from_chars knows no plus sign
  T parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say on which side; strtod gives infinity or the nearest tiny number.
    parsed = StringToFloating(std::string(text).c_str(), T{});
    if (std::isinf(parsed)) return NumberError::kOutOfRange;
  } else if (error != std::errc{} || end != text.data() + text.size()) {
    return NumberError::kMalformed;
  }
  *value = parsed;
  return NumberError::kNone;
}

// Magnitude of "-?[0-9]+" held at `limit`; false if the text is something else.
bool ScanInteger(std::string_view text, uint128_t limit, bool* negative, uint128_t* magnitude) {
  *negative = !text.empty() && text.front() == '-';
  if (*negative) text.remove_prefix(1);
  if (text.empty()) return false;
  constexpr size_t kShortDigits{19};  // of so many 64 bits are enough
  if (text.size() <= kShortDigits) {
    uint64_t number = 0;
    for (const char c : text) {
      if (!IsDigit(c)) return false;
      number = number * 10 + static_cast<uint64_t>(c - '0');
    }
    *magnitude = number;
    return true;
  }
  uint128_t value = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return false;
    // Beyond the limit it stops growing, long before 128 bits are full. The digits behind are only
    // checked.
    if (value <= limit) value = value * 10 + static_cast<uint128_t>(c - '0');
  }
  *magnitude = value;
  return true;
}

// Digits of a number printed as "d.ddde+xx", laid out as a plain decimal.
void AppendPlain(std::string_view digits, int32_t exponent, std::string* out) {
  const auto count = static_cast<int32_t>(digits.size());
  if (exponent < 0) {
    out->append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  } else if (exponent + 1 >= count) {
    out->append(digits).append(static_cast<size_t>(exponent + 1 - count), '0');
  } else {
    const auto point = static_cast<size_t>(exponent) + 1;
    out->append(digits.substr(0, point)).append(".").append(digits.substr(point));
  }
}

template <typename T>
void AppendFloating(T value, std::string* out) {
  CELLAR_ASSERT(!std::isnan(value));
  if (std::isinf(value)) {
    out->append(value < 0 ? "-inf" : "inf");
    return;
  }
  char text[64];
  const auto [end, error] =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific);
  CELLAR_ASSERT(error == std::errc{});
  std::string_view all(text, static_cast<size_t>(end - text));
  if (all.front() == '-') {
    out->push_back('-');
    all.remove_prefix(1);
  }
  const size_t letter = all.find('e');
  const std::string_view exponent_text = all.substr(letter + 1);
  int32_t exponent = 0;
  const char* digits_of_exponent = exponent_text.data() + (exponent_text.front() == '+' ? 1 : 0);
  (void)std::from_chars(digits_of_exponent, all.data() + all.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    out->append(all);
    return;
  }
  char digits[32];
  size_t count = 0;
  for (const char c : all.substr(0, letter)) {
    if (c != '.') digits[count++] = c;
  }
  AppendPlain(std::string_view(digits, count), exponent, out);
}

}  // namespace

NumberError ParseInt128(std::string_view text, int128_t* value) {
  constexpr uint128_t kLimit = static_cast<uint128_t>(1) << 120;
  bool negative = false;
  uint128_t magnitude = 0;
  if (!ScanInteger(text, kLimit, &negative, &magnitude)) return NumberError::kMalformed;
  if (magnitude > kLimit) return NumberError::kOutOfRange;
  const auto number = static_cast<int128_t>(magnitude);
  *value = negative ? -number : number;
  return NumberError::kNone;
}

NumberError ParseInt64(std::string_view text, int64_t* value) {
  int128_t wide = 0;
  const NumberError error = ParseInt128(text, &wide);
  if (error != NumberError::kNone) return error;
  if (wide < INT64_MIN || wide > INT64_MAX) return NumberError::kOutOfRange;
  *value = static_cast<int64_t>(wide);
  return NumberError::kNone;
}

NumberError ParseUint64(std::string_view text, uint64_t* value) {
  int128_t wide = 0;
  const NumberError error = ParseInt128(text, &wide);
  if (error != NumberError::kNone) return error;
  if (wide < 0 || wide > static_cast<int128_t>(UINT64_MAX)) return NumberError::kOutOfRange;
  *value = static_cast<uint64_t>(wide);
  return NumberError::kNone;
}

NumberError ParseDouble(std::string_view text, double* value) { return ParseFloating(text, value); }
NumberError ParseFloat(std::string_view text, float* value) { return ParseFloating(text, value); }

// In integers throughout, since a double would round. Of the digits behind the point it matters
// only whether one is not zero: then a negative number has its floor one further down.
NumberError ParseDecimalFloor(std::string_view text, DecimalFloor* value) {
  Decimal decimal;
  if (!ScanDecimal(text, &decimal)) return NumberError::kMalformed;
  const DecimalFloor beyond{decimal.negative ? -kDecimalFloorLimit : kDecimalFloorLimit, false};
  if (decimal.infinite) {
    *value = beyond;
    return NumberError::kNone;
  }
  // The digits as one sequence without leading zeros, and how many of them stand before the point.
  std::string digits;
  digits.reserve(decimal.whole.size() + decimal.fraction.size());
  digits.append(decimal.whole).append(decimal.fraction);
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  if (zeros == digits.size()) {
    *value = {0, true};
    return NumberError::kNone;
  }
  const int64_t before_point =
      static_cast<int64_t>(decimal.whole.size()) - static_cast<int64_t>(zeros) + decimal.exponent;
  digits.erase(0, zeros);
  constexpr int64_t kDigitsMax{31};  // 10^31 < 2^127, and 2^100 < 10^31
  if (before_point > kDigitsMax) {
    *value = beyond;
    return NumberError::kNone;
  }
  const auto whole_digits = static_cast<size_t>(std::max<int64_t>(before_point, 0));
  int128_t magnitude = 0;
  for (size_t i = 0; i < whole_digits; ++i) {
    magnitude = magnitude * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  }
  if (magnitude >= kDecimalFloorLimit) {
    *value = beyond;
    return NumberError::kNone;
  }
  const bool exact = digits.find_first_not_of('0', whole_digits) == std::string::npos;
  if (decimal.negative) magnitude = -magnitude - (exact ? 0 : 1);
  *value = {magnitude, exact};
  return NumberError::kNone;
}

void AppendInt64(int64_t value, std::string* out) {
  char text[24];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  CELLAR_ASSERT(error == std::errc{});
  out->append(text, static_cast<size_t>(end - text));
}

void AppendUint64(uint64_t value, std::string* out) {
  char text[24];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  CELLAR_ASSERT(error == std::errc{});
  out->append(text, static_cast<size_t>(end - text));
}

void AppendDouble(double value, std::string* out) { AppendFloating(value, out); }
void AppendFloat(float value, std::string* out) { AppendFloating(value, out); }

std::string FormatInt64(int64_t value) {
  std::string text;
  AppendInt64(value, &text);
  return text;
}

std::string FormatUint64(uint64_t value) {
  std::string text;
  AppendUint64(value, &text);
  return text;
}

std::string FormatDouble(double value) {
  std::string text;
  AppendDouble(value, &text);
  return text;
}

std::string FormatFloat(float value) {
  std::string text;
  AppendFloat(value, &text);
  return text;
}

}  // namespace cellar
