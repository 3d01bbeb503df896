// Time as an argument: whatever needs the time is handed a Clock, so that a test runs with its own.
#pragma once

#include <cstdint>

namespace cellar {

class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since the Unix epoch. May jump with the system's clock.
  virtual int64_t WallMicros() = 0;
  // Microseconds since some fixed moment; never goes back.
  virtual int64_t MonotonicMicros() = 0;

  // The machine's own clocks (clock_gettime). Lives as long as the process.
  static Clock& System();
};

}  // namespace cellar
