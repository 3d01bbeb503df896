// See systemd_notify.h.
#include "server/systemd_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/text/number.h"

namespace cellar {

SystemdNotify::SystemdNotify() {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  path_ = path;
  if (path_.size() >= sizeof(sockaddr_un::sun_path)) return;
  fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const char* watchdog = std::getenv("WATCHDOG_USEC");
  int64_t micros = 0;
  if (watchdog != nullptr && ParseInt64(watchdog, &micros) == NumberError::kNone && micros > 0) {
    watchdog_interval_ms_ = static_cast<uint64_t>(micros) / 2000;
    if (watchdog_interval_ms_ == 0) watchdog_interval_ms_ = 1;
  }
}

SystemdNotify::~SystemdNotify() {
  if (fd_ >= 0) (void)close(fd_);
}

void SystemdNotify::Send(std::string_view lines) const {
  if (fd_ < 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (path_[0] == '@') address.sun_path[0] = '\0';  // the abstract name space
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the socket API.
  (void)sendto(fd_, lines.data(), lines.size(), MSG_NOSIGNAL,
               reinterpret_cast<const struct sockaddr*>(&address), size);
}

}  // namespace cellar
