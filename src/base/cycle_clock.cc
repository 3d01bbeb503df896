// See cycle_clock.h.
#include "base/cycle_clock.h"

#include <limits>

#include "cellar/clock.h"

namespace cellar {

CycleClock::CycleClock() {
  Clock& clock = Clock::System();
  const int64_t begin_micros = clock.MonotonicMicros();
  const uint64_t begin = Now();
  int64_t end_micros = begin_micros;
  while (end_micros - begin_micros < 2000) end_micros = clock.MonotonicMicros();
  const uint64_t cycles = Now() - begin;
  const auto nanos = static_cast<uint64_t>(end_micros - begin_micros) * 1000;
  nanos_per_cycle_2_32_ = cycles == 0 ? uint64_t{1} << 32 : (nanos << 32) / cycles;
  if (nanos_per_cycle_2_32_ == 0) nanos_per_cycle_2_32_ = 1;
}

uint64_t CycleClock::FromMicros(uint64_t micros) const {
  const long double cycles = static_cast<long double>(micros) * 1000.0L * 4294967296.0L /
                             static_cast<long double>(nanos_per_cycle_2_32_);
  constexpr auto kMax = std::numeric_limits<uint64_t>::max();
  return cycles >= static_cast<long double>(kMax) ? kMax : static_cast<uint64_t>(cycles);
}

}  // namespace cellar
