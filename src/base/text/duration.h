// Durations as users write them: an integer with ms, s, m, h, d or nothing (seconds). None is zero
// or negative, and all fit into an int64_t of microseconds, so that a caller may multiply by 1,000.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

inline constexpr int64_t kDurationMsMax{INT64_MAX / 1'000};
inline constexpr int64_t kMicrosPerMs{1'000};

// Milliseconds, 1..kDurationMsMax; else a plain ERR that quotes the text.
Result<int64_t> ParseDurationMs(std::string_view text);

// "250ms": the exact form, always in milliseconds.
std::string FormatDurationMs(int64_t duration_ms);
// "7d": the largest unit that loses nothing.
std::string FormatDurationShort(int64_t duration_ms);

}  // namespace cellar
