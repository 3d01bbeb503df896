// WatchedWords: what a client watches at which set, as it has said so (WATCH, CWATCH): so its entry
// knows when that has moved to another set since. Who owns it now has no ticket of it, and who did
// does not hear of its changes any more: EXEC is null then (SCALE 69).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands/arguments/arguments.h"

namespace cellar {

class Host;
struct CommandEntry;

class WatchedWords {
 public:
  void Add(uint64_t set, std::string_view keyspace, const CommandEntry& command, Arguments words);
  void Clear() { watched_.clear(); }
  // Some of it is not that set's, by what this node knows. O(n), with a route for each.
  bool HasMoved(Host& host) const;
  size_t memory_bytes() const;

 private:
  struct Watched {
    uint64_t set{0};
    std::string keyspace;
    const CommandEntry* command{nullptr};
    std::vector<std::string> words;
  };
  std::vector<Watched> watched_;
};

}  // namespace cellar
