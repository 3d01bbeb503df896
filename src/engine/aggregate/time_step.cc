// See time_step.h.
#include "engine/aggregate/time_step.h"

#include <algorithm>

#include "base/assert.h"
#include "base/text/duration.h"
#include "base/text/number.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr int64_t kMsPerDay{86'400'000};
// 1970-01-01 was a Thursday.
constexpr int64_t kFirstMonday{-3};
constexpr int64_t kMonths1970{1970 * 12};
// A step longer than all time is none.
constexpr int64_t kCountMax{1'000'000};

int64_t FloorTo(int64_t number, int64_t step) {
  const int64_t rest = number % step;
  return number - rest - (rest < 0 ? step : 0);
}

bool TakeSuffix(std::string_view* text, std::string_view suffix) {
  if (!text->ends_with(suffix)) return false;
  text->remove_suffix(suffix.size());
  return true;
}

bool ParseSteps(std::string_view digits, int64_t* count) {
  return ParseInt64(digits, count) == NumberError::kNone && *count >= 1 && *count <= kCountMax;
}

}  // namespace

bool TimeStep::IsCalendar(std::string_view duration) {
  return duration.ends_with("w") || duration.ends_with("mo") || duration.ends_with("y");
}

Result<TimeStep> TimeStep::Parse(std::string_view duration, std::optional<std::string_view> zone) {
  TimeStep step;
  if (zone) {
    ASSIGN_OR_RETURN(step.zone_, TimeZone::Load(*zone));
  }
  if (!IsCalendar(duration)) {
    ASSIGN_OR_RETURN(const int64_t ms, ParseDurationMs(duration));
    step.unit_ = ms % kMsPerDay == 0 ? Unit::kDays : Unit::kMicros;
    step.count_ = ms % kMsPerDay == 0 ? ms / kMsPerDay : ms * kMicrosPerMs;
    return step;
  }
  std::string_view digits = duration;
  if (TakeSuffix(&digits, "w"))
    step.unit_ = Unit::kWeeks;
  else if (TakeSuffix(&digits, "mo"))
    step.unit_ = Unit::kMonths;
  else if (TakeSuffix(&digits, "y"))
    step.unit_ = Unit::kYears;
  if (ParseSteps(digits, &step.count_)) return step;
  return Status::Error(ErrorCode::kErr, "TIME " + Quote(duration) +
                                            " is no duration: a number from 1 to 1000000 and ms, "
                                            "s, m, h, d, w, mo or y");
}

int64_t TimeStep::FirstDay(int64_t day) const {
  switch (unit_) {
    case Unit::kDays:
      return FloorTo(day, count_);
    case Unit::kWeeks:
      return kFirstMonday + FloorTo(day - kFirstMonday, 7 * count_);
    default: {
      CELLAR_ASSERT(unit_ >= Unit::kMonths);
      const int64_t months = unit_ == Unit::kYears ? 12 * count_ : count_;
      return FirstDayOfMonth(FloorTo(kMonths1970 + MonthOfDay(day), months) - kMonths1970);
    }
  }
}

int64_t TimeStep::NextFirstDay(int64_t first_day) const {
  switch (unit_) {
    case Unit::kDays:
      return first_day + count_;
    case Unit::kWeeks:
      return first_day + 7 * count_;
    default: {
      CELLAR_ASSERT(unit_ >= Unit::kMonths);
      const int64_t months = unit_ == Unit::kYears ? 12 * count_ : count_;
      return FirstDayOfMonth(FloorTo(kMonths1970 + MonthOfDay(first_day), months) + months -
                             kMonths1970);
    }
  }
}

TimeStep::Piece TimeStep::Find(int64_t micros) const {
  const TimeZone::PartOfDay part = zone_.DayOf(micros);
  if (unit_ != Unit::kMicros) return {part.from, part.until, zone_.BeginOfDay(FirstDay(part.day))};
  const int64_t midnight = zone_.BeginOfDay(part.day);
  CELLAR_ASSERT(midnight <= micros);
  const int64_t begin = midnight + (micros - midnight) / count_ * count_;
  // In the first hours of 1970 a step may begin before them.
  const int64_t until = begin <= INT64_MAX - count_ ? begin + count_ : INT64_MAX;
  return {std::max(part.from, begin), std::min(part.until, until), begin};
}

// A step may begin on a day that a place has left out, and is found by the day that came instead.
int64_t TimeStep::Next(int64_t begin) const {
  const int64_t day = zone_.DayOf(begin).day;
  if (unit_ == Unit::kMicros) {
    const int64_t tomorrow = zone_.BeginOfDay(day + 1);
    return count_ < tomorrow - begin ? begin + count_ : tomorrow;
  }
  return zone_.BeginOfDay(NextFirstDay(FirstDay(day)));
}

}  // namespace cellar
