// See recover_point.h.
#include "store/offline/recover_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/feeds/feed.h"
#include "engine/state/snapshot_set.h"
#include "store/format/log_format.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerSecond{1'000'000};
constexpr size_t kMicrosDigitsMin{16};
constexpr std::string_view kFirstKeyspace{"0"};

bool AllDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Takes `digits` digits from the front of *text.
bool TakeNumber(std::string_view* text, size_t digits, int* number) {
  if (text->size() < digits || !AllDigits(text->substr(0, digits))) return false;
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

// Behind the seconds: a point and up to six digits.
bool TakeFraction(std::string_view* text, int64_t* micros) {
  *micros = 0;
  if (!TakeOneOf(text, ".")) return true;
  size_t digits = 0;
  while (digits < text->size() && AllDigits(text->substr(digits, 1))) ++digits;
  if (digits == 0 || digits > 6) return false;
  for (size_t i = 0; i < 6; ++i) *micros = *micros * 10 + (i < digits ? (*text)[i] - '0' : 0);
  text->remove_prefix(digits);
  return true;
}

// What is to be taken off to get to the time of Greenwich.
bool TakeZone(std::string_view* text, int64_t* seconds) {
  *seconds = 0;
  if (TakeOneOf(text, "Zz")) return text->empty();
  const int sign = !text->empty() && text->front() == '-' ? -1 : 1;
  int hours = 0;
  int minutes = 0;
  if (!TakeOneOf(text, "+-") || !TakeNumber(text, 2, &hours) || !TakeOneOf(text, ":") ||
      !TakeNumber(text, 2, &minutes) || hours > 23 || minutes > 59)
    return false;
  *seconds = sign * (hours * 3600 + minutes * 60);
  return text->empty();
}

// RFC 3339.
std::optional<int64_t> ParseTimeOfDay(std::string_view text) {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int64_t micros = 0;
  int64_t zone_s = 0;
  const bool is_date = TakeNumber(&text, 4, &year) && TakeOneOf(&text, "-") &&
                       TakeNumber(&text, 2, &month) && TakeOneOf(&text, "-") &&
                       TakeNumber(&text, 2, &day);
  if (!is_date || !TakeOneOf(&text, "Tt ")) return std::nullopt;
  const bool is_time = TakeNumber(&text, 2, &hour) && TakeOneOf(&text, ":") &&
                       TakeNumber(&text, 2, &minute) && TakeOneOf(&text, ":") &&
                       TakeNumber(&text, 2, &second);
  if (!is_time || !TakeFraction(&text, &micros) || !TakeZone(&text, &zone_s)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  const int64_t seconds = days * 86'400 + hour * 3600 + minute * 60 + second - zone_s;
  if (seconds < 0) return std::nullopt;
  return seconds * kMicrosPerSecond + micros;
}

std::optional<int64_t> ParseId(std::string_view text) {
  const size_t dash = text.find('-');
  FeedId id;
  if (dash == std::string_view::npos || !AllDigits(text.substr(0, dash)) ||
      !AllDigits(text.substr(dash + 1)) ||
      ParseUint64(text.substr(0, dash), &id.ms) != NumberError::kNone ||
      ParseUint64(text.substr(dash + 1), &id.n) != NumberError::kNone ||
      id.ms > static_cast<uint64_t>(kCommitTimeMax / 1000))
    return std::nullopt;
  return id.micros();
}

}  // namespace

Result<RecoverPoint> ParseRecoverPoint(std::string_view text) {
  RecoverPoint point{.kind = RecoverPoint::Kind::kTime, .text = std::string(text)};
  int64_t micros = 0;
  if (text.size() >= kMicrosDigitsMin && AllDigits(text) &&
      ParseInt64(text, &micros) == NumberError::kNone) {
    point.micros = std::min(micros, kCommitTimeMax);
    return point;
  }
  if (const auto time = ParseTimeOfDay(text)) {
    point.micros = *time;
    return point;
  }
  if (const auto id = ParseId(text)) {
    point.kind = RecoverPoint::Kind::kId;
    point.micros = *id;
    return point;
  }
  point.kind = RecoverPoint::Kind::kSnapshot;
  const size_t slash = text.find('/');
  point.keyspace = slash == std::string_view::npos ? kFirstKeyspace : text.substr(0, slash);
  point.name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  if (!point.keyspace.empty() && IsSnapshotName(point.name)) return point;
  return Status::Error(
      ErrorCode::kErr,
      Quote(text) +
          " is no point to recover to: a time (2026-11-23T02:59:59Z, or microseconds), "
          "the id of an entry (1795403485350-197000000), or the name of a snapshot");
}

std::string FormatTime(int64_t unix_micros) {
  const std::chrono::sys_seconds seconds{std::chrono::seconds{unix_micros / kMicrosPerSecond}};
  const auto days = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date{days};
  const std::chrono::hh_mm_ss time{seconds - days};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     unix_micros % kMicrosPerSecond);
}

}  // namespace cellar
