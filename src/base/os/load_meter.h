// LoadMeter: how much of a core a thread takes, as of the last second or so.
#pragma once

#include <cstdint>

namespace cellar {

class LoadMeter {
 public:
  // Percent of a core that the calling thread has taken: between this call and an earlier one, at
  // least a second apart; calls in between tell the same. 0 at first. Always the same thread.
  uint64_t Percent(int64_t monotonic_micros);

 private:
  static constexpr int64_t kIntervalMicros{1'000'000};

  int64_t seen_micros_{0};
  int64_t cpu_micros_{0};  // then
  uint64_t percent_{0};
};

}  // namespace cellar
