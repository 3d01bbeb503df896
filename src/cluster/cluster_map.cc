// See cluster_map.h.
#include "cluster/cluster_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "base/text/quote.h"
#include "cluster/lost_rows.h"
#include "engine/state/snapshot_set.h"
#include "replica/set/set_members.h"
#include "store/move_changes.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

std::string NameOf(const Table& table) { return table.keyspace() + "/" + table.shown_name(); }

// A frozen table without tablets is of a time without a cluster: all of it is here.
Tablets::Pointer ClaimOf(const Engine& engine, const Table& table) {
  if (!table.frozen()) return ClaimedTablets(engine, table);
  return table.tablets() == nullptr ? Tablets::Whole() : table.shared_tablets();
}

std::string SaidText(const MapFault::Said& said) {
  return fmt::format("set {} with epoch {}", said.set, said.epoch);
}

std::string FaultText(Store& store, const MapCache& map, const MapFault& fault) {
  using Kind = MapFault::Kind;
  const Table* const live = store.TableById(fault.table_id);
  const Table* const table = live != nullptr ? live : store.engine().FindFrozenById(fault.table_id);
  const MapTable* const mapped = map.Find(fault.table_id);
  const std::string name = table != nullptr    ? NameOf(*table)
                           : mapped != nullptr ? mapped->name
                                               : std::string();
  std::string where = name + " " + TabletRangeText(table, fault.begin, fault.end);
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
    case Kind::kLost:
      return fmt::format("hole: {}, last owned by set {} with epoch {}", where,
                         SetNumber(fault.owner.set), fault.owner.epoch);
    case Kind::kName:
      return "difference: the map calls table " + name + " " +
             (mapped == nullptr ? "nothing" : mapped->name);
  }
  return where;
}

// Where tablets end that part what a table keeps together.
void AddParted(Store& store, const MapCache& map, std::vector<std::string>* texts) {
  for (const auto& [id, mapped] : map.tables()) {
    const Table* const table = store.TableById(id);
    if (table == nullptr) continue;
    for (const MapEntry& entry : mapped.tablets) {
      if (texts->size() > ClusterMap::kFaultsTold || MayEndThere(table->schema(), entry.begin))
        continue;
      texts->push_back(
          "parted: " + NameOf(*table) + " at " + Quote(TabletBoundText(*table, entry.begin)) +
          (table->schema().placement.whole ? ", though it is WHOLE" : ", in a group of COLOCATE"));
    }
  }
}

std::set<uint64_t> IdsOf(const Claims& claims) {
  std::set<uint64_t> ids;
  for (const auto& [id, claimed] : claims) ids.insert(id);
  return ids;
}

Status NoMap() {
  return Status::Error(ErrorCode::kErr, "keyspace " + Quote(kClusterKeyspace) +
                                            " is not there: CLUSTER END, then CLUSTER INIT");
}

// All sets have come back from this cut (0: of none): it was a whole one.
Status NoteEnded(MapTables& tables, const std::map<uint64_t, MoveEnd>& ended, int64_t now_ms) {
  if (ended.empty()) return Status::Ok();
  ASSIGN_OR_RETURN(const MapTables::JobRows rows, tables.Jobs());
  for (const auto& [number, end] : ended) {
    const auto row = rows.jobs.find(number);
    if (row == rows.jobs.end() || row->second.ended()) continue;
    MoveJob job = row->second;
    job.state = end == MoveEnd::kMoved ? MoveJob::State::kDone : MoveJob::State::kCancelled;
    job.ended_ms = now_ms;
    if (end == MoveEnd::kCancelled) job.error = "it had ended before set 0 came back without that";
    RETURN_IF_ERROR(tables.WriteJob(job));
  }
  return Status::Ok();
}

Status NoteGood(MapTables& tables, uint64_t cut) {
  if (cut == 0 || !tables.has_cuts()) return Status::Ok();
  for (MapTables::CutRow& row : tables.Cuts(UINT64_MAX)) {
    if (row.number != cut || row.state != MapTables::CutState::kOpen) continue;
    row.state = MapTables::CutState::kGood;
    RETURN_IF_ERROR(tables.WriteCut(row));
  }
  return Status::Ok();
}

}  // namespace

