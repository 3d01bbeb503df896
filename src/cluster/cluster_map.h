// ClusterMap: a node's part in the map of its cluster. Every node of set 0 reads the map in its own
// store; the leader of set 0, the director, keeps it.
//
//   Table::tablets() (the truth)  --- Tend: PlanMap --->  _cluster/tablets  --- Load --->  MapCache
//
// What the director changes itself (Change) and the map of it are one record, so that nobody sees
// the one without the other. What comes about in other ways, as tables do, it finds by their
// tablets: Tend costs nothing while no schema has changed, O(tables) where one has, and one look at
// everything for who has just become the director. It need not be asked at any certain time, for
// the map may always be older than the truth.
//
// No sockets and no sessions: who the leader is, its callers know.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "cluster/cluster_frames.h"
#include "cluster/map_cache.h"
#include "cluster/map_check.h"
#include "cluster/map_tables.h"
#include "cluster/returning_sets.h"
#include "engine/state/cluster_state.h"
#include "engine/table/tablets.h"
#include "store/catalog_changes.h"

namespace cellar {

class Store;

class ClusterMap final : public CatalogKeeper {
 public:
  // --- any node of set 0
  // As the store has it now; empty outside of a cluster. O(1), and O(tablets) after a change that
  // this node has not made itself. It dies with the next call.
  const MapCache& Current(Store& store);

  // --- the director, of this term
  struct Founding {
    uint64_t cluster_id{0};
    std::string set_id;
    std::string who;  // for the event
  };
  // CLUSTER INIT, as one record. The errors of TabletChanges::Init and MapTables::Create.
  // REQUIRES: no transaction.
  Status Begin(Store& store, uint32_t term, const Founding& founding);
  // CLUSTER ADMIT: the set of that id gets the next number. ERR: it has one.
  Result<uint64_t> Admit(Store& store, uint32_t term, uint64_t id, std::string what,
                         std::string why);
  // What has come back is part of the cluster again, as the verdict has it; the own set, if it is
  // among them. `cut`: all were recovered to that, so that it was good; 0: to none. `lost`: what
  // nobody has any more, with the first one. REQUIRES: no transaction, TakeClaims of each.
  Status Reopen(Store& store, const ReturnVerdict& verdict, uint64_t cut,
                const TabletsByTable& lost);
  // CLUSTER DRAIN, UNDRAIN and REMOVE. ERR: there is no such set, it is set 0, or owns something,
  // or may have entries of feeds, unless `forces`.
  Status Drain(Store& store, uint64_t set, bool drains, std::string why);
  Status Remove(Store& store, uint64_t set, bool forces, std::string why);
  // CLUSTER REMOVE FORCE of a set that is away: nothing of it comes back, and what it had is lost
  // (lost_rows.h). ERR: there is no such set, or it is set 0.
  Status GiveUp(Store& store, uint32_t term, uint64_t set, std::string why);
  // Whether there is a set of that number.
  bool Has(Store& store, uint64_t set);
  // Whether a set of that id was removed: its number.
  std::optional<uint64_t> RemovedAs(Store& store, uint64_t id);
  // CLUSTER END, likewise.
  Status End(Store& store);
  // Makes the map say what the tables say. Nothing happens inside of a transaction, or without a
  // map. MISCONF: to be tried again.
  Status Tend(Store& store, uint32_t term);
  // `change` of ownership, which logs nothing if it fails, the map of it, and the event, as one
  // record; at another set than 0 the change alone, which it reports. REQUIRES: no transaction.
  Status Change(Store& store, uint32_t term, std::string what, std::string why,
                const std::function<Status()>& change);
  // All of the map anew.
  Status Rebuild(Store& store, uint32_t term);
  Status SetOption(Store& store, std::string_view name, std::string_view value);
  // Holes, overlaps and differences, each as a text; at most kFaultsTold of them.
  static constexpr size_t kFaultsTold{1000};
  std::vector<std::string> Check(Store& store, uint32_t term);

