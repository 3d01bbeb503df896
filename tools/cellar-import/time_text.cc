// Timestamps as data files have them (ParseTimestamp of row_mapper.h).
#include "base/text/time_text.h"

#include <charconv>
#include <string>

#include "cellar-import/row_mapper.h"

namespace cellar::importer {
namespace {

constexpr int64_t kMicrosPerSecond{1'000'000};

// "1700000000.25": what stands behind the point of a number of `unit` microseconds each. Digits
// beyond microseconds are dropped, since a float of seconds has them by accident; of microseconds
// there are none but zeros. False if malformed.
bool ParseFraction(std::string_view text, int64_t unit, int64_t* micros) {
  if (text.size() < 2 || text.front() != '.') return false;
  const bool is_micros{unit == 1};
  *micros = 0;
  for (const char c : text.substr(1)) {
    if (c < '0' || c > '9' || (is_micros && c != '0')) return false;
    unit /= 10;
    *micros += (c - '0') * unit;
  }
  return true;
}

}  // namespace

Result<int64_t> ParseTimestamp(std::string_view text, TimeUnit unit) {
  const Status bad =
      Status::Error(ErrorCode::kBadValue, "'" + std::string(text) + "' is not a timestamp");
  int64_t number{0};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view behind{text.substr(static_cast<size_t>(end - text.data()))};
  if (error == std::errc() && (behind.empty() || behind.front() == '.')) {
    const int64_t micros{unit == TimeUnit::kSeconds  ? kMicrosPerSecond
                         : unit == TimeUnit::kMillis ? 1'000
                                                     : 1};
    int64_t fraction{0};
    if (!behind.empty() && !ParseFraction(behind, micros, &fraction)) return bad;
    if (text.front() == '-' || number > (INT64_MAX - fraction) / micros) return bad;
    return number * micros + fraction;
  }
  const Result<int64_t> time = ParseTimeText(text, TimeForm::kIso8601);
  if (time.ok() && *time >= 0) return *time;
  // A day that there is not, a fraction that is too fine: that is worth a reason.
  const std::string why = time.ok() ? "it is before 1970" : time.status().text();
  const bool is_like_one = time.ok() || why.find("neither") == std::string::npos;
  if (!is_like_one) return bad;
  const size_t colon = why.rfind(": ");
  return Status::Error(
      ErrorCode::kBadValue,
      bad.text() + ": " + (colon == std::string::npos ? why : why.substr(colon + 2)));
}

}  // namespace cellar::importer
