// ArrivalLog: cells with timestamps that are most likely a mistake (ArrivalWatch), told in the
// server's log: of each kind at most one line a minute. It is looked at from a timer.
#pragma once

#include <array>
#include <cstdint>

#include "engine/rows/arrival_watch.h"

namespace cellar {

class ArrivalLog {
 public:
  static constexpr int64_t kPauseMicros{60'000'000};

  // `now_micros` is of a monotonic clock.
  void Look(const ArrivalWatch& arrivals, int64_t now_micros);

 private:
  struct Kind {
    uint64_t told{0};
    int64_t told_micros{-kPauseMicros};
  };
  std::array<Kind, kOddArrivals> kinds_;
};

}  // namespace cellar
