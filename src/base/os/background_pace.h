// BackgroundPace: makes a thread that nobody waits for let the others pass, between pieces of work
// of some ten microseconds.
//
// A low priority alone does not do that. By what is fair such a thread has a turn on a busy
// processor now and then, and Linux lets it have that to the next tick of the scheduler, up to four
// milliseconds, while a thread that serves clients waits. One that gives the processor back after
// each piece makes it wait for one piece. On a processor with nothing else to do it costs a system
// call for each piece.
#pragma once

#include <cstdint>
#include <functional>

#include "cellar/clock.h"

namespace cellar {

class BackgroundPace {
 public:
  // `yield` lets other threads run and returns when it is this one's turn again; for tests.
  explicit BackgroundPace(Clock& clock, std::function<void()> yield = YieldProcessor,
                          int64_t wait_share_max = kWaitShareMax);
  // Of work that somebody waits for, though others come first.
  static BackgroundPace WithShare(Clock& clock, int64_t wait_share_max) {
    return BackgroundPace(clock, YieldProcessor, wait_share_max);
  }

  // To be called between two pieces of work. Does nothing as long as the thread has waited for more
  // than its share (kWaitShareMax times) of what it has worked: on a machine that is never idle it
  // gets on all the same.
  void Pause();

  static constexpr int64_t kWaitShareMax{8};

 private:
  static void YieldProcessor();

  Clock& clock_;
  const std::function<void()> yield_;
  const int64_t wait_share_max_;
  int64_t piece_begin_micros_;
  int64_t worked_micros_{0};
  int64_t waited_micros_{0};
};

}  // namespace cellar