const MapCache& ClusterMap::Current(Store& store) {
  if (table_id_ != 0 && lineage_ == store.lineage()) {
    const Table* const known = store.TableById(table_id_);
    if (known != nullptr && known->last_lsn() == lsn_) return map_;
  }
  MapTables tables(store);
  if (!tables.exist()) {
    map_ = MapCache();
    table_id_ = 0;
    return map_;
  }
  const Table& table = tables.tablets();
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

TabletsByTable ClusterMap::MappedTo(uint64_t set) const {
  TabletsByTable tablets;
  for (const auto& [id, table] : map_.tables()) {
    std::vector<Tablet> list;
    for (const MapEntry& entry : table.tablets)
      if (entry.set == set) list.push_back({entry.begin, entry.end, entry.epoch});
    if (list.empty()) continue;
    if (Tablets::Pointer made = Tablets::Make(std::move(list)); made != nullptr)
      tablets.emplace(id, std::move(made));
  }
  return tablets;
}

Claims ClusterMap::ClaimsOf(Store& store) const {
  Claims claims;
  // A set that has not reported owns what the map says.
  std::map<uint64_t, TabletsByTable> others;
  for (const MapTables::SetRow& set : sets_) {
    if (set.number == store.engine().cluster().set) continue;
    const auto found = claims_.find(set.number);
    others.emplace(set.number, found == claims_.end() ? MappedTo(set.number) : found->second);
  }
  const Engine& engine = store.engine();
  const auto add = [&](const Table& table) {
    claims[table.id()] = {.name = NameOf(table),
                          .sets = {{engine.cluster().set, ClaimOf(engine, table)}}};
    for (const auto& [set, tablets] : others) {
      const auto found = tablets.find(table.id());
      if (found != tablets.end()) claims[table.id()].sets.push_back({set, found->second});
    }
  };
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1))
    add(*table);
  for (const NamedSnapshot* const snapshot : engine.snapshots().All()) {
    if (snapshot->name.empty()) continue;
    for (const auto& [name, table] : snapshot->tables) add(*table);
  }
  AddLost(LostOf(map_), &claims);
  return claims;
}

const Table* ClusterMap::TableOf(Store& store, uint64_t id) {
  const Table* const live = store.TableById(id);
  if (live != nullptr) return live;
  const Table* const frozen = store.engine().FindFrozenById(id);
  return frozen == nullptr || frozen->snapshot().empty() ? nullptr : frozen;
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
  std::set<uint64_t> ids = IdsOf(claims);
  for (const auto& [id, table] : map_.tables())
    if (TableOf(store, id) == nullptr) ids.insert(id);
  return PlanMap(map_, claims, ids);
}

// Another leader may have written the map, and another state another one.
void ClusterMap::BeginLook(Store& store, uint32_t term) {
  if (term != term_ || store.lineage() != seen_lineage_) {
    seen_.clear();
    claims_.clear();
  }
  (void)Sets(store);
  term_ = term;
  seen_lineage_ = store.lineage();
  (void)Current(store);
}

