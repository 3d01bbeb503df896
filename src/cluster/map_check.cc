// See map_check.h.
#include "cluster/map_check.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "cluster/lost_rows.h"

namespace cellar {
namespace {

struct Owned {
  const Tablet* tablet;
  uint64_t set;
};

bool EndsBefore(std::string_view end, std::string_view begin) {
  return !end.empty() && end <= begin;
}

// The smaller of two ends.
const std::string& SmallerEnd(const std::string& a, const std::string& b) {
  if (a.empty()) return b;
  return b.empty() || a < b ? a : b;
}

// All tablets of a table, ascending by their begin; of equal ones the greater epoch comes first.
std::vector<Owned> AllOf(const TableClaims& claims) {
  std::vector<Owned> all;
  for (const SetClaim& claim : claims.sets)
    for (const Tablet& tablet : claim.tablets->list()) all.push_back({&tablet, claim.set});
  std::stable_sort(all.begin(), all.end(), [](const Owned& a, const Owned& b) {
    if (a.tablet->begin != b.tablet->begin) return a.tablet->begin < b.tablet->begin;
    return a.tablet->epoch > b.tablet->epoch;
  });
  return all;
}

// What the map shall say: of tablets that overlap the one with the greatest epoch.
std::vector<Owned> WantedOf(const TableClaims& claims) {
  std::vector<Owned> wanted;
  for (const Owned& owned : AllOf(claims)) {
    bool beaten = false;
    while (!wanted.empty() && !EndsBefore(wanted.back().tablet->end, owned.tablet->begin)) {
      beaten = wanted.back().tablet->epoch >= owned.tablet->epoch;
      if (beaten) break;
      wanted.pop_back();
    }
    if (!beaten) wanted.push_back(owned);
  }
  return wanted;
}

bool Says(const MapEntry& entry, const Owned& owned) {
  return entry.end == owned.tablet->end && entry.epoch == owned.tablet->epoch &&
         entry.set == owned.set;
}

class Planner {
 public:
  explicit Planner(const MapCache& map) {
    change_.version = map.version() + 1;
    change_.floor = map.floor();
    change_.number_next = map.number_next();
  }

  // An entry keeps its number, and its row with it, as long as one begins there. `before` null: the
  // map has none of the table.
  void Plan(uint64_t id, const MapTable* before, const TableClaims& claims, bool anew) {
    MapTable after{.name = claims.name, .tablets = {}};
    const bool renamed = anew || before == nullptr || before->name != claims.name;
    const size_t puts = change_.puts;
    const size_t removals = change_.removals.size();
    const std::vector<MapEntry> none;
    const std::vector<MapEntry>& old = before == nullptr ? none : before->tablets;
    auto at = old.begin();
    const auto remove_until = [&](const std::string* begin) {
      for (; at != old.end() && (begin == nullptr || at->begin < *begin); ++at)
        change_.removals.emplace_back(id, at->number);
    };
    for (const Owned& owned : WantedOf(claims)) {
      remove_until(&owned.tablet->begin);
      const bool stands = at != old.end() && at->begin == owned.tablet->begin;
      const bool same = stands && !renamed && Says(*at, owned);
      MapEntry& entry = after.tablets.emplace_back();
      entry = {.begin = owned.tablet->begin,
               .end = owned.tablet->end,
               .set = owned.set,
               .epoch = owned.tablet->epoch,
               .number = stands ? at->number : change_.number_next++,
               .version = same ? at->version : change_.version};
      if (!same) ++change_.puts;
      if (stands) ++at;
    }
    remove_until(nullptr);
    // Where it ends is told by the one that stands in its place; a hole by nothing.
    if (removals < change_.removals.size() && !IsCovered(after, old)) Raise();
    if (puts < change_.puts || removals < change_.removals.size())
      change_.tables.emplace(id, std::move(after));
  }

  void Drop(uint64_t id, const MapTable& before) {
    for (const MapEntry& entry : before.tablets) change_.removals.emplace_back(id, entry.number);
    change_.gone.push_back(id);
    Raise();
  }

  MapChange Take() { return std::move(change_); }

 private:
  void Raise() { change_.floor = change_.version; }

  // Whether every row that the map knew of is known still.
  static bool IsCovered(const MapTable& after, const std::vector<MapEntry>& before) {
    auto at = after.tablets.begin();
    for (const MapEntry& entry : before) {
      std::string_view begin = entry.begin;
      for (;; ++at) {
        while (at != after.tablets.end() && EndsBefore(at->end, begin)) ++at;
        if (at == after.tablets.end() || at->begin > begin) return false;
        if (at->end.empty() || (!entry.end.empty() && at->end >= entry.end)) break;
        begin = at->end;
      }
    }
    return true;
  }

