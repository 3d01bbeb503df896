// Sums that are rounded once: against sums that cannot round, and in any order.
#include "engine/aggregate/exact_sum.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace exact_sum_test {

using namespace cellar;

double SumOf(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.AddDouble(value);
  const double rounded = sum.Round();
  sum.Free();
  return rounded;
}

TEST_CASE("Integers are added in 128 bits", "[aggregate]") {
  ExactSum sum;
  REQUIRE(sum.integers() == 0);
  for (int i = 0; i < 4; ++i) sum.AddInteger(std::numeric_limits<int64_t>::max());
  REQUIRE(sum.integers() == static_cast<int128_t>(std::numeric_limits<int64_t>::max()) * 4);
  REQUIRE_FALSE(sum.has_doubles());
  for (int i = 0; i < 8; ++i) sum.AddInteger(std::numeric_limits<int64_t>::min());
  REQUIRE(sum.integers() == static_cast<int128_t>(std::numeric_limits<int64_t>::max()) * 4 +
                                static_cast<int128_t>(std::numeric_limits<int64_t>::min()) * 8);
}

TEST_CASE("What cancels out leaves nothing behind", "[aggregate]") {
  REQUIRE(SumOf({1e300, 1, -1e300}) == 1);
  REQUIRE(SumOf({0.1, 0.2, -0.1, -0.2}) == 0);
  REQUIRE(SumOf({1e16, 1, 1, -1e16}) == 2);
  REQUIRE(SumOf({5e-324, 1e308, -1e308}) == 5e-324);
  REQUIRE(SumOf({1e308, 1e308, -1e308}) == 1e308);
  REQUIRE(std::isinf(SumOf({1e308, 1e308})));
  // Ten tenths: of the double that is nearest to a tenth, which is a little more than it.
  REQUIRE(SumOf(std::vector<double>(10, 0.1)) == 1);
}

TEST_CASE("Infinities, and both of them", "[aggregate]") {
  const double infinity = std::numeric_limits<double>::infinity();
  REQUIRE(SumOf({infinity, -1e308}) == infinity);
  REQUIRE(SumOf({-infinity, 1}) == -infinity);
  REQUIRE(std::isnan(SumOf({infinity, -infinity, 1})));
}

TEST_CASE("Integers beside doubles count exactly", "[aggregate]") {
  ExactSum sum;
  sum.AddDouble(0.5);
  sum.AddInteger(int64_t{1} << 53);
  sum.AddInteger(int64_t{1});
  REQUIRE(sum.has_doubles());
  REQUIRE(sum.Round() == 9007199254740994.0);  // ..993.5 to the next even one
  sum.AddInteger(-(int64_t{1} << 53));
  REQUIRE(sum.Round() == 1.5);
  sum.Free();
}

TEST_CASE("Any order and partition gives one sum", "[aggregate]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::vector<double> values;
    for (uint64_t n = 1 + random.Below(200); n > 0; --n) {
      const double fraction = static_cast<double>(random.Below(1 << 30)) - (1 << 29);
      values.push_back(std::ldexp(fraction, static_cast<int>(random.Below(2000)) - 1040));
    }
    const double wanted = SumOf(values);
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.Below(i)]);
    ExactSum parts[3];
    for (const double value : values) parts[random.Below(3)].AddDouble(value);
    for (ExactSum& part : parts) {
      if (&part == &parts[0]) continue;
      parts[0].Add(part);
      part.Free();
    }
    REQUIRE(parts[0].Round() == wanted);
    // Against long double, whose 64 bits are enough where the exponents are near.
    parts[0].Free();
    ExactSum near;
    long double plain = 0;
    for (int i = 0; i < 500; ++i) {
      const double value = static_cast<double>(random.Below(1 << 20)) / 1024;
      near.AddDouble(value);
      plain += value;
    }
    REQUIRE(near.Round() == static_cast<double>(plain));
    near.Free();
  }
}

}  // namespace exact_sum_test