void ClusterMap::EndLook(Store& store, const Claims& claims) {
  for (const auto& [id, claimed] : claims) seen_[id] = {claimed.sets[0].tablets, claimed.name};
  std::erase_if(seen_,
                [&store](const auto& seen) { return TableOf(store, seen.first) == nullptr; });
  seen_lsn_ = store.schema_lsn();
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
  const Status done = MapTables::AsOne(store, [&]() -> Status {
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

Result<uint64_t> ClusterMap::Admit(Store& store, uint32_t term, uint64_t id, std::string what,
                                   std::string why) {
  MapTables tables(store);
  if (!tables.exist()) return NoMap();
  BeginLook(store, term);
  ASSIGN_OR_RETURN(const std::vector<MapTables::SetRow> sets, tables.Sets());
  uint64_t number = 0;
  for (const MapTables::SetRow& set : sets) {
    if (set.id == id && set.removed)
      return Status::Error(ErrorCode::kErr, fmt::format("it was set {}, and removed", set.number));
    if (set.id == id)
      return Status::Error(ErrorCode::kErr, fmt::format("it is set {} already", set.number));
    number = std::max(number, set.number + 1);
  }
  if (number >= kClusterSetsMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         fmt::format("a cluster has at most {} sets", kClusterSetsMax));
  }
  // What it is to be told of must be able to be told.
  RETURN_IF_ERROR(CatalogChanges::Whole(store.engine()).status());
  const auto stay =
      std::count_if(sets.begin(), sets.end(), [](const auto& set) { return !set.removed; });
  if (stay == 1) RETURN_IF_ERROR(CatalogChanges(store).MakeWhole());
  const Status done = MapTables::AsOne(store, [&]() -> Status {
    const ClusterEvent event =
        EventAt(store, fmt::format("{} is set {}", what, number), std::move(why));
    RETURN_IF_ERROR(tables.WriteSet(number, fmt::format("{:016x}", id), event.unix_ms));
    return tables.AddEvent(event);
  });
  RETURN_IF_ERROR(done);
  (void)Sets(store);
  return number;
}

// What became of them was told to this set, which has forgotten that, too: it is seen by who has
// the tablet now.
std::map<uint64_t, MoveEnd> ClusterMap::EndedUpTo(Store& store, uint64_t floor) const {
  std::map<uint64_t, MoveEnd> ended;
  const auto has_come = [&](uint64_t table_id, const Tablet& tablet) {
    return std::any_of(claims_.begin(), claims_.end(), [&](const auto& claimed) {
      const auto tablets = claimed.second.find(table_id);
      if (tablets == claimed.second.end()) return false;
      const Tablet* const there = tablets->second->Find(tablet.begin);
      return there != nullptr && there->epoch > tablet.epoch;
    });
  };
  const auto end = [&](uint64_t job, uint64_t table_id, const Tablet& tablet) {
    if (job <= floor)
      ended.emplace(job, has_come(table_id, tablet) ? MoveEnd::kMoved : MoveEnd::kCancelled);
  };
  const TabletMoves& moves = store.engine().cluster().moves;
  for (const auto& [job, move] : moves.out()) end(job, move.table_id, move.tablet);
  for (const auto& [job, move] : moves.in()) end(job, move.table_id, move.tablet);
  const Result<MapTables::JobRows> rows = MapTables(store).Jobs();
  if (!rows.ok()) return ended;
  for (const auto& [number, job] : rows->jobs)
    if (!job.ended()) end(number, job.table_id, job.tablet);
  return ended;
}

Status ClusterMap::Reopen(Store& store, const ReturnVerdict& verdict, uint64_t cut,
                          const TabletsByTable& lost) {
  MapTables tables(store);
  if (!tables.exist()) return NoMap();
  (void)Current(store);
  MapChange change;
  if (!lost.empty()) {
    Claims claims;
    for (auto& [id, claimed] : ClaimsOf(store)) {
      const auto its = lost.find(id);
      if (its == lost.end()) continue;
      claimed.sets.push_back({LostWith(verdict.open.front().number), its->second});
      claims.emplace(id, std::move(claimed));
    }
    change = PlanMap(map_, claims, IdsOf(claims));
  }
  const std::map<uint64_t, MoveEnd> ended = EndedUpTo(store, verdict.floor);
  std::string what = "back again:";
  std::string why = cut == 0 ? std::string("nobody else has what they own")
                             : fmt::format("all were recovered to cut {}", cut);
  const int64_t now_ms = store.now_micros() / 1000;
  const Status done = MapTables::AsOne(store, [&]() -> Status {
    for (const auto& [number, set_id] : verdict.open) {
      what += fmt::format(" set {} as {:016x}", number, set_id);
      RETURN_IF_ERROR(tables.WriteSet(number, fmt::format("{:016x}", set_id), now_ms));
      if (number == store.engine().cluster().set)
        RETURN_IF_ERROR(TabletChanges(store).OpenAs(set_id, ended));
    }
    RETURN_IF_ERROR(NoteEnded(tables, ended, now_ms));
    if (verdict.last_job > 0) {
      RETURN_IF_ERROR(tables.CreateJobs());
      ASSIGN_OR_RETURN(const MapTables::JobRows jobs, tables.Jobs());
      if (jobs.next <= verdict.last_job) RETURN_IF_ERROR(tables.WriteNextJob(verdict.last_job + 1));
    }
    RETURN_IF_ERROR(NoteGood(tables, cut));
    if (!change.empty()) RETURN_IF_ERROR(tables.Write(change));
    if (!lost.empty()) why = "some rows are lost with it: CLUSTER MAP CHECK";
    return tables.AddEvent({now_ms, what, std::move(why)});
  });
  RETURN_IF_ERROR(done);
  if (!change.empty()) Took(store, std::move(change));
  (void)Sets(store);
  return Status::Ok();
}

std::vector<std::string> ClusterMap::TextsOf(Store& store, const std::vector<MapFault>& faults) {
  (void)Current(store);
  std::vector<std::string> texts;
  for (const MapFault& fault : faults) {
    if (texts.size() >= kFaultsTold) break;
    texts.push_back(FaultText(store, map_, fault));
  }
  return texts;
}

const std::vector<MapTables::SetRow>& ClusterMap::Sets(Store& store) {
  if (sets_table_id_ != 0 && sets_lineage_ == store.lineage()) {
    const Table* const known = store.TableById(sets_table_id_);
    if (known != nullptr && known->last_lsn() == sets_lsn_) return sets_;
  }
  MapTables tables(store);
  if (!tables.exist()) {
    sets_.clear();
    sets_table_id_ = 0;
    return sets_;
  }
  if (store.in_transaction()) return sets_;
  Result<std::vector<MapTables::SetRow>> sets = tables.Sets();
  if (!sets.ok()) {
    Log(LogSeverity::kWarning, "The cluster's sets cannot be read: " + sets.status().text());
    return sets_;
  }
  sets_.clear();
  removed_.clear();
  for (const MapTables::SetRow& set : *sets) {
    if (set.removed)
      removed_.emplace(set.id, set.number);
    else
      sets_.push_back(set);
  }
  sets_lineage_ = store.lineage();
  sets_table_id_ = tables.sets().id();
  sets_lsn_ = tables.sets().last_lsn();
  return sets_;
}

// A set says of its level what others must know to speak with it.
uint32_t ClusterMap::FeatureLevel(uint32_t own) const {
  if (!has_others() || known_ >= kClusterLinkSettle) return own;
  return std::min(own, known_ >= kClusterLinkCuts ? kCutsLevel : kMovesLevel);
}

std::vector<CatalogChange::Part> ClusterMap::PartsBehind(Store& store, uint64_t catalog,
                                                         uint64_t set) const {
  std::vector<CatalogChange::Part> parts;
  const uint64_t last = store.engine().cluster().catalog;
  MapTables tables(store);
  if (catalog >= last || !tables.exist()) return parts;
  CatalogChange change;
  for (uint64_t number = std::max(catalog + 1, tables.FirstChange()); number <= last; ++number) {
    if (!tables.ReadChange(number, &change)) continue;
    for (CatalogChange::Part& part : change.parts)
      if (part.set == set && TableOf(store, part.table_id) != nullptr)
        parts.push_back(std::move(part));
  }
  return parts;
}

// A set that cannot take a change, as one whose disk is full, reports what it had before, again and
// again: without what it is about to own that would look as if nobody did.
void ClusterMap::TakeClaims(Store& store, uint32_t term, uint64_t set, TabletsByTable tablets,
                            uint64_t catalog) {
  // What was known in another term is forgotten now, and not with what is told here.
  BeginLook(store, term);
  for (const CatalogChange::Part& part : PartsBehind(store, catalog, set)) {
    std::string_view bytes = part.tablets;
    if (Tablets::Pointer given = Tablets::Decode(&bytes); given != nullptr)
      tablets.try_emplace(part.table_id, std::move(given));
  }
  TabletsByTable& known = claims_[set];
  const auto forget = [this](const TabletsByTable& some, const TabletsByTable& others) {
    for (const auto& [id, list] : some) {
      const auto found = others.find(id);
      if (found == others.end() || found->second->list() != list->list()) seen_.erase(id);
    }
  };
  forget(tablets, known);
  forget(known, tablets);
  known = std::move(tablets);
  seen_lsn_ = Lsn{};
}

// Each goes to the set that has the fewest then, the first ones to those of lower numbers.
Result<std::vector<uint64_t>> ClusterMap::Deal(size_t tablets) const {
  std::map<uint64_t, size_t> counts;
  for (const MapTables::SetRow& set : sets_)
    if (!set.draining || set.number == 0) counts[set.number] = 0;
  // Set 0 may be drained, too: as long as there is another one.
  if (counts.size() > 1 && sets_[0].draining) counts.erase(0);
  for (const auto& [id, table] : map_.tables()) {
    const bool moves = !table.name.starts_with(std::string(kClusterKeyspace) + "/") &&
                       table.name.find(kSnapshotSign) == std::string::npos;
    if (!moves) continue;
    for (const MapEntry& entry : table.tablets)
      if (const auto found = counts.find(entry.set); found != counts.end()) ++found->second;
  }
  std::vector<uint64_t> dealt;
  for (size_t i = 0; i < tablets; ++i) {
    const auto least =
        std::min_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (least->second >= kTabletsMax) {
      return Status::Error(
          ErrorCode::kTooLarge,
          fmt::format("there is room for {} of {} tablets: each set has at most {}", i, tablets,
                      kTabletsMax));
    }
    dealt.push_back(least->first);
    ++least->second;
  }
  return dealt;
}

uint64_t ClusterMap::NextHome(const FeedSet& feeds) const {
  std::map<uint64_t, size_t> homes;
  for (const MapTables::SetRow& set : sets_)
    if (!set.draining) homes[set.number] = 0;
  for (const Feed* const feed : feeds.All())
    if (const auto home = homes.find(feed->home.set); home != homes.end()) ++home->second;
  const auto least = std::min_element(
      homes.begin(), homes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return least == homes.end() ? 0 : least->first;
}

bool ClusterMap::IsWholeElsewhere(uint64_t table_id) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](const MapTables::SetRow& set) {
    if (set.number == 0) return false;
    const auto claims = claims_.find(set.number);
    const TabletsByTable tablets = claims == claims_.end() ? MappedTo(set.number) : claims->second;
    const auto found = tablets.find(table_id);
    return found != tablets.end() && found->second->list().size() == 1 && found->second->owns_all();
  });
}

