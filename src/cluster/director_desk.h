// DirectorDesk: what commands ask of the director's links to the other sets (server/cluster_links.h
// implements it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/set_directory.h"

namespace cellar {

// A set that has asked to be taken in.
struct WaitingSet {
  ClusterSet set;       // its number means nothing yet
  std::string refusal;  // why it cannot be; empty: it can
};

class DirectorDesk {
 public:
  virtual ~DirectorDesk() = default;
  // Ascending by id.
  virtual std::vector<WaitingSet> Waiting() const = 0;
  // A set that has not the change of the schema of that number yet; nothing: all have it.
  virtual std::optional<uint64_t> WhoLacks(uint64_t catalog) const = 0;
  // A node that goes by the cluster's users, but by other ones than this node does, as far as is
  // known here: "h:p". Nothing: none. Nodes without a link to the director are not waited for.
  virtual std::optional<std::string> WhoLacksUsers() const = 0;
  // For so long no leader of the set has said that it is there, as far as this director knows; 0:
  // one says so.
  virtual int64_t AwayMicros(uint64_t set) const = 0;
  // Of sets that were recovered: what the director waits for, or what is wrong.
  virtual const std::vector<std::string>& Returns() const = 0;
  // A set was admitted, drains, or was removed: all are told at once.
  virtual void OnAdmitted() = 0;
};

}  // namespace cellar
