// See time_unit.h.
#include "engine/rows/time_unit.h"

#include "base/text/number.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerYear{365LL * 86'400 * 1'000'000};
// Clocks of tests and of young machines stand before it: there is nothing to compare with.
constexpr int64_t kClockMin{30 * kMicrosPerYear};  // since 1970
constexpr int64_t kYearsBack{20};
constexpr int64_t kMilli{1'000};
constexpr int64_t kSecond{1'000'000};

bool LooksLike(int64_t unit, int64_t timestamp, int64_t now_micros) {
  return now_micros >= kClockMin && timestamp > (now_micros - kYearsBack * kMicrosPerYear) / unit &&
         timestamp < (now_micros + kMicrosPerYear) / unit;
}

}  // namespace

bool LooksLikeLargerUnit(int64_t timestamp, int64_t now_micros) {
  return LooksLike(kMilli, timestamp, now_micros) || LooksLike(kSecond, timestamp, now_micros);
}

std::string LargerUnitNote(std::string_view option, int64_t timestamp, int64_t now_micros) {
  if (!LooksLikeLargerUnit(timestamp, now_micros)) return {};
  const bool seconds = LooksLike(kSecond, timestamp, now_micros);
  return std::string(option) + " " + FormatInt64(timestamp) + " looks like " +
         (seconds ? "seconds" : "milliseconds") + ": a timestamp is in microseconds";
}

}  // namespace cellar
