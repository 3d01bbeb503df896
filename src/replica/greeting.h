// PeerGreeting: what a node that dials another says first, AUTH and PEER as commands, and what it
// makes of the replies. Behind them come frames.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar {

struct ReplicationOptions;
struct Identity;

// Whether that may be a host as another node says its own: it is dialled, and shown to operators,
// so nothing is that could break a line or a word, nor the path of a socket.
bool IsPlainHost(std::string_view text);

// Where a node can be reached by those on its machine.
struct Neighbour {
  uint64_t machine{0};   // hash of its name
  std::string socket{};  // absolute path of its unix socket; empty: it has none
};

// The reply to PEER. `cluster` as the node shows it; `features`: what it knows, 0: it is not told.
std::string AcceptanceText(std::string_view cluster, uint64_t node, uint64_t features,
                           const Neighbour& neighbour);

class PeerGreeting {
 public:
  // The commands. `features`: of a bulk link its ticket, of a command link what this node knows.
  std::string Begin(const ReplicationOptions& options, const Identity& identity,
                    std::string_view purpose, uint64_t features);
  // Takes in what comes. True once PEER has been accepted: *rest is what came behind. ERR: why not.
  Result<bool> Take(std::string_view bytes, std::string* rest);
  // Who has accepted; 0: it was not told.
  uint64_t node() const { return node_; }
  // Of which set it is; 0: it was not told.
  uint64_t cluster() const { return cluster_; }
  // What it knows, of what this node has said that it does; 0 of an older version.
  uint64_t features() const { return features_; }
  // Where it is; nowhere, if it has not said.
  const Neighbour& neighbour() const { return neighbour_; }

 private:
  std::string replies_;
  int awaited_{0};
  uint64_t node_{0};
  uint64_t cluster_{0};
  uint64_t features_{0};
  Neighbour neighbour_;
};

}  // namespace cellar
