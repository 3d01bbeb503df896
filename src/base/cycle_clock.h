// CycleClock: the processor's own counter, for timing each command without paying for a clock call
// (7 ns against 25). Only for durations that are shown to people; time that means something comes
// from Clock.
//
// x86-64 reads the time stamp counter, arm64 the generic timer; elsewhere it is the monotonic
// clock. Both run at a constant rate on machines of this century; the rate is measured once against
// the monotonic clock.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include "cellar/clock.h"
#endif

namespace cellar {

class CycleClock {
 public:
  static uint64_t Now() {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return static_cast<uint64_t>(Clock::System().MonotonicMicros());
#endif
  }

  // Measures the rate for about 2 ms.
  CycleClock();

  uint64_t ToNanos(uint64_t cycles) const {
    return static_cast<uint64_t>((Wide{cycles} * nanos_per_cycle_2_32_) >> 32);
  }
  // Cycles in `micros`; saturates.
  uint64_t FromMicros(uint64_t micros) const;

 private:
  __extension__ typedef unsigned __int128 Wide;

  uint64_t nanos_per_cycle_2_32_{1};  // fixed point, 32 fractional bits
};

}  // namespace cellar
