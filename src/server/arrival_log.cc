// See arrival_log.h.
#include "server/arrival_log.h"

#include <fmt/format.h>

#include <iterator>

#include "base/os/log.h"

namespace cellar {
namespace {

// By OddArrival.
constexpr const char* kTexts[] = {
    "further in the future than ts-future-max allows for",
    "so old that the family's retention drops them at once: nobody will read them",
    "in milliseconds or seconds, by the look of it: TS counts microseconds since 1970",
};
static_assert(std::size(kTexts) == kOddArrivals);

}  // namespace

void ArrivalLog::Look(const ArrivalWatch& arrivals, int64_t now_micros) {
  for (size_t i = 0; i < kOddArrivals; ++i) {
    Kind& kind = kinds_[i];
    const uint64_t count = arrivals.count(static_cast<OddArrival>(i));
    if (count == kind.told || now_micros - kind.told_micros < kPauseMicros) continue;
    Log(LogSeverity::kWarning,
        fmt::format("{} cells came with timestamps {}; the last: {}", count - kind.told, kTexts[i],
                    arrivals.last(static_cast<OddArrival>(i))));
    kind.told = count;
    kind.told_micros = now_micros;
  }
}

}  // namespace cellar
