// ManualClock: both times stand still until a test moves them, or tells it that work takes time.
#pragma once

#include <atomic>
#include <cstdint>

#include "cellar/clock.h"

namespace cellar {

class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t micros = 1'000'000) : now_micros(micros) {}
  int64_t WallMicros() override { return now_micros; }
  int64_t MonotonicMicros() override { return now_micros += tick_micros; }

  std::atomic<int64_t> now_micros;      // the store's sync thread reads it too
  std::atomic<int64_t> tick_micros{0};  // from one look at the clock to the next
};

}  // namespace cellar
