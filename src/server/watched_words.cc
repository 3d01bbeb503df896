// See watched_words.h.
#include "server/watched_words.h"

#include <algorithm>

#include "commands/cluster/command_route.h"

namespace cellar {

void WatchedWords::Add(uint64_t set, std::string_view keyspace, const CommandEntry& command,
                       Arguments words) {
  watched_.push_back(
      {set, std::string(keyspace), &command, std::vector<std::string>(words.begin(), words.end())});
}

// One without a table, or with a bad key, was refused where it went to.
bool WatchedWords::HasMoved(Host& host) const {
  return std::any_of(watched_.begin(), watched_.end(), [&host](const Watched& watched) {
    const std::vector<std::string_view> words(watched.words.begin(), watched.words.end());
    const CommandRoute route = RouteIn(host, watched.keyspace, *watched.command, words);
    if (route.Is(CommandRoute::Kind::kHere)) return false;
    return !route.Is(CommandRoute::Kind::kSet) || route.set != watched.set;
  });
}

size_t WatchedWords::memory_bytes() const {
  size_t bytes = 0;
  for (const Watched& watched : watched_) {
    bytes += sizeof(watched) + watched.keyspace.size();
    for (const std::string& word : watched.words) bytes += sizeof(std::string) + word.size();
  }
  return bytes;
}

}  // namespace cellar
