// CommandRole: what the machinery around handlers must know of single commands: which of them end a
// transaction, watch, log in, tell of this node alone. It is found once, when a command's entry is
// made: no names are compared while commands run.
#pragma once

#include <cstdint>
#include <string_view>

namespace cellar {

struct Command;

enum class CommandRole : uint8_t {
  kNone,
  kExec,
  kEndsWatches,  // DISCARD, RESET
  kWatch,        // WATCH, CWATCH
  kUnwatch,
  kWait,        // WAIT, WAITAOF
  kUserChange,  // ACL SETUSER, ACL DELUSER
  kUsers,       // what else ACL has
  kLogin,       // AUTH, HELLO
  kSelect,
  kDigest,     // DEBUG DIGEST
  kScan,       // CSCAN
  kFeedRead,   // what tells of entries of feeds
  kCluster,    // CLUSTER
  kMapRead,    // TABLET LIST: it tells of a node's copy of the cluster's map
  kRoute,      // TABLET ROUTE: likewise, unless the owner is asked
  kOfNode,     // reads data, and tells of this node: MEMORY USAGE, LOLWUT
  kAnywhere,   // each node may answer it inside of a transaction as well as any other
  kPeer,       // PEER
  kFollowing,  // REPLICAOF, SLAVEOF
};

// `full_name` as in CommandEntry.
CommandRole RoleOf(const Command& row, std::string_view full_name);

}  // namespace cellar
