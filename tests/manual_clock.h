// ManualClock: both times stand still until a test moves them.
#pragma once

#include <atomic>
#include <cstdint>

#include "cellar/clock.h"

namespace cellar {

class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t micros = 1'000'000) : now_micros(micros) {}
  int64_t WallMicros() override { return now_micros; }
  int64_t MonotonicMicros() override { return now_micros; }

  std::atomic<int64_t> now_micros;  // the store's sync thread reads it too
};

}  // namespace cellar
