// See cluster_map.h.
#include "cluster/cluster_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "base/text/quote.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

std::string NameOf(const Table& table) { return table.keyspace() + "/" + table.name(); }

// from 'm' to 'p', in the words of the table's clients.
std::string RangeText(const Table* table, const MapFault& fault) {
  const auto bound = [table](std::string_view encoded) {
    return Quote(table == nullptr ? std::string(encoded) : TabletBoundText(*table, encoded));
  };
  return (fault.begin.empty() ? "from the front" : "from " + bound(fault.begin)) +
         (fault.end.empty() ? " to the end" : " to " + bound(fault.end));
}

std::string SaidText(const MapFault::Said& said) {
  return fmt::format("set {} with epoch {}", said.set, said.epoch);
}

std::string FaultText(const Store& store, const MapCache& map, const MapFault& fault) {
  using Kind = MapFault::Kind;
  const Table* const table = store.TableById(fault.table_id);
  const MapTable* const mapped = map.Find(fault.table_id);
  const std::string name = table != nullptr    ? NameOf(*table)
                           : mapped != nullptr ? mapped->name
                                               : std::string();
  std::string where = name + " " + RangeText(table, fault);
  switch (fault.kind) {
    case Kind::kHole:
      return "hole: " + where;
    case Kind::kOverlap:
      return "overlap: " + where + ": " + SaidText(fault.owner) + ", " + SaidText(fault.other);
    case Kind::kMissing:
      return "difference: " + where + ": owned by " + SaidText(fault.owner) +
             ", and not in the map";
    case Kind::kLeft:
      return "difference: " + where + ": the map says " + SaidText(fault.other) +
             ", and no set owns it so";
    case Kind::kDiffers:
      return "difference: " + where + ": owned by " + SaidText(fault.owner) + ", the map says " +
             SaidText(fault.other) + (fault.owner.end == fault.other.end ? "" : " to another end");
    case Kind::kName:
      return "difference: the map calls table " + name + " " +
             (mapped == nullptr ? "nothing" : mapped->name);
  }
  return where;
}

Status NoMap() {
  return Status::Error(ErrorCode::kErr, "keyspace " + Quote(kClusterKeyspace) +
                                            " is not there: CLUSTER END, then CLUSTER INIT");
}

}  // namespace

const MapCache& ClusterMap::Current(Store& store) {
  MapTables tables(store);
  if (!tables.exist()) {
    map_ = MapCache();
    table_id_ = 0;
    return map_;
  }
  const Table& table = tables.tablets();
  const bool is_new =
      table_id_ == table.id() && lineage_ == store.lineage() && lsn_ == table.last_lsn();
  if (is_new) return map_;
  if (const Status loaded = tables.Load(&map_); !loaded.ok()) {
    Log(LogSeverity::kWarning, "The cluster's map cannot be read: " + loaded.text());
    map_ = MapCache();
    table_id_ = 0;
    return map_;
  }
  table_id_ = table.id();
  lineage_ = store.lineage();
  lsn_ = table.last_lsn();
  return map_;
}

Claims ClusterMap::ClaimsOf(Store& store) {
  Claims claims;
  const Engine& engine = store.engine();
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    claims[table->id()] = {.name = NameOf(*table),
                           .sets = {{engine.cluster().set, table->shared_tablets()}}};
  }
  return claims;
}

Claims ClusterMap::ChangedClaims(Store& store) const {
  Claims claims = ClaimsOf(store);
  std::erase_if(claims, [this](const auto& claim) {
    const auto seen = seen_.find(claim.first);
    return seen != seen_.end() && seen->second.name == claim.second.name &&
           seen->second.tablets == claim.second.sets[0].tablets;
  });
  return claims;
}

MapChange ClusterMap::Plan(Store& store, const Claims& claims) {
  std::set<uint64_t> ids;
  for (const auto& [id, claimed] : claims) ids.insert(id);
  for (const auto& [id, table] : map_.tables())
    if (store.TableById(id) == nullptr) ids.insert(id);
  return PlanMap(map_, claims, ids);
}

// Another leader may have written the map, and another state another one.
void ClusterMap::BeginLook(Store& store, uint32_t term) {
  if (term != term_ || store.lineage() != seen_lineage_) seen_.clear();
  term_ = term;
  seen_lineage_ = store.lineage();
  (void)Current(store);
}

void ClusterMap::EndLook(Store& store, const Claims& claims) {
  for (const auto& [id, claimed] : claims) seen_[id] = {claimed.sets[0].tablets, claimed.name};
  std::erase_if(seen_,
                [&store](const auto& seen) { return store.TableById(seen.first) == nullptr; });
  seen_lsn_ = store.schema_lsn();
}

Status ClusterMap::AsOne(Store& store, const std::function<Status()>& write) {
  CELLAR_ASSERT(!store.in_transaction());
  store.BeginTransaction(Store::Atomicity::kAll);
  Status status = write();
  if (status.ok())
    store.CommitTransaction();
  else
    store.RollBackTransaction();
  return status;
}

