// SetOrder: what an operator asks of a replica set: REPLICA ADD, REMOVE, PROMOTE, DEMOTE, and
// SENTINEL FAILOVER. The leader carries it out, one at a time (set_node_orders.cc); the numbers of
// the kinds travel in kOrder frames.
#pragma once

#include <cstdint>

#include "replica/replication.h"

namespace cellar {

enum class OrderKind : uint8_t {
  kAdd = 1,  // a node that becomes a voter once it has caught up
  kAddStandby = 2,
  kRemove = 3,
  kPromote = 4,
  kDemote = 5,
  kFailover = 6,
  kAddWitness = 7,
};

inline bool IsAdd(OrderKind kind) {
  return kind == OrderKind::kAdd || kind == OrderKind::kAddStandby ||
         kind == OrderKind::kAddWitness;
}

struct SetOrder {
  OrderKind kind{OrderKind::kAdd};
  uint64_t node{0};       // which one; 0: the one at `address`
  NodeAddress address{};  // likewise, if node is 0
};

}  // namespace cellar
