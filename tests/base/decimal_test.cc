// Decimals, exactly.
#include "base/text/decimal.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace decimal_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

Decimal Of(std::string_view text) {
  Decimal decimal;
  INFO(text);
  REQUIRE(ParseDecimal(text, &decimal));
  return decimal;
}

TEST_CASE("Decimals compare as the numbers that they are", "[base]") {
  const std::vector<std::vector<const char*>> ascending{{"-1e400", "-10e399"},
                                                        {"-12"},
                                                        {"-1.2", "-12e-1"},
                                                        {"-1e-400"},
                                                        {"0", "-0", "0e9", ".0"},
                                                        {"1e-400"},
                                                        {"0.1", ".1", "+0.10", "1E-1"},
                                                        {"0.10000000000000000001"},
                                                        {"0.11"},
                                                        {"1", "1.", "001.000"},
                                                        {"9.99"},
                                                        {"10", "1e1"},
                                                        {"1e400"}};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      for (const char* a : ascending[i]) {
        for (const char* b : ascending[j]) {
          INFO(a << " " << b);
          const int order = CompareDecimals(Of(a), Of(b));
          CHECK((order > 0) - (order < 0) == (i > j) - (i < j));
        }
      }
    }
  }
  Decimal decimal;
  for (const char* text : {"", "-", ".", "e1", "1e", "1e+", "1x", "inf", "nan", "1.2.3", "1e1.5"})
    CHECK_FALSE(ParseDecimal(text, &decimal));
  CHECK(CompareDecimals(DecimalOf(0.1), Of("0.1")) == 0);
  CHECK(CompareDecimals(DecimalOf(0.7F), Of("0.7")) == 0);
}

TEST_CASE("A part of a count is rounded up, and only a part", "[base]") {
  CHECK(CeilOfPart(Of("0.07"), 100) == 7);
  CHECK(CeilOfPart(Of("0.0700000000000000000001"), 100) == 8);
  CHECK(CeilOfPart(Of("0.7"), 10) == 7);
  CHECK(CeilOfPart(Of("1"), UINT64_MAX) == UINT64_MAX);
  CHECK(CeilOfPart(Of("0.99999999999999999999"), UINT64_MAX) == UINT64_MAX);
  CHECK(CeilOfPart(Of("0.5"), UINT64_MAX) == uint64_t{1} << 63);
  CHECK(CeilOfPart(Of("1e-300"), 5) == 1);
  CHECK(CeilOfPart(Of("0"), 5) == 0);
  CHECK(CeilOfPart(Of("0.5"), 0) == 0);
}

}  // namespace decimal_test
