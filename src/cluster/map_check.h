// What the director decides by: what the sets say that they own, taken against the map.
//
//   PlanMap     what the map must become, so that it says what the sets say
//   FindFaults  what is wrong with either: holes, overlaps, differences (CLUSTER MAP CHECK)
//
// Pure functions of data: the same claims and the same map give the same plan.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/map_cache.h"
#include "engine/table/tablets.h"

namespace cellar {

struct SetClaim {
  uint64_t set{0};
  Tablets::Pointer tablets;  // never null
};
// What all sets say of one table.
struct TableClaims {
  std::string name;  // keyspace/table
  std::vector<SetClaim> sets;
};
using Claims = std::map<uint64_t, TableClaims>;  // by table id

// Of these tables: those that are not among the claims are gone. A row that several sets claim is
// of the one with the greatest epoch. Empty, and of no version, if the map says all that already.
// O(tablets of these tables).
MapChange PlanMap(const MapCache& map, const Claims& claims, const std::set<uint64_t>& table_ids);
// Of all tables, and as if the map had said nothing of them: every entry gets the new version.
MapChange PlanAnew(const MapCache& map, const Claims& claims);

struct MapFault {
  enum class Kind : uint8_t {
    kHole,     // nobody owns it
    kOverlap,  // two sets do
    kMissing,  // owned, and the map has it not
    kLeft,     // the map has it, and nobody owns it
    kDiffers,  // the map says something else
    kName,     // the map has another name of the table
    kLost,     // of an owner that is none (lost_rows.h): `owner`
  };
  // A range as a set, or the map, says it.
  struct Said {
    uint64_t set{0};
    uint64_t epoch{0};
    std::string end;
    friend bool operator==(const Said&, const Said&) = default;
  };
  Kind kind{Kind::kHole};
  uint64_t table_id{0};
  std::string begin;
  std::string end;
  Said owner{};  // of kOverlap, kMissing, kDiffers, kLost
  Said other{};  // of kOverlap the other owner, of kLeft and kDiffers the map
  friend bool operator==(const MapFault&, const MapFault&) = default;
};

// By table and place. O(tablets)
std::vector<MapFault> FindFaults(const MapCache& map, const Claims& claims);

}  // namespace cellar