Status ClusterMap::CheckMayMove(const Table& table, const Tablet& tablet) const {
  const TableSchema& schema = table.schema();
  const auto parts = [&](std::string_view bound) { return !MayEndThere(schema, bound); };
  const MapTable* const mapped = map_.Find(table.id());
  if (mapped == nullptr || (!parts(tablet.begin) && !parts(tablet.end))) return Status::Ok();
  const std::vector<MapEntry>& all = mapped->tablets;
  // Of what lies on several sets already, the parts are brought together by moves.
  const bool is_on_one = std::all_of(
      all.begin(), all.end(), [&](const MapEntry& entry) { return entry.set == all.front().set; });
  if (!is_on_one) return Status::Ok();
  return Status::Error(ErrorCode::kTryAgain,
                       fmt::format("set {} has not made one tablet of what table {} keeps together",
                                   all.front().set, Quote(table.name())));
}

// A set that has not been heard yet owns them from when it takes the change.
Status ClusterMap::Keep(Store& store, const CatalogChange& change) {
  RETURN_IF_ERROR(MapTables(store).WriteChange(change));
  for (const CatalogChange::Part& part : change.parts) {
    std::string_view bytes = part.tablets;
    Tablets::Pointer tablets = Tablets::Decode(&bytes);
    CELLAR_ASSERT(tablets != nullptr);
    const auto found = claims_.find(part.set);
    TabletsByTable& claims =
        found != claims_.end() ? found->second : claims_[part.set] = MappedTo(part.set);
    claims[part.table_id] = std::move(tablets);
    seen_.erase(part.table_id);
  }
  return Status::Ok();
}

