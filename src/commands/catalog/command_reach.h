// CommandReach: what of a cluster's data a command concerns, and so which set it goes to
// (commands/cluster/command_route.h). It is found once, when a command's entry is made: no names
// are compared while commands run.
#pragma once

#include <cstdint>
#include <string_view>

namespace cellar {

struct Command;

enum class CommandReach : uint8_t {
  kNode,     // nothing that one set has and another one has not: answered as without others
  kRow,      // the row that it names
  kRows,     // a list of rows: CROWS
  kRange,    // rows of its table that it does not name, perhaps all of them
  kInfo,     // all rows of its table, which it describes, but for those of others with LOCAL
  kTables,   // tables as a whole: WATCH
  kBounds,   // tablets that begin or end at the rows that it names: TABLET SPLIT, TABLET MERGE
  kFeeds,    // what one set tells of the feeds that it names
  kSureRow,  // the row that it names, if its owner is asked for: TABLET ROUTE ... SURE
  kSchema,   // what set 0 decides for all sets: the schema, the map, options of the cluster
  kUsers,    // likewise, where users are of the set
  kExec,     // what its commands concern
};

// `full_name` as in CommandEntry.
CommandReach ReachOf(const Command& row, std::string_view full_name);

}  // namespace cellar
