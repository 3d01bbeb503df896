// See recover_point.h.
#include "store/offline/recover_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/text/number.h"
#include "base/text/quote.h"
#include "base/text/time_text.h"
#include "engine/feeds/feed.h"
#include "engine/state/snapshot_set.h"
#include "store/format/log_format.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerSecond{1'000'000};
constexpr size_t kMicrosDigitsMin{16};
constexpr std::string_view kFirstKeyspace{"0"};
constexpr std::string_view kCutPrefix{"CUT:"};

bool AllDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
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
  if (const auto time = ParseTimeText(text, TimeForm::kRfc3339); time.ok() && *time >= 0) {
    point.micros = std::min(*time, kCommitTimeMax);
    return point;
  }
  if (const auto id = ParseId(text)) {
    point.kind = RecoverPoint::Kind::kId;
    point.micros = *id;
    return point;
  }
  if (text.starts_with(kCutPrefix)) {
    point.kind = RecoverPoint::Kind::kCut;
    const std::string_view digits = text.substr(kCutPrefix.size());
    if (AllDigits(digits) && ParseUint64(digits, &point.cut) == NumberError::kNone && point.cut > 0)
      return point;
    return Status::Error(ErrorCode::kErr,
                         Quote(text) +
                             " is no cut: CUT: and the number of one, as CLUSTER CUTS "
                             "tells them");
  }
  point.kind = RecoverPoint::Kind::kSnapshot;
  const size_t slash = text.find('/');
  point.keyspace = slash == std::string_view::npos ? kFirstKeyspace : text.substr(0, slash);
  point.name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  if (!point.keyspace.empty() && IsSnapshotName(point.name)) return point;
  return Status::Error(
      ErrorCode::kErr,
      Quote(text) +
          " is no point to recover to: a time (2026-11-23T02:59:59Z, 2026-11-23, now-1h or "
          "microseconds), "
          "the id of an entry (1795403485350-197000000), CUT:n, or the name of a snapshot");
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
