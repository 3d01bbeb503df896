// See neighbour.h.
#include "server/neighbour.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/hash.h"
#include "commands/reports/cluster_report.h"

namespace cellar {
Neighbour NeighbourOf(const Config& config) {
  const std::string name = MachineOf(config);
  if (name.empty() || config.unixsocket.empty()) return {};
  std::error_code error;
  const std::string path = std::filesystem::absolute(config.unixsocket, error).string();
  if (error || path.size() >= sizeof(sockaddr_un::sun_path)) return {};
  return {Hash64(name), path};
}

bool IsOwnOrRoots(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace cellar