  // Faults as texts.
  std::vector<std::string> TextsOf(Store& store, const std::vector<MapFault>& faults);

  // --- several sets
  // All that are of the cluster, ascending; outside of one none. O(1) while they do not change.
  const std::vector<MapTables::SetRow>& Sets(Store& store);
  // What another set has reported to own, to the director of this term, when it had changes of the
  // schema up to `catalog`: what those behind it give the set is its own, too. O(tablets), and of
  // the changes that it lacks.
  void TakeClaims(Store& store, uint32_t term, uint64_t set, TabletsByTable tablets,
                  uint64_t catalog = UINT64_MAX);
  // What the changes of the schema behind that one, as far as they are kept, give the set of tables
  // that there are.
  std::vector<CatalogChange::Part> PartsBehind(Store& store, uint64_t catalog, uint64_t set) const;
  // TRYAGAIN: the tablet ends where the table keeps rows together, and its set, which has all of
  // them, has split it before it heard of that: it is about to take that back.
  Status CheckMayMove(const Table& table, const Tablet& tablet) const;

  // --- CatalogKeeper
  bool has_others() const override { return sets_.size() > 1; }
  Result<std::vector<uint64_t>> Deal(size_t tablets) const override;
  bool IsWholeElsewhere(uint64_t table_id) const override;
  Status Keep(Store& store, const CatalogChange& change) override;
  bool KnowCuts() const override { return known_ >= kClusterLinkCuts; }
  bool KnowHomes() const override { return known_ >= kClusterLinkHomes; }
  uint64_t NextHome(const FeedSet& feeds) const override;
  bool KnowLost() const { return known_ >= kClusterLinkLost; }
  // Likewise how each set does its part of a change of types.
  bool KnowTypes() const { return known_ >= kClusterLinkTypes; }
  // What all other sets know, as far as is known: kClusterLinkCuts to kClusterLinkTypes; 0: less.
  void SetKnown(uint64_t known) { known_ = known; }
  // The feature level of all sets, of which the own one has that; of one that has not been heard of
  // yet the least that a set of several can have.
  uint32_t FeatureLevel(uint32_t own) const;

 private:
  std::map<uint64_t, MoveEnd> EndedUpTo(Store& store, uint64_t floor) const;
  // What the map was last made of.
  struct Seen {
    Tablets::Pointer tablets;
    std::string name;
  };

  // The table of that id, also one of a snapshot that has a name; null.
  static const Table* TableOf(Store& store, uint64_t id);
  // Of all tables, and those of snapshots that have names, as this set says; of those alone that
  // are not as they were seen.
  Claims ClaimsOf(Store& store) const;
  // What a set that has not reported owns, as the map says.
  TabletsByTable MappedTo(uint64_t set) const;
  Claims ChangedClaims(Store& store) const;
  Status CheckRemovable(Store& store, uint64_t set);
  // What the map must become since it was looked at; the tables of `claims` are those.
  MapChange Plan(Store& store, const Claims& claims);
  void BeginLook(Store& store, uint32_t term);
  void EndLook(Store& store, const Claims& claims);
  // The map is written so.
  void Took(Store& store, MapChange change);
  static ClusterEvent EventAt(const Store& store, std::string what, std::string why);

  std::vector<MapTables::SetRow> sets_;
  std::map<uint64_t, uint64_t> removed_;  // number by id
  uint64_t sets_table_id_{0};
  Lsn sets_lsn_{};
  uint64_t sets_lineage_{0};
  std::map<uint64_t, TabletsByTable> claims_;  // of other sets, of this term
  MapCache map_;
  // What map_ was loaded from; no table: from nothing.
  uint64_t lineage_{0};
  uint64_t table_id_{0};
  Lsn lsn_{};
  // By table id, of this term; empty: nothing was compared yet.
  std::map<uint64_t, Seen> seen_;
  uint64_t known_{0};
  uint32_t term_{0};
  uint64_t seen_lineage_{0};
  Lsn seen_lsn_{};  // of the schema
};

}  // namespace cellar
