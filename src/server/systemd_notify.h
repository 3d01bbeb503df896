// What the server tells systemd (sd_notify(3)): datagrams to the socket that $NOTIFY_SOCKET names.
// Does nothing when there is none, so the server runs the same without systemd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

class SystemdNotify {
 public:
  // Reads NOTIFY_SOCKET and WATCHDOG_USEC.
  SystemdNotify();
  ~SystemdNotify();
  SystemdNotify(const SystemdNotify&) = delete;
  SystemdNotify& operator=(const SystemdNotify&) = delete;

  bool active() const { return fd_ >= 0; }
  // Lines such as "READY=1\nSTATUS=...". Never blocks; a message that does not get through is lost.
  void Send(std::string_view lines) const;
  // How often WATCHDOG=1 is due: half of what systemd asks for. 0: never.
  uint64_t watchdog_interval_ms() const { return watchdog_interval_ms_; }

 private:
  int fd_{-1};
  std::string path_;
  uint64_t watchdog_interval_ms_{0};
};

}  // namespace cellar
