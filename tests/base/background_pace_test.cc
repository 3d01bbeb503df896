// Work in the background lets others pass, and gets on all the same.
#include "base/os/background_pace.h"

#include <catch2/catch.hpp>

#include "tests/manual_clock.h"

namespace cellar::background_pace_test {

TEST_CASE("background work yields after each piece while the processor is free", "[pace]") {
  ManualClock clock;
  int yields = 0;
  BackgroundPace pace(clock, [&] { ++yields; });
  for (int i = 0; i < 100; ++i) {
    clock.now_micros += 50;
    pace.Pause();
  }
  CHECK(yields == 100);
}

TEST_CASE("background work on a busy processor gets its share", "[pace]") {
  ManualClock clock;
  const int64_t begin_micros = clock.now_micros;
  BackgroundPace pace(clock, [&] { clock.now_micros += 4'000; });
  constexpr int kPieces = 1'000;
  constexpr int64_t kPieceMicros = 50;
  for (int i = 0; i < kPieces; ++i) {
    clock.now_micros += kPieceMicros;
    pace.Pause();
  }
  const int64_t took_micros = clock.now_micros - begin_micros;
  CHECK(took_micros > kPieces * kPieceMicros * BackgroundPace::kWaitShareMax);
  CHECK(took_micros <= kPieces * kPieceMicros * (BackgroundPace::kWaitShareMax + 1) + 4'000);
}

}  // namespace cellar::background_pace_test