Status ClusterMap::Drain(Store& store, uint64_t set, bool drains, std::string why) {
  MapTables tables(store);
  if (!tables.exist()) return NoMap();
  const auto& sets = Sets(store);
  const auto row = std::find_if(sets.begin(), sets.end(),
                                [set](const auto& each) { return each.number == set; });
  if (row == sets.end())
    return Status::Error(ErrorCode::kErr, fmt::format("set {} is not of this cluster", set));
  const auto stays = std::count_if(sets.begin(), sets.end(), [set](const auto& each) {
    return each.number != set && !each.draining;
  });
  if (drains && stays == 0)
    return Status::Error(ErrorCode::kErr, "no other set would take what it has");
  if (row->draining == drains) return Status::Ok();
  Status done = MapTables::AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.MarkSet(set, MapTables::SetMark::kDraining, drains));
    return tables.AddEvent(EventAt(
        store, fmt::format("set {} is {}", set, drains ? "draining" : "not draining any more"),
        std::move(why)));
  });
  (void)Sets(store);
  return done;
}

Status ClusterMap::CheckRemovable(Store& store, uint64_t set) {
  if (set == 0) return Status::Error(ErrorCode::kErr, "set 0 holds the map, and cannot be removed");
  if (Has(store, set)) return Status::Ok();
  return Status::Error(ErrorCode::kErr, fmt::format("set {} is not of this cluster", set));
}

