// A disk that stands still, for LD_PRELOAD: once bytes with HELD_SYNC_MARK have been written to a
// file, fdatasync does not return while the file HELD_SYNC_GATE exists; it makes
// HELD_SYNC_GATE.waiting as it begins to wait.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::atomic<bool> mark_seen{false};

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  static auto* const next = Next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const std::string_view written(static_cast<const char*>(bytes), size);
  if (written.find(std::getenv("HELD_SYNC_MARK")) != written.npos) mark_seen = true;
  return next(file, bytes, size, offset);
}

extern "C" int fdatasync(int file) {
  static auto* const next = Next<int(int)>("fdatasync");
  const std::string gate = std::getenv("HELD_SYNC_GATE");
  if (mark_seen && access(gate.c_str(), F_OK) == 0) {
    close(creat((gate + ".waiting").c_str(), 0600));
    while (access(gate.c_str(), F_OK) == 0) usleep(1000);
  }
  return next(file);
}
