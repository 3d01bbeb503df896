// Shortest floats by round trip and by trying every shorter text; integers against printf.
#include "base/text/number.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/random.h"

namespace number_test {

using namespace cellar;

NumberError DoubleError(std::string_view text) {
  double value = 0;
  return ParseDouble(text, &value);
}

TEST_CASE("Integers are an optional minus and digits, nothing else", "[number]") {
  int64_t value = 0;
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1.0", "0x10", "1e3", "--1", "1-", "\n1"}) {
    INFO(text);
    REQUIRE(ParseInt64(text, &value) == NumberError::kMalformed);
  }
  REQUIRE(ParseInt64("-0", &value) == NumberError::kNone);
  REQUIRE(value == 0);
  REQUIRE(ParseInt64("-00042", &value) == NumberError::kNone);
  REQUIRE(value == -42);
  REQUIRE(ParseInt64(std::string(100, '0') + "7", &value) == NumberError::kNone);
  REQUIRE(value == 7);
  REQUIRE(ParseInt64("9223372036854775807", &value) == NumberError::kNone);
  REQUIRE(value == INT64_MAX);
  REQUIRE(ParseInt64("-9223372036854775808", &value) == NumberError::kNone);
  REQUIRE(value == INT64_MIN);
  REQUIRE(ParseInt64("9223372036854775808", &value) == NumberError::kOutOfRange);
  REQUIRE(ParseInt64("-9223372036854775809", &value) == NumberError::kOutOfRange);
  REQUIRE(ParseInt64(std::string(1000, '9'), &value) == NumberError::kOutOfRange);
}

TEST_CASE("A number reads the same whatever zeros stand before it", "[number]") {
  const uint64_t seed = 20261123;
  INFO("seed " << seed);
  Random random(seed);
  for (int step = 0; step < 10'000; ++step) {
    const uint64_t number = random.Next() >> random.Below(64);
    const std::string digits = FormatUint64(number);
    // With so many zeros it is read in 128 bits.
    for (const std::string& text : {digits, std::string(25, '0') + digits}) {
      int128_t value = 0;
      REQUIRE(ParseInt128(text, &value) == NumberError::kNone);
      REQUIRE(static_cast<uint64_t>(value) == number);
      REQUIRE(ParseInt128("-" + text, &value) == NumberError::kNone);
      REQUIRE(static_cast<uint64_t>(-value) == number);
      REQUIRE(ParseInt128(text + "x", &value) == NumberError::kMalformed);
    }
  }
}

TEST_CASE("Unsigned integers go up to 2^64-1 and not below 0", "[number]") {
  uint64_t value = 0;
  REQUIRE(ParseUint64("18446744073709551615", &value) == NumberError::kNone);
  REQUIRE(value == UINT64_MAX);
  REQUIRE(ParseUint64("18446744073709551616", &value) == NumberError::kOutOfRange);
  REQUIRE(ParseUint64("-1", &value) == NumberError::kOutOfRange);
  REQUIRE(ParseUint64("-0", &value) == NumberError::kNone);
}

TEST_CASE("Floats take decimal text and infinities, not NaN and not what is beyond the type",
          "[number]") {
  for (const char* text : {"1", "-1.5", "+2", ".5", "5.", "1e10", "1E-10", "inf", "-Infinity",
                           "+inf", "1e-400", "0e999999999999999999999"}) {
    INFO(text);
    REQUIRE(DoubleError(text) == NumberError::kNone);
  }
  for (const char* text : {"", ".", "-", "e5", "1e", "1e+", "nan", "-nan", "0x1p3", "1 ", " 1",
                           "1,5", "infx", "1.2.3", "++1", "+-1"}) {
    INFO(text);
    REQUIRE(DoubleError(text) == NumberError::kMalformed);
  }
  REQUIRE(DoubleError("1e309") == NumberError::kOutOfRange);
  REQUIRE(DoubleError("-" + std::string(400, '9')) == NumberError::kOutOfRange);
  float narrow = 0;
  REQUIRE(ParseFloat("1e39", &narrow) == NumberError::kOutOfRange);
  REQUIRE(ParseFloat("3.4028235e38", &narrow) == NumberError::kNone);
  double tiny = 1;
  REQUIRE(ParseDouble("1e-400", &tiny) == NumberError::kNone);
  REQUIRE(tiny == 0);
}

TEST_CASE("A float's text is rounded once, not by way of a double", "[number]") {
  // Halfway between two floats as a double, a little above as a decimal.
  float value = 0;
  REQUIRE(ParseFloat("1.00000017881393432617187500001", &value) == NumberError::kNone);
  REQUIRE(value == 1.00000023841857910156250f);
}