bool ClusterMap::Has(Store& store, uint64_t set) {
  const auto& sets = Sets(store);
  return std::any_of(sets.begin(), sets.end(),
                     [set](const auto& each) { return each.number == set; });
}

Status ClusterMap::Remove(Store& store, uint64_t set, bool forces, std::string why) {
  MapTables tables(store);
  if (!tables.exist()) return NoMap();
  RETURN_IF_ERROR(CheckRemovable(store, set));
  (void)Current(store);
  // What it owns must be known: of a report of this director's time, with no row that nobody has.
  const auto has_hole = [](const MapFault& fault) { return fault.kind == MapFault::Kind::kHole; };
  const std::vector<MapFault> faults = FindFaults(map_, ClaimsOf(store));
  if (!claims_.contains(set) || std::any_of(faults.begin(), faults.end(), has_hole)) {
    return Status::Error(ErrorCode::kTryAgain,
                         fmt::format("it is not known what set {} owns", set));
  }
  size_t owned = 0;
  const auto claims = claims_.find(set);
  for (const auto& [id, list] : claims->second) {
    const Table* const frozen = store.engine().FindFrozenById(id);
    if (frozen == nullptr || list->list().empty()) continue;
    return Status::Error(ErrorCode::kErr,
                         fmt::format("set {} holds snapshot {}", set, frozen->snapshot()));
  }
  for (const auto& [id, list] : claims != claims_.end() ? claims->second : MappedTo(set))
    owned += list->list().size();
  for (const auto& [id, list] : MappedTo(set)) owned = std::max(owned, list->list().size());
  if (owned > 0) {
    return Status::Error(ErrorCode::kErr,
                         fmt::format("set {} owns {} tablet{}", set, owned, owned == 1 ? "" : "s"));
  }
  for (const Feed* const feed : store.engine().feeds().All()) {
    if (feed->home.set != set && feed->home.from != set) continue;
    return Status::Error(
        ErrorCode::kErr,
        fmt::format("set {} is home to the groups of feed {}: FEED MOVE {}/{} TO {}", set,
                    Quote(feed->name), feed->keyspace, feed->name,
                    feed->home.set != set ? FormatUint64(feed->home.set) : "another set"));
  }
  if (const Feed* const feed = store.engine().feeds().FindBehind(0); feed != nullptr && !forces) {
    return Status::Error(ErrorCode::kErr,
                         fmt::format("set {} may hold entries of feed {}: read {}@{} to its end, "
                                     "then CLUSTER REMOVE {} FORCE",
                                     set, Quote(feed->name), feed->name, set, set));
  }
  const Status done = MapTables::AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.MarkSet(set, MapTables::SetMark::kRemoved, true));
    return tables.AddEvent(EventAt(store, fmt::format("set {} is removed", set), std::move(why)));
  });
  RETURN_IF_ERROR(done);
  claims_.erase(set);
  (void)Sets(store);
  return Status::Ok();
}

