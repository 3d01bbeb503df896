// SetTimer: a replica set's next look at the time, on the server's loop.
//
// libuv runs timers before it reads the sockets. Behind a long turn, or where the process got no
// processor for a while, a time that came meanwhile would be acted on while the frames that speak
// against it stand unread: a follower would call an election beside a leader that has written to
// it, a leader would step down with its acknowledgements at hand. So a time that is noticed late is
// acted on only once the sockets have been read since it came:
//
//   read   a turn of 200 ms .......... timers   read              timers
//               due |                  waits    the leader lives  a new due
//
// The loop's thread calls everything.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "cellar/clock.h"

namespace cellar {

class SetTimer {
 public:
  // `on_due` is called from the loop's timers.
  SetTimer(Clock& clock, std::function<void()> on_due)
      : clock_(clock), on_due_(std::move(on_due)) {}
  SetTimer(const SetTimer&) = delete;
  SetTimer& operator=(const SetTimer&) = delete;

  void Open(uv_loop_t* loop);
  // libuv's until its close callback.
  uv_timer_t& handle() { return timer_; }
  // Monotonic; INT64_MAX: never. The same one again costs nothing. Due at the end of each turn:
  // neither what `on_due` has done nor what waits is started anew by itself.
  void Update(int64_t due_micros);
  // The loop reads the sockets next.
  void BeforePoll() { polled_micros_ = clock_.MonotonicMicros(); }
  // A time has come and the sockets are to be read first: nothing long shall begin now.
  bool waits() const { return waits_; }

 private:
  // That a timer is late by less says nothing: libuv counts in milliseconds.
  static constexpr int64_t kLateMicros{2000};

  void OnTimer();

  Clock& clock_;
  const std::function<void()> on_due_;
  uv_timer_t timer_{};
  int64_t due_micros_{INT64_MAX};  // of the timer; INT64_MAX: it does not run
  int64_t polled_micros_{0};       // when the loop last began to read
  bool waits_{false};
};

}  // namespace cellar
