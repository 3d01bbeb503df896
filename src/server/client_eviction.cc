// See client_eviction.h.
#include "server/client_eviction.h"

#include <algorithm>
#include <utility>

#include "commands/config/config.h"
#include "server/connection/connection.h"

namespace cellar {

ClientBound ClientBoundOf(const Config& config) {
  const auto maxmemory = static_cast<uint64_t>(config.maxmemory);
  if (config.maxmemory_clients_percent > 0) {
    const auto percent = static_cast<uint64_t>(config.maxmemory_clients_percent);
    return {.bytes = maxmemory / 100 * percent + maxmemory % 100 * percent / 100,
            .requests_only = false};
  }
  if (config.maxmemory_clients_bytes > 0)
    return {.bytes = static_cast<uint64_t>(config.maxmemory_clients_bytes), .requests_only = false};
  return {.bytes = maxmemory / 2, .requests_only = true};
}

std::vector<Connection*> ClientsToEvict(std::span<Connection* const> connections,
                                        const ClientBound& bound) {
  std::vector<Connection*> evicted;
  if (bound.bytes == 0) return evicted;
  std::vector<std::pair<uint64_t, Connection*>> sizes;
  uint64_t total = 0;
  for (Connection* connection : connections) {
    const Session& session = connection->session;
    if (session.switches.no_evict || session.ended() || connection->closing() ||
        session.peer != PeerRole::kNone) {
      continue;
    }
    const uint64_t bytes =
        bound.requests_only ? connection->request_bytes() : connection->counted_bytes;
    total += bytes;
    if (bytes > 0) sizes.emplace_back(bytes, connection);
  }
  const auto smaller = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (total > bound.bytes) std::make_heap(sizes.begin(), sizes.end(), smaller);
  while (total > bound.bytes && !sizes.empty()) {
    std::pop_heap(sizes.begin(), sizes.end(), smaller);
    total -= sizes.back().first;
    evicted.push_back(sizes.back().second);
    sizes.pop_back();
  }
  return evicted;
}

}  // namespace cellar