// What the map says of it is what counts: that is of its reports, and of what it took part in.
Status ClusterMap::GiveUp(Store& store, uint32_t term, uint64_t set, std::string why) {
  MapTables tables(store);
  if (!tables.exist()) return NoMap();
  RETURN_IF_ERROR(CheckRemovable(store, set));
  BeginLook(store, term);
  Claims claims;
  size_t lost = 0;
  for (auto& [id, claimed] : ClaimsOf(store)) {
    const auto its = std::find_if(claimed.sets.begin(), claimed.sets.end(),
                                  [set](const SetClaim& each) { return each.set == set; });
    if (its == claimed.sets.end() || its->tablets->list().empty()) continue;
    lost += its->tablets->list().size();
    TableClaims given = claimed;
    given.sets[static_cast<size_t>(its - claimed.sets.begin())].set = LostWith(set);
    claims.emplace(id, std::move(given));
  }
  MapChange change = PlanMap(map_, claims, IdsOf(claims));
  const Status done = MapTables::AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.MarkSet(set, MapTables::SetMark::kRemoved, true));
    if (!change.empty()) RETURN_IF_ERROR(tables.Write(change));
    return tables.AddEvent(EventAt(store,
                                   fmt::format("set {} is removed; lost with it: {} tablet{}", set,
                                               lost, lost == 1 ? "" : "s"),
                                   std::move(why)));
  });
  RETURN_IF_ERROR(done);
  if (!change.empty()) Took(store, std::move(change));
  claims_.erase(set);
  seen_.clear();
  (void)Sets(store);
  return Status::Ok();
}

std::optional<uint64_t> ClusterMap::RemovedAs(Store& store, uint64_t id) {
  (void)Sets(store);
  const auto found = removed_.find(id);
  return found == removed_.end() ? std::nullopt : std::optional(found->second);
}

Status ClusterMap::End(Store& store) {
  CELLAR_ASSERT(store.engine().cluster().active());
  if (has_others())
    return Status::Error(ErrorCode::kErr, fmt::format("the cluster has {} sets", sets_.size()));
  for (const Feed* const feed : store.engine().feeds().All()) {
    if (store.engine().feeds().groups().Of(WholeFeedGroups(feed->id)) == nullptr) continue;
    return Status::Error(ErrorCode::kErr,
                         fmt::format("feed {} has groups with ids of several sets: XGROUP DESTROY",
                                     Quote(feed->name)));
  }
  for (const auto& [id, claimed] : ClaimsOf(store)) {
    if (claimed.sets[0].tablets->owns_all()) continue;
    return Status::Error(ErrorCode::kErr, "this set does not own all of table " + claimed.name);
  }
  const Status done = MapTables::AsOne(store, [&store]() -> Status {
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
    RETURN_IF_ERROR(MapTables::AsOne(store, [&] { return tables.Write(change); }));
    Took(store, std::move(change));
  }
  EndLook(store, claims);
  return Status::Ok();
}

Status ClusterMap::Change(Store& store, uint32_t term, std::string what, std::string why,
                          const std::function<Status()>& change) {
  MapTables tables(store);
  // Any other set tells the director, which has the map, when the change is committed.
  if (store.engine().cluster().set != 0) return MapTables::AsOne(store, change);
  BeginLook(store, term);
  Claims claims;
  MapChange map_change;
  const Status done = MapTables::AsOne(store, [&]() -> Status {
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
  const Status done = MapTables::AsOne(store, [&]() -> Status {
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
  return MapTables::AsOne(store, [&]() -> Status {
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
  std::vector<MapFault> faults = FindFaults(map_, ClaimsOf(store));
  std::erase_if(faults, [this](const MapFault& fault) {
    const MapTable* const table = map_.Find(fault.table_id);
    return table != nullptr && IsOfCursor(table->name);
  });
  for (const MapFault& fault : faults) {
    if (texts.size() == kFaultsTold) {
      texts.push_back(fmt::format("and more: {} in all", faults.size()));
      break;
    }
    texts.push_back(FaultText(store, map_, fault));
  }
  AddParted(store, map_, &texts);
  return texts;
}

}  // namespace cellar
