// MapCache: the map of a cluster as a node has it in memory: which set owns which rows of which
// table.
//
//   table id -> name, tablets ascending: [begin, end) set epoch | number version
//
// The truth about ownership is in the logs of the sets (engine/table/tablets.h); the map is an
// index of it, so that a node knows whom to ask. It may be older than the truth, and then costs a
// hop more, nothing else. Each change of it makes its version one larger; an entry keeps the
// version at which it became what it is, so that who has an older map can be told what is new.
//
// Pure data: neither store nor sockets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellar {

// Beyond the numbers of sets (kClusterSetsMax). It stands in the map's table and in what the
// director tells of it, where who knows nothing of it finds a set that nobody knows.
inline constexpr uint64_t kLostMark{uint64_t{1} << 32};

constexpr uint64_t LostWith(uint64_t set) { return set | kLostMark; }
constexpr bool IsLost(uint64_t set) { return set >> 32 == 1; }
// The number of the set, lost or not. Set 0 has the map: rows lost with it nobody knows of, and
// LostWith(0) says that they are nobody's, as far as the map goes.
constexpr uint64_t SetNumber(uint64_t set) { return IsLost(set) ? set & ~kLostMark : set; }

struct MapEntry {
  // Encoded row keys, as of a Tablet.
  std::string begin;
  std::string end;
  uint64_t set{0};  // or LostWith
  uint64_t epoch{1};
  uint64_t number{0};   // of its row in the map's table; never used again in its table
  uint64_t version{0};  // of the map, when it became what it is

  bool Contains(std::string_view row_key) const {
    return row_key >= begin && (end.empty() || row_key < end);
  }
  friend bool operator==(const MapEntry&, const MapEntry&) = default;
};

struct MapTable {
  std::string name;               // keyspace/table
  std::vector<MapEntry> tablets;  // ascending; they may leave holes where the map is wrong
  friend bool operator==(const MapTable&, const MapTable&) = default;
};

// What makes one version of a map the next one.
struct MapChange {
  uint64_t version{0};
  uint64_t floor{0};                    // of the map from then on (MapCache::floor)
  uint64_t number_next{1};              // likewise
  std::map<uint64_t, MapTable> tables;  // by id: what they are, whole
  std::vector<uint64_t> gone;           // tables
  std::vector<std::pair<uint64_t, uint64_t>>
      removals;    // table id and number, of `tables` and `gone`
  size_t puts{0};  // entries of that version

  bool empty() const { return puts == 0 && removals.empty(); }
};

class MapCache {
 public:
  // Of what was never changed 0.
  uint64_t version() const { return version_; }
  // Whoever has an older version than this must ask for all: entries have gone that no other one
  // stands for.
  uint64_t floor() const { return floor_; }
  // Of the next entry's row.
  uint64_t number_next() const { return number_next_; }
  const std::map<uint64_t, MapTable>& tables() const { return tables_; }
  size_t size() const;  // tablets. O(tables)
  // Whether some rows are lost. O(1)
  bool has_lost() const { return has_lost_; }

  // Null if it has none.
  const MapTable* Find(uint64_t table_id) const;
  // The tablet with that row, or that bound; null where there is none. O(log tablets).
  const MapEntry* FindTablet(uint64_t table_id, std::string_view row_key) const;

  // For loading: the numbers, then the entries in any order, then Sort.
  void Begin(uint64_t version, uint64_t floor, uint64_t number_next);
  void Add(uint64_t table_id, std::string_view name, MapEntry entry);
  void Sort();

  // REQUIRES: planned for this map.
  void Apply(MapChange&& change);

 private:
  uint64_t version_{0};
  uint64_t floor_{0};
  uint64_t number_next_{1};
  std::map<uint64_t, MapTable> tables_;
  bool has_lost_{false};
};

}  // namespace cellar
