// See descriptors.h.
#include "server/net/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

#include "commands/config/config.h"

namespace cellar {
namespace {

// Log, snapshot, archive and their folders, listeners, the loop's own, a client at the door, and
// links that this node opens.
constexpr int64_t kOwnFiles{48};
constexpr int64_t kThreadFiles{8};  // of an I/O thread's loop
constexpr int64_t kMemberFiles{4};  // links with another member, copies of it among them

int64_t KeptBack(const Config& config) {
  const auto members = std::count(config.cluster_nodes.begin(), config.cluster_nodes.end(), ':');
  return kOwnFiles + (config.io_threads - 1) * kThreadFiles + members * kMemberFiles;
}

}  // namespace

int64_t ClientsThatFit(const Config& config, int64_t maxclients) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return maxclients;
  const int64_t kept_back = KeptBack(config);
  const auto wanted = static_cast<rlim_t>(maxclients + kept_back);
  if (limit.rlim_cur < wanted) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
    if (raised.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= wanted) return maxclients;
  return std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - kept_back, 0);
}

uint64_t DescriptorLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

}  // namespace cellar
