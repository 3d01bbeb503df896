// See time_text.h.
#include "base/text/time_text.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/text/ascii.h"
#include "base/text/duration.h"
#include "base/text/quote.h"
#include "cellar/clock.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerSecond{1'000'000};
constexpr size_t kMicrosDigits{6};
constexpr size_t kFractionDigitsMax{9};

thread_local std::optional<int64_t> now_of_texts;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

Status NoTime(std::string_view text, std::string_view why) {
  return Status::Error(ErrorCode::kErr, Quote(text) + " is not a time: " + std::string(why));
}

Status Malformed(std::string_view text) {
  return NoTime(text,
                "neither microseconds, now, now-1h, 2026-11-26 nor 2026-11-26T10:00:00.25+01:00");
}

// Takes exactly `digits` digits off the front of *text.
bool TakeNumber(std::string_view* text, size_t digits, int* number) {
  if (text->size() < digits || !std::all_of(text->begin(), text->begin() + digits, IsDigit))
    return false;
  *number = 0;
  for (const char c : text->substr(0, digits)) *number = *number * 10 + (c - '0');
  text->remove_prefix(digits);
  return true;
}

bool TakeOneOf(std::string_view* text, std::string_view chars) {
  if (text->empty() || chars.find(text->front()) == std::string_view::npos) return false;
  text->remove_prefix(1);
  return true;
}

// now, now-1h
Result<int64_t> ParseRelative(std::string_view text, int64_t now_micros) {
  const std::string_view behind = text.substr(3);
  if (behind.empty()) return now_micros;
  if (behind.front() != '+' && behind.front() != '-') return Malformed(text);
  const Result<int64_t> duration_ms = ParseDurationMs(behind.substr(1));
  if (!duration_ms.ok()) return NoTime(text, "a duration is a number and ms, s, m, h or d");
  const int64_t micros = *duration_ms * kMicrosPerMs;
  int64_t sum = 0;
  const bool beyond = behind.front() == '+' ? __builtin_add_overflow(now_micros, micros, &sum)
                                            : __builtin_sub_overflow(now_micros, micros, &sum);
  if (beyond) return NoTime(text, "it is out of range");
  return sum;
}

// The fraction of a second, whose point has been taken.
bool TakeFraction(std::string_view* text, int64_t* micros, bool* too_fine) {
  size_t digits = 0;
  *micros = 0;
  for (; digits < text->size() && IsDigit((*text)[digits]); ++digits) {
    const int digit = (*text)[digits] - '0';
    if (digits < kMicrosDigits)
      *micros = *micros * 10 + digit;
    else if (digit != 0)
      *too_fine = true;
  }
  for (size_t i = digits; i < kMicrosDigits; ++i) *micros *= 10;
  text->remove_prefix(digits);
  return digits > 0 && digits <= kFractionDigitsMax;
}

// Z or an offset, up to the end: what is to be taken off to get to UTC.
bool TakeOffset(std::string_view text, TimeForm form, int64_t* seconds) {
  *seconds = 0;
  if (text.empty()) return form == TimeForm::kIso8601;
  if (TakeOneOf(&text, "Zz")) return text.empty();
  const int sign = text.front() == '-' ? -1 : 1;
  int hours = 0;
  int minutes = 0;
  if (!TakeOneOf(&text, "+-") || !TakeNumber(&text, 2, &hours) || hours > 23) return false;
  const bool colon = TakeOneOf(&text, ":");
  if (form == TimeForm::kRfc3339 && !colon) return false;
  const bool hours_only = form == TimeForm::kIso8601 && !colon && text.empty();
  if (!hours_only && (!TakeNumber(&text, 2, &minutes) || minutes > 59)) return false;
  *seconds = sign * (hours * 3600 + minutes * 60);
  return text.empty();
}

// What stands behind the day, offset and all, in microseconds from its beginning in UTC.
bool ParseTimeOfDay(std::string_view text, TimeForm form, int64_t* micros, bool* too_fine) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int64_t fraction = 0;
  int64_t offset_s = 0;
  if (!TakeOneOf(&text, "Tt ") || !TakeNumber(&text, 2, &hour) || !TakeOneOf(&text, ":") ||
      !TakeNumber(&text, 2, &minute))
    return false;
  if (TakeOneOf(&text, ":")) {
    if (!TakeNumber(&text, 2, &second)) return false;
    if (TakeOneOf(&text, ".") && !TakeFraction(&text, &fraction, too_fine)) return false;
  } else if (form == TimeForm::kRfc3339) {
    return false;
  }
  if (hour > 23 || minute > 59 || second > 59 || !TakeOffset(text, form, &offset_s)) return false;
  *micros = (hour * 3600 + minute * 60 + second - offset_s) * kMicrosPerSecond + fraction;
  return true;
}

}  // namespace

void SetNowOfTexts(int64_t now_micros) { now_of_texts = now_micros; }
int64_t NowOfTexts() { return now_of_texts ? *now_of_texts : Clock::System().WallMicros(); }

Result<int64_t> ParseTimeText(std::string_view text, TimeForm form) {
  if (EqualsIgnoreCase(text.substr(0, 3), "now")) return ParseRelative(text, NowOfTexts());
  std::string_view rest = text;
  int year = 0;
  int month = 0;
  int day = 0;
  if (!TakeNumber(&rest, 4, &year) || !TakeOneOf(&rest, "-") || !TakeNumber(&rest, 2, &month) ||
      !TakeOneOf(&rest, "-") || !TakeNumber(&rest, 2, &day))
    return Malformed(text);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return NoTime(text, "there is no such day");
  int64_t of_day = 0;
  bool too_fine = false;
  if (!rest.empty() && !ParseTimeOfDay(rest, form, &of_day, &too_fine)) return Malformed(text);
  if (too_fine) return NoTime(text, "it is finer than a microsecond");
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return days * 86'400 * kMicrosPerSecond + of_day;
}

}  // namespace cellar
