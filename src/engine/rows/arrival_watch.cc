// See arrival_watch.h.
#include "engine/rows/arrival_watch.h"

#include "base/text/number.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerYear{365LL * 86'400 * 1'000'000};
// Clocks of tests and of young machines stand before it: there is nothing to compare with.
constexpr int64_t kClockMin{30 * kMicrosPerYear};  // since 1970
constexpr int64_t kYearsBack{20};

// Whether `timestamp`, taken for thousandths of what it says or for millionths, is a moment of the
// last twenty years, or of the next one.
bool LooksLikeLargerUnit(int64_t timestamp, int64_t now_micros) {
  if (now_micros < kClockMin) return false;
  for (const int64_t unit : {int64_t{1000}, int64_t{1'000'000}}) {
    if (timestamp > (now_micros - kYearsBack * kMicrosPerYear) / unit &&
        timestamp < (now_micros + kMicrosPerYear) / unit) {
      return true;
    }
  }
  return false;
}

}  // namespace

void ArrivalWatch::Note(std::string_view table, std::string_view column, int64_t timestamp_micros,
                        bool dead, int64_t now_micros) {
  const auto note = [&](OddArrival kind) {
    if (++noted_[static_cast<size_t>(kind)] > 1) return;  // one of a command is enough to be named
    last_[static_cast<size_t>(kind)] = "TS " + FormatInt64(timestamp_micros) + " of column " +
                                       Quote(column) + " in table " + Quote(table);
  };
  if (future_max_micros_ > 0 && timestamp_micros > now_micros &&
      timestamp_micros - now_micros > future_max_micros_) {
    note(OddArrival::kInFuture);
  }
  if (dead) note(OddArrival::kDeadOnArrival);
  if (LooksLikeLargerUnit(timestamp_micros, now_micros)) note(OddArrival::kNotMicros);
}

void ArrivalWatch::KeepNoted() {
  for (size_t i = 0; i < kOddArrivals; ++i) kept_[i] += noted_[i];
  noted_ = {};
}

}  // namespace cellar
