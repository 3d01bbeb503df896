// See background_pace.h.
#include "base/os/background_pace.h"

#include <sched.h>

#include <utility>

namespace cellar {

BackgroundPace::BackgroundPace(Clock& clock, std::function<void()> yield, int64_t wait_share_max)
    : clock_(clock),
      yield_(std::move(yield)),
      wait_share_max_(wait_share_max),
      piece_begin_micros_(clock.MonotonicMicros()) {}

void BackgroundPace::Pause() {
  const int64_t piece_end_micros = clock_.MonotonicMicros();
  worked_micros_ += piece_end_micros - piece_begin_micros_;
  piece_begin_micros_ = piece_end_micros;
  if (waited_micros_ > worked_micros_ * wait_share_max_) return;
  yield_();
  piece_begin_micros_ = clock_.MonotonicMicros();
  waited_micros_ += piece_begin_micros_ - piece_end_micros;
}

void BackgroundPace::YieldProcessor() { (void)sched_yield(); }

}  // namespace cellar
