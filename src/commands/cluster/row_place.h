// RowPlace: which set has a row. This rule stands here alone; what a whole command concerns is
// command_route.h.
//
//   the own tablets (the truth) have it -> this set; else the map -> the set that it names
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/map_cache.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"

namespace cellar {

class Store;
class Table;

// What rows are looked for by. Borrowed.
struct RowSources {
  const MapCache* map;  // null: by the truth alone
  uint64_t own_set;
  bool leads;  // this node its set: its truth is the set's
};

struct KeyOwner {
  enum class Kind : uint8_t {
    kSet,
    kLost,     // with that set
    kUnknown,  // the map does not say, perhaps yet
  };
  Kind kind{Kind::kUnknown};
  uint64_t set{0};
  const MapEntry* entry{nullptr};  // of the map; null: the own tablets have it
};

// REQUIRES: the table has tablets.
KeyOwner OwnerOfKey(const Table& table, std::string_view key, const RowSources& sources);

// The place of the row that a command names, found without a word about what is in the way.
class RowPlace {
 public:
  // False: there is more to be said (FindRoute). It dies with the next change of the store.
  // REQUIRES: the command is of CommandReach::kRow, and takes so many words.
  bool Find(Store& store, std::string_view keyspace, const CommandEntry& command, Arguments args,
            const RowSources& sources);
  const Table& table() const { return *table_; }
  uint64_t set() const { return set_; }

 private:
  const Table* table_{nullptr};
  uint64_t set_{0};
  std::string key_;  // keeps its memory
};

}  // namespace cellar
