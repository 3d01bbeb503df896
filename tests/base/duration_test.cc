// Durations: units, limits, printing.
#include "base/text/duration.h"

#include <catch2/catch.hpp>

namespace duration_test {

using namespace cellar;

TEST_CASE("Durations have a unit or are seconds", "[duration]") {
  REQUIRE(*ParseDurationMs("250ms") == 250);
  REQUIRE(*ParseDurationMs("90s") == 90'000);
  REQUIRE(*ParseDurationMs("15m") == 900'000);
  REQUIRE(*ParseDurationMs("12h") == 43'200'000);
  REQUIRE(*ParseDurationMs("7d") == 604'800'000);
  REQUIRE(*ParseDurationMs("30") == 30'000);
  REQUIRE(*ParseDurationMs("9223372036854775ms") == kDurationMsMax);
}

TEST_CASE("Zero, negative, malformed and overlong durations are errors", "[duration]") {
  for (const char* text :
       {"", "0", "0ms", "-1", "-5s", "1.5h", "s", "ms", "7 d", "7w", "1d2h", "7D", "+5",
        "9223372036854776ms", "99999999999999999999s", "106751992d"}) {
    INFO(text);
    const Result<int64_t> duration = ParseDurationMs(text);
    REQUIRE_FALSE(duration.ok());
    REQUIRE(duration.status().code() == ErrorCode::kErr);
  }
}

TEST_CASE("Durations print exactly, in milliseconds or in the largest whole unit", "[duration]") {
  REQUIRE(FormatDurationMs(604'800'000) == "604800000ms");
  REQUIRE(FormatDurationShort(604'800'000) == "7d");
  REQUIRE(FormatDurationShort(90'000) == "90s");
  REQUIRE(FormatDurationShort(120'000) == "2m");
  REQUIRE(FormatDurationShort(1) == "1ms");
  for (const int64_t ms : {1LL, 999LL, 1000LL, 61'000LL, 3'600'000LL, 86'400'001LL}) {
    REQUIRE(*ParseDurationMs(FormatDurationShort(ms)) == ms);
    REQUIRE(*ParseDurationMs(FormatDurationMs(ms)) == ms);
  }
}

}  // namespace duration_test
