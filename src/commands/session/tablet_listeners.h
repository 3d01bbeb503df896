// TabletListeners: clients who are told when tablets change that they have asked for (CLIENT
// TABLETS ON), so that what they keep of the map stays right.
//
//   > tablet table start end set leader       a push of RESP3, for each tablet that has changed
//
// What is told is this node's copy of the map, as TABLET LIST tells it. A client that leaves is
// forgotten when there is something to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "cluster/map_cache.h"

namespace cellar {

class Host;
struct Session;

class TabletListeners {
 public:
  bool empty() const { return listeners_.empty(); }
  void Begin(const Session& session);
  void End(const Session& session);
  // It has been told of tablets of that table, by that name, from this version of the map. Nothing
  // happens if it does not listen.
  void Note(const Session& session, uint64_t table_id, std::string name, uint64_t version);
  // At the end of a turn: what is new in the map is told. O(1) unless the map has changed.
  void Tell(Host& host, const MapCache& map);

 private:
  // Beyond so many tables a client is told of none that it asks for later.
  static constexpr size_t kTablesMax{10'000};
  struct Heard {
    std::string name;
    uint64_t version;
  };
  using Tables = std::map<uint64_t, Heard>;  // by id
  static void TellOne(Host& host, Session& session, uint64_t table_id, const MapTable& mapped,
                      Heard* heard);

  std::map<uint64_t, Tables> listeners_;  // by id of the session
  uint64_t version_{0};                   // of the map, when it was told last
};

}  // namespace cellar
