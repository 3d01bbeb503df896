// The ways to sync: the best one is found, kept, and found anew.
#include "store/journal/sync_trial.h"

#include <array>
#include <catch2/catch.hpp>

#include "tests/manual_clock.h"

namespace cellar::sync_trial_test {

// What a step of work gives, by way.
using Gains = std::array<uint64_t, 3>;

struct Fixture {
  // Works for so long. The share of steps that each way took.
  std::array<double, 3> Work(int64_t micros, const Gains& gains, int64_t step_micros = 500) {
    std::array<double, 3> shares{};
    const int64_t steps = micros / step_micros;
    for (int64_t i = 0; i < steps; ++i) {
      const auto way = static_cast<size_t>(trial.way());
      shares[way] += 1.0 / static_cast<double>(steps);
      clock.now_micros += step_micros;
      trial.Count(gains[way]);
    }
    return shares;
  }

  ManualClock clock;
  SyncTrial trial{clock};
};

TEST_CASE("the way that gives most is taken nearly always", "[sync_trial]") {
  for (size_t best = 0; best < 3; ++best) {
    Fixture fixture;
    fixture.trial.AllowOverlap(true);
    Gains gains{100, 100, 90};
    gains[best] += 30;
    fixture.Work(1'000'000, gains);
    const auto shares = fixture.Work(10'000'000, gains);
    CHECK(shares[best] > 0.9);
    for (const double share : shares) CHECK(share > 0.02);  // the others are not forgotten
  }
}

TEST_CASE("to gather must be worth it, overlap need not quite", "[sync_trial]") {
  Fixture fixture;
  fixture.Work(1'000'000, {100, 102, 0});
  CHECK(fixture.Work(10'000'000, {100, 102, 0})[0] > 0.9);
  fixture.trial.AllowOverlap(true);
  fixture.Work(1'000'000, {100, 102, 95});
  CHECK(fixture.Work(10'000'000, {100, 102, 95})[2] > 0.9);
}

TEST_CASE("when the work changes, the ways are compared anew at once", "[sync_trial]") {
  Fixture fixture;
  fixture.Work(2'000'000, {100, 130, 0});
  fixture.Work(300'000, {1000, 800, 0});
  CHECK(fixture.Work(5'000'000, {1000, 800, 0})[0] > 0.9);
  fixture.Work(300'000, {50, 80, 0});
  CHECK(fixture.Work(5'000'000, {50, 80, 0})[1] > 0.9);
}

TEST_CASE("pauses between pieces of work do not count", "[sync_trial]") {
  Fixture fixture;
  fixture.Work(2'000'000, {100, 130, 0});
  REQUIRE(fixture.trial.way() == SyncWay::kGathered);
  CHECK(fixture.Work(1'000'000'000, {1, 1, 0}, 1'000'000)[1] == Approx(1));
}

TEST_CASE("overlap is tried as soon as it is allowed, and never before or after", "[sync_trial]") {
  Fixture fixture;
  CHECK(fixture.Work(5'000'000, {100, 100, 300})[2] == 0);
  fixture.trial.AllowOverlap(true);
  CHECK(fixture.trial.way() == SyncWay::kOverlapped);
  CHECK(fixture.Work(5'000'000, {100, 100, 300})[2] > 0.9);
  fixture.trial.AllowOverlap(false);
  CHECK(fixture.Work(5'000'000, {100, 100, 300})[2] == 0);
}

}  // namespace cellar::sync_trial_test
