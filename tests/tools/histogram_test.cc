// Tests of the load generator's histogram.
#include "cellar-benchmark/histogram.h"

#include <catch2/catch.hpp>

#include "base/random.h"

namespace histogram_test {

using cellar::Random;
using cellar::benchmark::Histogram;

TEST_CASE("A histogram of nothing answers zero", "[histogram]") {
  const Histogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.ValueAt(0.99) == 0);
  CHECK(histogram.mean_ns() == 0.0);
}

TEST_CASE("Percentiles are right to one per cent at every size", "[histogram]") {
  for (const uint64_t scale : {1ULL, 1000ULL, 1000000ULL, 1000000000ULL}) {
    Histogram histogram;
    for (uint64_t i = 1; i <= 10000; ++i) histogram.Record(i * scale);
    for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const double exact = fraction * 10000.0 * static_cast<double>(scale);
      CHECK(static_cast<double>(histogram.ValueAt(fraction)) == Approx(exact).epsilon(0.01));
    }
    CHECK(histogram.max_ns() == 10000 * scale);
  }
}

TEST_CASE("A merged histogram is that of all its records", "[histogram]") {
  Random random(7);
  Histogram one;
  Histogram two;
  Histogram all;
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = random.Next() >> random.Below(60);
    (random.OneIn(3) ? one : two).Record(value);
    all.Record(value);
  }
  one.Merge(two);
  CHECK(one.count() == all.count());
  for (const double fraction : {0.0, 0.3, 0.5, 0.99, 1.0}) {
    CHECK(one.ValueAt(fraction) == all.ValueAt(fraction));
  }
}

TEST_CASE("One long wait counts as the requests that were left out meanwhile", "[histogram]") {
  Histogram histogram;
  histogram.RecordCorrected(1000, 100);  // 1000, 900, ..., 100
  CHECK(histogram.count() == 10);
  CHECK(histogram.mean_ns() == Approx(550.0));
  histogram.RecordCorrected(50, 100);
  CHECK(histogram.count() == 11);
  histogram.RecordCorrected(1000, 0);
  CHECK(histogram.count() == 12);
}

}  // namespace histogram_test