void ClusterMap::Took(Store& store, MapChange change) {
  map_.Apply(std::move(change));
  const Table& table = MapTables(store).tablets();
  table_id_ = table.id();
  lineage_ = store.lineage();
  lsn_ = table.last_lsn();
}

ClusterEvent ClusterMap::EventAt(const Store& store, std::string what, std::string why) {
  return {store.now_micros() / 1000, std::move(what), std::move(why)};
}

Status ClusterMap::Begin(Store& store, uint32_t term, const Founding& founding) {
  TabletChanges changes(store);
  // Says of which one it is.
  if (store.engine().cluster().active()) return changes.Init(founding.cluster_id);
  MapTables tables(store);
  map_ = MapCache();
  Claims claims;
  MapChange change;
  const Status done = AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.Create());
    RETURN_IF_ERROR(changes.Init(founding.cluster_id));
    claims = ClaimsOf(store);
    change = PlanAnew(map_, claims);
    RETURN_IF_ERROR(tables.Write(change));
    const ClusterEvent event = EventAt(store, "set 0 begins a cluster", founding.who);
    RETURN_IF_ERROR(tables.WriteSet(0, founding.set_id, event.unix_ms));
    return tables.AddEvent(event);
  });
  RETURN_IF_ERROR(done);
  Took(store, std::move(change));
  seen_.clear();
  term_ = term;
  seen_lineage_ = store.lineage();
  EndLook(store, claims);
  return Status::Ok();
}

Status ClusterMap::End(Store& store) {
  CELLAR_ASSERT(store.engine().cluster().active());
  for (const auto& [id, claimed] : ClaimsOf(store)) {
    if (claimed.sets[0].tablets->owns_all()) continue;
    return Status::Error(ErrorCode::kErr, "this set does not own all of table " + claimed.name);
  }
  const Status done = AsOne(store, [&store]() -> Status {
    RETURN_IF_ERROR(TabletChanges(store).End());
    return MapTables(store).Drop();
  });
  RETURN_IF_ERROR(done);
  map_ = MapCache();
  table_id_ = 0;
  seen_.clear();
  return Status::Ok();
}

Status ClusterMap::Tend(Store& store, uint32_t term) {
  const bool is_tended = !seen_.empty() && term == term_ && seen_lineage_ == store.lineage() &&
                         seen_lsn_ == store.schema_lsn();
  MapTables tables(store);
  if (store.in_transaction() || !tables.exist() || is_tended) return Status::Ok();
  BeginLook(store, term);
  const Claims claims = ChangedClaims(store);
  MapChange change = Plan(store, claims);
  if (!change.empty()) {
    RETURN_IF_ERROR(AsOne(store, [&] { return tables.Write(change); }));
    Took(store, std::move(change));
  }
  EndLook(store, claims);
  return Status::Ok();
}

Status ClusterMap::Change(Store& store, uint32_t term, std::string what, std::string why,
                          const std::function<Status()>& change) {
  BeginLook(store, term);
  MapTables tables(store);
  Claims claims;
  MapChange map_change;
  const Status done = AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(change());
    if (!tables.exist()) return Status::Ok();
    claims = ChangedClaims(store);
    map_change = Plan(store, claims);
    if (!map_change.empty()) RETURN_IF_ERROR(tables.Write(map_change));
    return tables.AddEvent(EventAt(store, std::move(what), std::move(why)));
  });
  RETURN_IF_ERROR(done);
  if (!map_change.empty()) Took(store, std::move(map_change));
  if (tables.exist()) EndLook(store, claims);
  return Status::Ok();
}

Status ClusterMap::Rebuild(Store& store, uint32_t term) {
  MapTables tables(store);
  if (!tables.exist()) return NoMap();
  BeginLook(store, term);
  const Claims claims = ClaimsOf(store);
  MapChange change = PlanAnew(map_, claims);
  const Status done = AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.Clear());
    RETURN_IF_ERROR(tables.Write(change));
    return tables.AddEvent(EventAt(store, "the map is made anew", "CLUSTER MAP REBUILD"));
  });
  RETURN_IF_ERROR(done);
  Took(store, std::move(change));
  EndLook(store, claims);
  return Status::Ok();
}

Status ClusterMap::SetOption(Store& store, std::string_view name, std::string_view value) {
  MapTables tables(store);
  if (!tables.exist()) return NoMap();
  return AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.WriteOption(name, value));
    return tables.AddEvent(
        EventAt(store, fmt::format("{} is {}", name, value), "CLUSTER CONFIG SET"));
  });
}

std::vector<std::string> ClusterMap::Check(Store& store, uint32_t term) {
  MapTables tables(store);
  if (!tables.exist()) return {NoMap().text()};
  std::vector<std::string> texts;
  if (const Status tended = Tend(store, term); !tended.ok())
    texts.push_back("the map cannot be written: " + tended.text());
  (void)Current(store);
  const std::vector<MapFault> faults = FindFaults(map_, ClaimsOf(store));
  for (const MapFault& fault : faults) {
    if (texts.size() == kFaultsTold) {
      texts.push_back(fmt::format("and more: {} in all", faults.size()));
      break;
    }
    texts.push_back(FaultText(store, map_, fault));
  }
  return texts;
}

}  // namespace cellar
