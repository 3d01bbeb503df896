// TimeStep: `BY TIME duration [TZ zone]` where it is more than a length counted from 1970: steps of
// the calendar, and those of a place.
//
//   days      n local days, counted from 1970-01-01
//   1w        n weeks, which begin on Mondays
//   1mo 1y    n months, n years, counted from the year 0, so that 3mo is a quarter
//   less      with TZ alone: lengths counted from local midnight, the last one of a day as long as
//             is left
//
// A step is known by its first instant.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/os/time_zone.h"
#include "cellar/status.h"

namespace cellar {

class TimeStep {
 public:
  // Is it one of those that need a calendar, or only a duration (base/text/duration.h)?
  static bool IsCalendar(std::string_view duration);
  static Result<TimeStep> Parse(std::string_view duration, std::optional<std::string_view> zone);

  // All instants from `from` on and before `until` belong to the step that begins at `begin`.
  struct Piece {
    int64_t from{0};
    int64_t until{0};
    int64_t begin{0};
  };
  Piece Find(int64_t micros) const;
  // The first instant of the step after the one that begins there.
  int64_t Next(int64_t begin) const;

 private:
  enum class Unit : uint8_t { kMicros, kDays, kWeeks, kMonths, kYears };
  // Of the step that has the day; and of the one behind it.
  int64_t FirstDay(int64_t day) const;
  int64_t NextFirstDay(int64_t first_day) const;

  Unit unit_{Unit::kMicros};
  int64_t count_{1};
  TimeZone zone_;
};

}  // namespace cellar