TEST_CASE("Floats print without an exponent from 1e-4 up to below 1e16", "[number]") {
  REQUIRE(FormatDouble(0) == "0");
  REQUIRE(FormatDouble(-0.0) == "-0");
  REQUIRE(FormatDouble(42) == "42");
  REQUIRE(FormatDouble(-7.25) == "-7.25");
  REQUIRE(FormatDouble(0.1) == "0.1");
  REQUIRE(FormatDouble(0.1 + 0.2) == "0.30000000000000004");
  REQUIRE(FormatDouble(0.0001) == "0.0001");
  REQUIRE(FormatDouble(0.00001) == "1e-05");
  REQUIRE(FormatDouble(0.00012345) == "0.00012345");
  REQUIRE(FormatDouble(9999999999999998) == "9999999999999998");
  REQUIRE(FormatDouble(1e16) == "1e+16");
  REQUIRE(FormatDouble(1.5e16) == "1.5e+16");
  REQUIRE(FormatDouble(1e15) == "1000000000000000");
  REQUIRE(FormatDouble(123456789.125) == "123456789.125");
  REQUIRE(FormatDouble(5e-324) == "5e-324");
  REQUIRE(FormatDouble(HUGE_VAL) == "inf");
  REQUIRE(FormatDouble(-HUGE_VAL) == "-inf");
  REQUIRE(FormatFloat(0.1f) == "0.1");
  REQUIRE(FormatFloat(16777216.0f) == "16777216");
  REQUIRE(FormatFloat(3.4028235e38f) == "3.4028235e+38");
}

// The fewest significant digits with which printf's text reads back to the same value.
int ShortestDigits(double value) {
  for (int digits = 1; digits <= 17; ++digits) {
    char text[64];
    (void)std::snprintf(text, sizeof(text), "%.*e", digits - 1, value);
    if (std::strtod(text, nullptr) == value) return digits;
  }
  return 18;
}

int SignificantDigits(const std::string& text) {
  std::string digits;
  for (const char c : text) {
    if (c == 'e') break;
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return 1;
  const size_t last = digits.find_last_not_of('0');
  return static_cast<int>(last - first + 1);
}

TEST_CASE("Random floats read back to themselves from the fewest digits", "[number]") {
  const uint64_t seed = 20240117;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 20'000; ++i) {
    double value = std::bit_cast<double>(random.Next());
    if (random.OneIn(2)) value = static_cast<double>(static_cast<int64_t>(random.Next())) * 1e-6;
    if (!std::isfinite(value)) continue;
    const std::string text = FormatDouble(value);
    INFO(text);
    REQUIRE(std::strtod(text.c_str(), nullptr) == value);
    double parsed = 0;
    REQUIRE(ParseDouble(text, &parsed) == NumberError::kNone);
    REQUIRE(parsed == value);
    REQUIRE(SignificantDigits(text) <= ShortestDigits(value));
    const double magnitude = std::fabs(value);
    const bool plain = text.find('e') == std::string::npos;
    REQUIRE(plain == (magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16)));
    const float narrow = std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
    if (!std::isfinite(narrow)) continue;
    REQUIRE(std::strtof(FormatFloat(narrow).c_str(), nullptr) == narrow);
  }
}

TEST_CASE("The floor of a decimal is exact whatever its digits and exponent", "[number]") {
  struct Case {
    const char* text;
    int64_t floor;
    bool exact;
  };
  for (const Case& c : {Case{"4.5", 4, false}, Case{"-4.5", -5, false}, Case{"4.0", 4, true},
                        Case{"-4.000", -4, true}, Case{"9007199254740993", 9007199254740993, true},
                        Case{"9007199254740993.0000000000000000001", 9007199254740993, false},
                        Case{"1.5e1", 15, true}, Case{"155e-1", 15, false}, Case{"0.0", 0, true},
                        Case{"-0.00001", -1, false}, Case{"1e-99999999999", 0, false},
                        Case{"0e99999999999", 0, true}, Case{".5e1", 5, true},
                        Case{"000123", 123, true}, Case{"1e18", 1'000'000'000'000'000'000, true}}) {
    INFO(c.text);
    DecimalFloor value{};
    REQUIRE(ParseDecimalFloor(c.text, &value) == NumberError::kNone);
    REQUIRE((value.floor == c.floor));
    REQUIRE(value.exact == c.exact);
  }
  DecimalFloor value{};
  for (const char* text : {"inf", "1e40", "1e99999999999999999999",
                           "99999999999999999999999999999"
                           "99999"}) {
    REQUIRE(ParseDecimalFloor(text, &value) == NumberError::kNone);
    REQUIRE((value.floor == kDecimalFloorLimit));
    REQUIRE(ParseDecimalFloor("-" + std::string(text), &value) == NumberError::kNone);
    REQUIRE((value.floor == -kDecimalFloorLimit));
  }
  REQUIRE(ParseDecimalFloor("nan", &value) == NumberError::kMalformed);
  REQUIRE(ParseDecimalFloor("four", &value) == NumberError::kMalformed);
}

}  // namespace number_test
