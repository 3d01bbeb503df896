// Multiples of decimals and integers. tests/e2e/test_decimals.py compares with Python's Fraction.
#include "engine/aggregate/number_step.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "base/random.h"
#include "engine/aggregate/number_bounds.h"

namespace number_step_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

// "i" and digits, or the double as it prints; "refused".
std::string Floor(std::string_view step, ValueType type, std::string_view text) {
  INFO(step << " " << text);
  const Result<NumberStep> parsed = NumberStep::Parse(step);
  REQUIRE(parsed.ok());
  std::string stored;
  REQUIRE(ParseValue(type, text, &stored).ok());
  Number multiple;
  if (!parsed->Floor(type, stored, &multiple)) return "refused";
  if (!multiple.is_integer) return FormatDouble(multiple.floating);
  const auto low = static_cast<int64_t>(multiple.integer);
  return "i" + (low == multiple.integer ? FormatInt64(low)
                : multiple.integer > 0  ? FormatUint64(static_cast<uint64_t>(multiple.integer))
                                        : "below");
}

TEST_CASE("A STEP and what it floors are the decimals that they are written as", "[aggregate]") {
  struct Case {
    const char* step;
    const char* value;
    const char* multiple;
  };
  for (const Case& each : {
           Case{"0.1", "0.3", "0.3"},
           Case{"0.1", "1.7", "1.7"},
           Case{"0.1", "-0.3", "-0.3"},
           Case{"0.1", "-0.35", "-0.4"},
           Case{"0.1", "0.29999999999999993", "0.2"},
           Case{"0.25", "1e308", "1e+308"},
           Case{"1e308", "-1.7e308", "-1.7976931348623157e+308"},
           Case{"5e-324", "2.5e-323", "2.5e-323"},
           Case{"1e300", "5", "0"},
           Case{"1e300", "-5", "-1e+300"},
           Case{"1", "-0.1", "-1"},
           Case{"0.5", "inf", "inf"},
           Case{"0.5", "-inf", "-inf"},
           Case{"1e-20", "1.7", "1.7"},
           Case{"7e-20", "-0", "0"},
           Case{"1e9", "5.5e9", "5000000000"},
           Case{"3", "9007199254740993", "9007199254740990"},
           Case{"18446744073709551615", "1e30", "9.99999999994923e+29"},
       }) {
    CHECK(Floor(each.step, ValueType::kF64, each.value) == each.multiple);
  }
  CHECK(Floor("0.1", ValueType::kF32, "0.7") == "0.7");
  CHECK(Floor("0.1", ValueType::kF32, "-0.3") == "-0.3");
  CHECK(Floor("0.00001", ValueType::kF32, "16777216") == "16777216");
  CHECK(Floor("0.2", ValueType::kF32, "3.4028235e38") == "3.4028235e+38");
}

TEST_CASE("Integers stay integers by a STEP of 64 bits", "[aggregate]") {
  CHECK(Floor("5", ValueType::kI64, "17") == "i15");
  CHECK(Floor("5", ValueType::kI64, "-1") == "i-5");
  CHECK(Floor("1e9", ValueType::kI64, "1795720514999999999") == "i1795720514000000000");
  CHECK(Floor("1.0", ValueType::kI64, "-9223372036854775808") == "i-9223372036854775808");
  CHECK(Floor("9223372036854775808", ValueType::kU64, "18446744073709551615") ==
        "i9223372036854775808");
  CHECK(Floor("18446744073709551615", ValueType::kI64, "-1") == "ibelow");
  CHECK(Floor("2", ValueType::kBool, "true") == "i0");
  CHECK(Floor("2.5", ValueType::kI64, "3") == "2.5");
  CHECK(Floor("2.5", ValueType::kI64, "9007199254740992") == "9007199254740990");
  CHECK(Floor("0.5", ValueType::kI64, "9007199254740993") == "refused");
  CHECK(Floor("1e30", ValueType::kI64, "-9007199254740993") == "refused");
  for (const char* text :
       {"0", "-1", "x", "", "inf", "nan", "1e-400", "1e400", "0x1", "1.23456789012345678901"}) {
    INFO(text);
    CHECK(NumberStep::Parse(text).status().code() == ErrorCode::kErr);
  }
}

TEST_CASE("A multiple is not above its number, nor is there one between", "[aggregate]") {
  Random random(11);
  for (int i = 0; i < 20'000; ++i) {
    const auto digits = static_cast<int64_t>(random.Below(random.Below(2) == 0 ? 100 : 1u << 30));
    const std::string step =
        FormatInt64(digits + 1) + "e" + FormatInt64(static_cast<int64_t>(random.Below(40)) - 25);
    const Result<NumberStep> parsed = NumberStep::Parse(step);
    REQUIRE(parsed.ok());
    const double value = (static_cast<double>(random.Below(2'000'000)) - 1e6) /
                         std::pow(10, static_cast<double>(random.Below(8)));
    const double multiple = parsed->FloorFloat(value);
    INFO(step << " of " << value);
    REQUIRE(multiple <= value);
    double by = 0;
    REQUIRE(ParseDouble(step, &by) == NumberError::kNone);
    REQUIRE(multiple + by * 1.001 >= value - std::abs(value) * 1e-15);
  }
}

TEST_CASE("Bounds of a histogram are decimals too", "[aggregate]") {
  NumberBounds bounds;
  for (const char* text : {"-inf", "-1e39", "0.1", "0.10000000000000000001", "0.7", "2", "1e39"})
    REQUIRE(bounds.Add(text) == NumberBounds::Refusal::kNone);
  CHECK(bounds.Add("1e39") == NumberBounds::Refusal::kNotAbove);
  CHECK(bounds.Add("x") == NumberBounds::Refusal::kNoNumber);
  const auto count = [&](ValueType type, std::string_view text) {
    std::string stored;
    REQUIRE(ParseValue(type, text, &stored).ok());
    return bounds.NotAbove(type, NumberOf(type, stored));
  };
  CHECK(count(ValueType::kF64, "-inf") == 1);
  CHECK(count(ValueType::kF32, "-3e38") == 2);
  CHECK(count(ValueType::kF32, "0.1") == 3);
  CHECK(count(ValueType::kF64, "0.1") == 3);
  CHECK(count(ValueType::kF32, "0.7") == 5);
  CHECK(count(ValueType::kF64, "0.7") == 5);
  CHECK(count(ValueType::kI64, "1") == 5);
  CHECK(count(ValueType::kU8, "2") == 6);
  CHECK(count(ValueType::kF32, "inf") == 7);
  CHECK(count(ValueType::kF64, "1e39") == 7);
}

}  // namespace number_step_test
