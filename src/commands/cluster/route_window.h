// RouteWindow: whether commands of one connection may be under way at several sets beside one
// another. Calls carry no number of the ownership, so two commands for one row keep their order
// only if they go the same way. They do as long as nothing has changed by which routes are found:
// the map, and what of the table this set owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/table/tablets.h"

namespace cellar {

class Table;

class RouteWindow {
 public:
  // The place of a row of that table was found, now, by a map of that version. Whether what is
  // noted since Begin was found by the same, and it is noted, too. False also where it is of no
  // table, or would be one of very many.
  bool Note(const Table* table, uint64_t map_version);
  // Nothing is under way.
  void Begin() { tables_.clear(); }

 private:
  // Each route is looked for among them.
  static constexpr size_t kTablesMax{32};
  // What of it this set owned; kept, so that no other has its address.
  struct OfTable {
    uint64_t id;
    Tablets::Pointer owned;
  };
  uint64_t map_version_{0};
  std::vector<OfTable> tables_;
};

}  // namespace cellar
