// See log.h.
#include "base/os/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>

namespace cellar {
namespace {

std::atomic<int> log_fd{STDOUT_FILENO};
std::atomic<uint8_t> lowest_severity{static_cast<uint8_t>(LogSeverity::kNotice)};
std::atomic<bool> is_silent{false};

}  // namespace

bool SetLogFile(const std::string& path) {
  const int fd = path.empty() ? STDOUT_FILENO
                              : open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const int old = log_fd.exchange(fd);
  if (old != STDOUT_FILENO) (void)close(old);
  return true;
}

void SetLogSeverity(LogSeverity lowest) { lowest_severity = static_cast<uint8_t>(lowest); }
void SilenceLog(bool silent) { is_silent = silent; }

void Log(LogSeverity severity, std::string_view text) {
  if (is_silent || static_cast<uint8_t>(severity) < lowest_severity) return;
  timespec now{};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  (void)localtime_r(&now.tv_sec, &local);
  char date[64];
  (void)std::strftime(date, sizeof(date), "%d %b %Y %H:%M:%S", &local);
  char head[128];
  const int size =
      std::snprintf(head, sizeof(head), "%d:M %s.%03d %c ", static_cast<int>(getpid()), date,
                    static_cast<int>(now.tv_nsec / 1'000'000), ".-*#"[static_cast<int>(severity)]);
  std::string line(head, size > 0 ? static_cast<size_t>(size) : 0);
  line.append(text).append("\n");
  // A log that cannot be written must not stop the server.
  [[maybe_unused]] const ssize_t written = write(log_fd, line.data(), line.size());
}

}  // namespace cellar
