// A value as another type is the same value, or there is none.
#include "engine/keys/value_convert.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

namespace value_convert_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

// The text of `text`, read as `from`, as `to`.
std::optional<std::string> Converted(ValueType from, const std::string& text, ValueType to) {
  std::string stored;
  REQUIRE(ParseValue(from, text, &stored).ok());
  std::string converted;
  if (!ConvertValue(from, stored, to, &converted)) return std::nullopt;
  REQUIRE(StoredValueIsValid(to, converted));
  return ValueText(to, converted);
}

TEST_CASE("Numbers convert where nothing is lost", "[value_convert]") {
  using enum ValueType;
  CHECK(Converted(kI64, "255", kU8) == "255");
  CHECK(Converted(kI64, "256", kU8) == std::nullopt);
  CHECK(Converted(kI8, "-1", kU64) == std::nullopt);
  CHECK(Converted(kU64, "18446744073709551615", kI64) == std::nullopt);
  CHECK(Converted(kU64, "18446744073709551615", kF64) == std::nullopt);
  CHECK(Converted(kU64, "18446744073709549568", kF64) == "1.844674407370955e+19");
  CHECK(Converted(kI64, "9007199254740993", kF64) == std::nullopt);
  CHECK(Converted(kI64, "-9223372036854775808", kF32) == "-9.223372e+18");
  CHECK(Converted(kF64, "18446744073709551616", kU64) == std::nullopt);
  CHECK(Converted(kF64, "9223372036854775808", kI64) == std::nullopt);
  CHECK(Converted(kF64, "-9223372036854775808", kI64) == "-9223372036854775808");
  CHECK(Converted(kF64, "-0", kI8) == "0");
  CHECK(Converted(kF64, "-0", kF32) == "-0");
  CHECK(Converted(kF64, "-inf", kF32) == "-inf");
  CHECK(Converted(kF64, "inf", kI64) == std::nullopt);
  CHECK(Converted(kF64, "5e-324", kF32) == std::nullopt);
  CHECK(Converted(kF64, "3.4028234663852886e38", kF32) == "3.4028235e+38");
  CHECK(Converted(kF64, "3.4028235677973366e38", kF32) == std::nullopt);
  CHECK(Converted(kF32, "0.1", kF64) == "0.10000000149011612");
  CHECK(Converted(kBool, "true", kF64) == "1");
  CHECK(Converted(kF32, "1", kBool) == "true");
  CHECK(Converted(kU8, "2", kBool) == std::nullopt);
}

TEST_CASE("Text converts by its notation, and everything to text", "[value_convert]") {
  using enum ValueType;
  const std::string uuid{"00112233-4455-6677-8899-aabbccddeeff"};
  CHECK(Converted(kBytes, "007", kU8) == "7");
  CHECK(Converted(kString, "1e3", kI64) == std::nullopt);
  CHECK(Converted(kBytes, "1e3", kF32) == "1000");
  CHECK(Converted(kBytes, "TRUE", kBool) == std::nullopt);
  CHECK(Converted(kBytes, uuid, kUuid) == uuid);
  CHECK(Converted(kUuid, uuid, kString) == uuid);
  CHECK(Converted(kUuid, uuid, kU64) == std::nullopt);
  CHECK(Converted(kU64, "1", kUuid) == std::nullopt);
  CHECK(Converted(kBytes, "\xff", kString) == std::nullopt);
  CHECK(Converted(kBool, "0", kBytes) == "false");
  CHECK(Converted(kF64, "1.50", kString) == "1.5");
}

}  // namespace value_convert_test
