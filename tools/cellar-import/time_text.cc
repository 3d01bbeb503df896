// Timestamps as data files have them (ParseTimestamp of row_mapper.h).
#include <charconv>
#include <string>

#include "cellar-import/row_mapper.h"

namespace cellar::importer {
namespace {

constexpr int64_t kMicrosPerSecond{1'000'000};

// Takes exactly `digits` digits off the front of *text; -1 if they are not there.
int64_t TakeNumber(std::string_view* text, size_t digits) {
  if (text->size() < digits) return -1;
  int64_t value{0};
  for (size_t i{0}; i < digits; ++i) {
    const char c{(*text)[i]};
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  text->remove_prefix(digits);
  return value;
}

bool TakeChar(std::string_view* text, std::string_view any_of) {
  if (text->empty() || any_of.find(text->front()) == std::string_view::npos) return false;
  text->remove_prefix(1);
  return true;
}

// Days from 1970-01-01 of a date of the Gregorian calendar: years begin in March, so that the leap
// day is the last one.
int64_t DaysFromDate(int64_t year, int64_t month, int64_t day) {
  const int64_t shifted_year{month <= 2 ? year - 1 : year};
  const int64_t era{shifted_year / 400};
  const int64_t year_of_era{shifted_year - era * 400};
  const int64_t day_of_year{(153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1};
  const int64_t day_of_era{year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year};
  return era * 146'097 + day_of_era - 719'468;
}

int64_t DaysInMonth(int64_t year, int64_t month) {
  if (month == 2) return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

// The time of day behind the date, in microseconds, its offset from UTC taken off. False if
// malformed.
bool ParseTimeOfDay(std::string_view text, int64_t* micros) {
  *micros = 0;
  if (text.empty()) return true;
  if (!TakeChar(&text, "Tt ")) return false;
  const int64_t hour{TakeNumber(&text, 2)};
  if (hour < 0 || hour > 23 || !TakeChar(&text, ":")) return false;
  const int64_t minute{TakeNumber(&text, 2)};
  if (minute < 0 || minute > 59) return false;
  int64_t second{0};
  if (TakeChar(&text, ":")) {
    second = TakeNumber(&text, 2);
    if (second < 0 || second > 59) return false;
    if (TakeChar(&text, ".")) {
      int64_t scale{kMicrosPerSecond / 10};
      if (text.empty()) return false;
      while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
        *micros += (text.front() - '0') * scale;
        scale /= 10;
        text.remove_prefix(1);
      }
    }
  }
  *micros += ((hour * 60 + minute) * 60 + second) * kMicrosPerSecond;
  if (text.empty() || text == "Z" || text == "z") return true;
  const bool is_east{text.front() == '+'};
  if (!TakeChar(&text, "+-")) return false;
  const int64_t offset_hours{TakeNumber(&text, 2)};
  TakeChar(&text, ":");
  const int64_t offset_minutes{text.empty() ? 0 : TakeNumber(&text, 2)};
  if (offset_hours < 0 || offset_hours > 23 || offset_minutes < 0 || offset_minutes > 59) {
    return false;
  }
  const int64_t offset_micros{(offset_hours * 60 + offset_minutes) * 60 * kMicrosPerSecond};
  *micros += is_east ? -offset_micros : offset_micros;
  return text.empty();
}

}  // namespace

Result<int64_t> ParseTimestamp(std::string_view text, TimeUnit unit) {
  const Status bad =
      Status::Error(ErrorCode::kBadValue, "'" + std::string(text) + "' is not a timestamp");
  int64_t number{0};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    const int64_t micros{unit == TimeUnit::kSeconds  ? kMicrosPerSecond
                         : unit == TimeUnit::kMillis ? 1'000
                                                     : 1};
    if (number < 0 || number > INT64_MAX / micros) return bad;
    return number * micros;
  }
  std::string_view rest{text};
  const int64_t year{TakeNumber(&rest, 4)};
  if (year < 1970 || !TakeChar(&rest, "-")) return bad;
  const int64_t month{TakeNumber(&rest, 2)};
  if (month < 1 || month > 12 || !TakeChar(&rest, "-")) return bad;
  const int64_t day{TakeNumber(&rest, 2)};
  if (day < 1 || day > DaysInMonth(year, month)) return bad;
  int64_t micros{0};
  if (!ParseTimeOfDay(rest, &micros)) return bad;
  const int64_t total{DaysFromDate(year, month, day) * 86'400 * kMicrosPerSecond + micros};
  if (total < 0) return bad;
  return total;
}

}  // namespace cellar::importer
