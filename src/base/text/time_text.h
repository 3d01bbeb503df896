// Points in time as people write them, beside integers of microseconds:
//
//   now  now-1h  now+30s             the units are those of durations (duration.h)
//   2026-11-26T10:00:00.25+01:00     RFC 3339: 0 to 9 digits of a second, Z or an offset
//   2026-11-26                       a day: its first instant in UTC
//
// What is finer than a microsecond is refused rather than rounded.
//
// What `now` means to a thread is told by whoever does its work turn by turn, so that all of a turn
// means the same moment. A thread that is told nothing, as those of tools are, goes by the clock of
// the machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

enum class TimeForm : uint8_t {
  kRfc3339,
  // Data files: seconds and offset (then UTC) may be left out, and the colon of an offset.
  kIso8601,
};

void SetNowOfTexts(int64_t now_micros);
int64_t NowOfTexts();

// Unix microseconds, negative before 1970; else a plain ERR that quotes the text and says why.
Result<int64_t> ParseTimeText(std::string_view text, TimeForm form);

}  // namespace cellar
