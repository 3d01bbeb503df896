// Thread names and priorities on Linux, where nice is a thread's own.
#include "base/thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cellar {

void SetThreadName(const char* name) { (void)pthread_setname_np(pthread_self(), name); }

void LowerThreadPriority() {
  constexpr int kNice = 5;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
}

}  // namespace cellar
