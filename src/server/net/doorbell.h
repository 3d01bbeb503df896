// Doorbell: wakes a loop that sleeps, and costs a load where it does not.
//
//   sleeper   Arm, then look at the queues once more; if there is something, it does not sleep
//             awake again: Disarm
//   others    put something into a queue, then Ring
//
// Arming, looking, putting in and ringing are sequentially consistent (spsc_queue.h), so of a
// sleeper that looks and another one that puts in at the same time at least one sees the other:
// nothing is left in a queue beside a sleeping loop. One call of the kernel a sleep at most.
//
// Not a uv_async: whoever is woken by one waits, spinning, until the other thread has returned from
// the kernel (uv__async_spin in libuv 1.44), which on busy processors is long.
//
// Opened and closed on the loop's thread; rung by any while it is open.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include <atomic>
#include <cstdint>

#include "base/assert.h"

namespace cellar {

class Doorbell {
 public:
  Doorbell() = default;
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  void Open(uv_loop_t* loop) {
    fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CELLAR_ASSERT(fd_ >= 0);
    poll_.data = this;
    const int failure = uv_poll_init(loop, &poll_, fd_);
    CELLAR_ASSERT(failure == 0);
    (void)uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* poll, int, int) noexcept {
      uint64_t rings = 0;
      (void)!::read(static_cast<Doorbell*>(poll->data)->fd_, &rings, sizeof(rings));
    });
  }
  void Close() {
    (void)uv_poll_stop(&poll_);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libuv's way of inheritance.
    uv_close(reinterpret_cast<uv_handle_t*>(&poll_), nullptr);
    (void)::close(fd_);
  }
  void Arm() { armed_.store(true, std::memory_order_seq_cst); }
  void Disarm() { armed_.store(false, std::memory_order_relaxed); }
  void Ring() {
    if (!armed_.load(std::memory_order_seq_cst)) return;
    if (!armed_.exchange(false, std::memory_order_seq_cst)) return;
    const uint64_t one = 1;
    (void)!::write(fd_, &one, sizeof(one));  // it cannot be full: nobody rings 2^64 times
  }

 private:
  uv_poll_t poll_{};
  int fd_{-1};
  std::atomic<bool> armed_{false};
};

}  // namespace cellar