  MapChange change_;
};

void FindHoles(uint64_t id, const std::vector<Owned>& all, std::vector<MapFault>* faults) {
  using Kind = MapFault::Kind;
  const Owned* last = nullptr;  // the one that reaches furthest
  const std::string front;
  for (const Owned& owned : all) {
    const std::string& reached = last == nullptr ? front : last->tablet->end;
    const bool at_end = last != nullptr && reached.empty();
    if (!at_end && reached < owned.tablet->begin) {
      faults->push_back(
          {.kind = Kind::kHole, .table_id = id, .begin = reached, .end = owned.tablet->begin});
    } else if (last != nullptr && (at_end || reached > owned.tablet->begin)) {
      faults->push_back({.kind = Kind::kOverlap,
                         .table_id = id,
                         .begin = owned.tablet->begin,
                         .end = SmallerEnd(owned.tablet->end, reached),
                         .owner = {last->set, last->tablet->epoch, last->tablet->end},
                         .other = {owned.set, owned.tablet->epoch, owned.tablet->end}});
    }
    const bool further =
        last == nullptr || (!at_end && (owned.tablet->end.empty() || owned.tablet->end > reached));
    if (further) last = &owned;
  }
  if (last == nullptr || !last->tablet->end.empty()) {
    faults->push_back({.kind = Kind::kHole,
                       .table_id = id,
                       .begin = last == nullptr ? front : last->tablet->end,
                       .end = {}});
  }
}

MapFault::Said SaidBy(const MapEntry& entry) { return {entry.set, entry.epoch, entry.end}; }
MapFault::Said SaidBy(const Owned& owned) {
  return {owned.set, owned.tablet->epoch, owned.tablet->end};
}

void FindDifferences(uint64_t id, const std::vector<MapEntry>& map,
                     const std::vector<Owned>& wanted, std::vector<MapFault>* faults) {
  using Kind = MapFault::Kind;
  auto at = map.begin();
  const auto left = [&](const MapEntry& entry) {
    faults->push_back({.kind = Kind::kLeft,
                       .table_id = id,
                       .begin = entry.begin,
                       .end = entry.end,
                       .other = SaidBy(entry)});
  };
  for (const Owned& owned : wanted) {
    for (; at != map.end() && at->begin < owned.tablet->begin; ++at) left(*at);
    const bool stands = at != map.end() && at->begin == owned.tablet->begin;
    if (!stands || !Says(*at, owned)) {
      faults->push_back({.kind = stands ? Kind::kDiffers : Kind::kMissing,
                         .table_id = id,
                         .begin = owned.tablet->begin,
                         .end = owned.tablet->end,
                         .owner = SaidBy(owned),
                         .other = stands ? SaidBy(*at) : MapFault::Said{}});
    }
    if (stands) ++at;
  }
  for (; at != map.end(); ++at) left(*at);
}

}  // namespace

MapChange PlanMap(const MapCache& map, const Claims& claims, const std::set<uint64_t>& table_ids) {
  Planner planner(map);
  for (const uint64_t id : table_ids) {
    const auto claimed = claims.find(id);
    const MapTable* const before = map.Find(id);
    if (claimed != claims.end())
      planner.Plan(id, before, claimed->second, false);
    else if (before != nullptr)
      planner.Drop(id, *before);
  }
  return planner.Take();
}

MapChange PlanAnew(const MapCache& map, const Claims& claims) {
  Planner planner(map);
  for (const auto& [id, claimed] : claims) planner.Plan(id, map.Find(id), claimed, true);
  for (const auto& [id, table] : map.tables())
    if (!claims.contains(id)) planner.Drop(id, table);
  return planner.Take();
}

std::vector<MapFault> FindFaults(const MapCache& map, const Claims& claims) {
  std::vector<MapFault> faults;
  for (const auto& [id, claimed] : claims) {
    const std::vector<Owned> all = AllOf(claimed);
    FindHoles(id, all, &faults);
    for (const Owned& owned : all) {
      if (!IsLost(owned.set)) continue;
      faults.push_back({.kind = MapFault::Kind::kLost,
                        .table_id = id,
                        .begin = owned.tablet->begin,
                        .end = owned.tablet->end,
                        .owner = SaidBy(owned)});
    }
    const MapTable* const table = map.Find(id);
    if (table != nullptr && table->name != claimed.name)
      faults.push_back({.kind = MapFault::Kind::kName, .table_id = id, .begin = {}, .end = {}});
    FindDifferences(id, table == nullptr ? std::vector<MapEntry>() : table->tablets,
                    WantedOf(claimed), &faults);
  }
  for (const auto& [id, table] : map.tables())
    if (!claims.contains(id)) FindDifferences(id, table.tablets, {}, &faults);
  return faults;
}

}  // namespace cellar
