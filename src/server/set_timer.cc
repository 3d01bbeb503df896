// See set_timer.h.
#include "server/set_timer.h"

#include <algorithm>
#include <utility>

namespace cellar {

void SetTimer::Open(uv_loop_t* loop) {
  (void)uv_timer_init(loop, &timer_);
  timer_.data = this;
}

// Never by the loop's own idea of the time, which may be of the turn's beginning.
void SetTimer::Update(int64_t due_micros) {
  // What was read may have put off the time that waited for it.
  if (waits_ && due_micros > clock_.MonotonicMicros()) waits_ = false;
  if (due_micros == due_micros_) return;
  due_micros_ = due_micros;
  if (due_micros == INT64_MAX) {
    (void)uv_timer_stop(&timer_);
    return;
  }
  uv_update_time(timer_.loop);
  const int64_t micros = std::max<int64_t>(due_micros - clock_.MonotonicMicros(), 0);
  (void)uv_timer_start(
      &timer_, [](uv_timer_t* h) noexcept { static_cast<SetTimer*>(h->data)->OnTimer(); },
      static_cast<uint64_t>((micros + 999) / 1000), 0);
}

// It has ended, so that the next Update starts it anew. Of one that waits that is behind the next
// poll: no timer is started here, which libuv might call at once.
void SetTimer::OnTimer() {
  const int64_t due_micros = std::exchange(due_micros_, INT64_MAX);
  const bool is_late = clock_.MonotonicMicros() - due_micros >= kLateMicros;
  waits_ = is_late && polled_micros_ < due_micros;
  if (!waits_) on_due_();
}

}  // namespace cellar
