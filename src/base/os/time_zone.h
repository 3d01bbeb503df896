// TimeZone: the days of a place, by the system's time zone data (TZDIR, or /usr/share/zoneinfo),
// through absl, which keeps a zone in memory for good once it is loaded.
//
// Instants are Unix microseconds. Days, by their number since 1970-01-01, and months, since January
// 1970, are those of the local calendar. A day begins with its first instant: where clocks skip
// midnight, that is when they do; where midnight comes twice, it is the first one.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

class TimeZone {
 public:
  TimeZone() = default;  // UTC
  // "Europe/Berlin"; ERR if there is no such zone. Reads a file at the first time.
  static Result<TimeZone> Load(std::string_view name);

  // All instants from `from` on and before `until` are of that day. It is not all of the day where
  // clocks are changed.
  struct PartOfDay {
    int64_t day{0};
    int64_t from{0};
    int64_t until{0};
  };
  PartOfDay DayOf(int64_t micros) const;
  // INT64_MAX or INT64_MIN for days beyond all instants.
  int64_t BeginOfDay(int64_t day) const;

 private:
  absl::TimeZone zone_{absl::UTCTimeZone()};
};

int64_t MonthOfDay(int64_t day);
int64_t FirstDayOfMonth(int64_t month);

}  // namespace cellar
