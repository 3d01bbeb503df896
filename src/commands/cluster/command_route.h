// CommandRoute: which set of a cluster a command goes to.
//
//   row     the own tablets (the truth) -> this set; else the map -> the set that it names
//   range   all tablets of the table are one set's -> that set; else several
//   feed@n  set n; a feed by its name alone, where there are several sets: several
//   schema  set 0
//   EXEC    the one set of all its commands
//
// What a command concerns its entry says (catalog/command_reach.h). A command that is going to be
// refused anyway (no such table, a bad key, wrong words) is answered as without other sets.
//
// An owner asks by its own truth alone before it carries out what another node has passed on
// (BelongsToOwnSet): a map is a guess, and may be old at either end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/map_cache.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"

namespace cellar {

class Engine;
class Host;
class Store;
class Table;
class ClusterMap;
class SetDirectory;
struct Session;
struct TransactionState;

struct CommandRoute {
  enum class Kind : uint8_t {
    kHere,     // it concerns no set more than another: answered as without a cluster
    kSet,      // `set`, perhaps the own one
    kSeveral,  // rows of several sets: `error`, unless the command is one that scatters
    kLost,     // nobody has them any more: `error`
    kUnknown,  // the map does not say, perhaps yet: `error`, once nobody waits any longer
  };
  Kind kind{Kind::kHere};
  uint64_t set{0};
  uint64_t epoch{0};    // of the tablet, as the map has it; 0: it was not asked, or of several
  std::string error{};  // a whole line
  // Of one row: its table, which dies with the next change of the store.
  const Table* table{nullptr};

  bool Is(Kind wanted) const { return kind == wanted; }
};

// What routes are found by. All borrowed.
struct RouteSources {
  Store& store;
  const MapCache* map;  // null: by the truth alone
  uint64_t own_set{0};
  bool leads{false};            // this node its set: its truth is the set's
  bool users_are_shared{true};  // by all sets
  std::string_view keyspace{};
  const TransactionState* transaction{nullptr};  // of EXEC
  const SetDirectory& sets;                      // as they are known here
  ClusterMap& cluster_map;                       // at set 0
};

// REQUIRES: the command is no container.
CommandRoute FindRoute(const RouteSources& sources, const CommandEntry& command, Arguments args);

// Of a command of that session's, which is not to be queued. REQUIRES: a cluster.
CommandRoute RouteOf(Host& host, const Session& session, const CommandEntry& command,
                     Arguments args);

// Likewise, of one that names things of that keyspace, and is no EXEC; without waiting for tablets.
CommandRoute RouteIn(Host& host, std::string_view keyspace, const CommandEntry& command,
                     Arguments args);

// Whether the command changes the schema while a tablet is between this set and another one: it
// waits for the milliseconds that takes. REQUIRES: a cluster.
bool WaitsForTablets(const Engine& engine, const CommandEntry& command);
// Likewise, or for what other sets are about to say of themselves: the line of an error, once
// nobody waits any longer; empty: it does not.
std::string_view WhySchemaWaits(Host& host, const CommandEntry& command);

// Of the commands of a transaction: SELECT puts those behind it into another keyspace.
void FollowSelect(const Store& store, const CommandEntry& command, Arguments args,
                  std::string* keyspace);

// Whether the own set has all that the command concerns. REQUIRES: a cluster.
bool BelongsToOwnSet(Host& host, std::string_view keyspace, const CommandEntry& command,
                     Arguments args);

// The map of the cluster as this node has it; it dies with the next change of the store.
const MapCache& MapOf(Host& host);

}  // namespace cellar
