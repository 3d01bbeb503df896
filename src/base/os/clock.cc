// The machine's clocks behind the Clock interface.
#include "cellar/clock.h"

#include <ctime>

namespace cellar {
namespace {

int64_t ReadMicros(clockid_t id) {
  timespec now{};
  (void)clock_gettime(id, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1'000;
}

class SystemClock final : public Clock {
 public:
  int64_t WallMicros() override { return ReadMicros(CLOCK_REALTIME); }
  int64_t MonotonicMicros() override { return ReadMicros(CLOCK_MONOTONIC); }
};

}  // namespace

Clock& Clock::System() {
  static SystemClock clock;
  return clock;
}

}  // namespace cellar
