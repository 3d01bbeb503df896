// Units of durations, largest first, so that printing finds the largest one that loses nothing.
#include "base/text/duration.h"

#include <algorithm>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

struct DurationUnit {
  std::string_view suffix;
  int64_t ms;
};
constexpr DurationUnit kUnits[]{
    {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};

}  // namespace

Result<int64_t> ParseDurationMs(std::string_view text) {
  const size_t digits_end = std::min(text.find_first_not_of("-0123456789"), text.size());
  const std::string_view suffix = text.substr(digits_end);
  int64_t unit_ms = suffix.empty() ? 1'000 : 0;
  for (const DurationUnit& unit : kUnits) {
    if (suffix == unit.suffix) unit_ms = unit.ms;
  }
  int64_t count = 0;
  const NumberError error = ParseInt64(text.substr(0, digits_end), &count);
  if (error == NumberError::kMalformed || unit_ms == 0) {
    return Status::Error(ErrorCode::kErr, "invalid duration " + Quote(text) +
                                              ": an integer with ms, s, m, h, d or nothing (s)");
  }
  if (error == NumberError::kNone && count <= 0) {
    return Status::Error(ErrorCode::kErr, "invalid duration " + Quote(text) + ": not positive");
  }
  if (error == NumberError::kOutOfRange || count > kDurationMsMax / unit_ms) {
    return Status::Error(ErrorCode::kErr, "invalid duration " + Quote(text) + ": out of range");
  }
  return count * unit_ms;
}

std::string FormatDurationMs(int64_t duration_ms) {
  CELLAR_ASSERT(duration_ms > 0);
  return FormatInt64(duration_ms) + "ms";
}

std::string FormatDurationShort(int64_t duration_ms) {
  CELLAR_ASSERT(duration_ms > 0);
  for (const DurationUnit& unit : kUnits) {
    if (duration_ms % unit.ms == 0) {
      return FormatInt64(duration_ms / unit.ms) + std::string(unit.suffix);
    }
  }
  return FormatDurationMs(duration_ms);
}

}  // namespace cellar
