// What clients make the server hold is bounded together: beyond it the largest are disconnected.
//
//   maxmemory-clients n, n%   all of it: requests, replies that wait, what reads hold
//   maxmemory-clients 0       requests alone (the half of a command, commands that wait, queues of
//                             MULTI), a half of maxmemory: what is not carried out yet must not keep
//                             others from writing. Without maxmemory there is no bound.
//
// Not counted, and never disconnected: links to other nodes, and who has said CLIENT NO-EVICT ON.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cellar {

struct Config;
class Connection;

struct ClientBound {
  uint64_t bytes{0};  // 0: none
  bool requests_only{false};
};
ClientBound ClientBoundOf(const Config& config);

// Those that have to go, the largest first, so that the others keep within the bound. What has
// ended already counts no more. O(connections), and O(k log n) for k that go.
std::vector<Connection*> ClientsToEvict(std::span<Connection* const> connections,
                                        const ClientBound& bound);

}  // namespace cellar
