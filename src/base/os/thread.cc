// Thread names and priorities on Linux, where nice is a thread's own.
#include "base/os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cellar {

void SetThreadName(const char* name) { (void)pthread_setname_np(pthread_self(), name); }

void WaitForOthersWhenWoken() {
  const sched_param none{};
  (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

void LowerThreadPriority() {
  WaitForOthersWhenWoken();
  constexpr int kNicer = 5;
  const auto thread = static_cast<id_t>(gettid());
  (void)setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kNicer);
}

}  // namespace cellar
