// See load_meter.h.
#include "base/os/load_meter.h"

#include <sys/resource.h>

#include <algorithm>

namespace cellar {
namespace {

int64_t MicrosOf(const timeval& time) { return int64_t{time.tv_sec} * 1'000'000 + time.tv_usec; }

}  // namespace

uint64_t LoadMeter::Percent(int64_t monotonic_micros) {
  const int64_t passed = monotonic_micros - seen_micros_;
  if (seen_micros_ != 0 && passed < kIntervalMicros) return percent_;
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return percent_;
  const int64_t cpu = MicrosOf(usage.ru_utime) + MicrosOf(usage.ru_stime);
  if (seen_micros_ != 0)
    percent_ =
        static_cast<uint64_t>(std::clamp<int64_t>((cpu - cpu_micros_) * 100 / passed, 0, 100));
  seen_micros_ = monotonic_micros;
  cpu_micros_ = cpu;
  return percent_;
}

}  // namespace cellar
