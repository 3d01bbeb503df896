// See time_zone.h.
#include "base/os/time_zone.h"

#include <absl/time/civil_time.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/assert.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerSecond{1'000'000};
constexpr int64_t kSecondsPerDay{86'400};
// "America/Argentina/ComodRivadavia" is the longest name there is.
constexpr size_t kNameBytesMax{64};

int64_t FloorDivide(int64_t number, int64_t by) { return number / by - (number % by < 0 ? 1 : 0); }

// A name becomes part of a path, so it must not lead out of the folder of the data. absl remembers
// each name, so a zone must not have many: "a//b" is none.
bool IsZoneName(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax || name.front() == '/') return false;
  if (name.find("//") != std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '/';
  });
}

// absl remembers names that it has not found, so that only those come to it that there are.
bool HasFile(std::string_view name) {
  const char* const folder = std::getenv("TZDIR");
  std::string path(folder != nullptr && *folder != 0 ? folder : "/usr/share/zoneinfo");
  path.append("/").append(name);
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

absl::CivilDay CivilOf(int64_t day) { return absl::CivilDay(1970, 1, 1) + day; }

}  // namespace

Result<TimeZone> TimeZone::Load(std::string_view name) {
  TimeZone zone;
  if (name == "UTC") return zone;
  if (IsZoneName(name) && HasFile(name) && absl::LoadTimeZone(std::string(name), &zone.zone_))
    return zone;
  return Status::Error(ErrorCode::kErr, "no time zone " + Quote(name) + " on this system");
}

// A day has one offset mostly: then it is from midnight to midnight. On others an instant is looked
// at by itself. Days at the ends of all time are cut off there.
TimeZone::PartOfDay TimeZone::DayOf(int64_t micros) const {
  const auto offset_at = [this](int64_t at) {
    return int64_t{zone_.At(absl::FromUnixMicros(at)).offset};
  };
  const auto saturated = [](int64_t seconds) {
    constexpr int64_t kSecondsMax{INT64_MAX / kMicrosPerSecond};
    if (seconds > kSecondsMax) return INT64_MAX;
    return seconds < -kSecondsMax ? INT64_MIN : seconds * kMicrosPerSecond;
  };
  const int64_t offset = offset_at(micros);
  PartOfDay part;
  part.day = FloorDivide(FloorDivide(micros, kMicrosPerSecond) + offset, kSecondsPerDay);
  part.from = saturated(part.day * kSecondsPerDay - offset);
  part.until = saturated((part.day + 1) * kSecondsPerDay - offset);
  CELLAR_ASSERT(part.from <= micros);
  CELLAR_ASSERT(micros <= part.until);
  if (offset_at(part.from) == offset && offset_at(part.until - 1) == offset) return part;
  return {part.day, micros, micros};
}

int64_t TimeZone::BeginOfDay(int64_t day) const {
  const absl::TimeZone::TimeInfo info = zone_.At(absl::CivilSecond(CivilOf(day)));
  return absl::ToUnixMicros(info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre);
}

int64_t MonthOfDay(int64_t day) {
  return absl::CivilMonth(CivilOf(day)) - absl::CivilMonth(1970, 1);
}

int64_t FirstDayOfMonth(int64_t month) {
  return absl::CivilDay(absl::CivilMonth(1970, 1) + month) - absl::CivilDay(1970, 1, 1);
}

}  // namespace cellar
