// Settlement: what a set that has come back by itself is to have, since it may be older than what
// others know (SCALE-DESIGN 6.9). It may believe that it owns what it has given away since, that a
// tablet is on its way which arrived long ago, and it knows nothing of what it got since.
//
// The director brings that about, as long as the set serves nothing:
//
//   1  jobs that were to take something away from it, and those that adopt rows, are ended with
//      who was to have it (JobsToEnd): nothing comes to be owned because of them any more
//   2  all other sets are asked what they have. No report will do: it may be older than the end of
//      a job
//   3  the set is told what it is to have (Settle), and logs that as one record; what it had and
//      is others' by now, it sets aside in files first (store/range_file.h)
//   4  its schema is brought up to date, as that of any set, as far as those with whom it has a
//      tablet between them have come; and 1 to 3 are done again
//   5  once nothing is left to be changed it is opened; what nobody has then is lost with it
//      (LostWith, lost_rows.h)
//
// A live set has what it says that it has. Of what sets that are closed, too, believe, and of what
// the map says, the greater epoch counts. The set keeps what it has had before, lost and got back
// since: older rows, as all that it has.
//
// Pure functions of data: tests/cluster/return_simulation.h runs them in a simulation.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/map_cache.h"
#include "cluster/move_jobs.h"
#include "engine/state/cluster_state.h"

namespace cellar {

// What the leader of a set says of its state.
struct ReportedState {
  ClusterState state;
  TabletsByTable tablets;  // owned, or given to who may not own them yet
};

// Jobs that must have ended before anything is decided. O(jobs)
std::vector<uint64_t> JobsToEnd(uint64_t number, const std::map<uint64_t, MoveJob>& jobs);
// Whether nothing comes of such a job any more, given the sets that serve nothing.
bool IsOver(const MoveJob& job, const std::set<uint64_t>& closed);

struct ReturnedSet {
  uint64_t number{0};
  const ReportedState& report;
  // All other sets of the cluster, by number; those that are `closed` as they have reported.
  const std::map<uint64_t, const ReportedState*>& others;
  const std::set<uint64_t>& closed;  // the own number among them
  const MapCache& map;
  // Ids of those that set 0 has. Where rows of snapshots are does not change; and what only the set
  // has was dropped since, of which it will hear.
  const std::set<uint64_t>& tables;
  const std::map<uint64_t, MoveJob>& jobs;
  uint64_t floor{0};  // all jobs up to it have ended
};

struct Settlement {
  struct Aside {
    uint64_t table_id{0};
    Tablet range{};
    friend bool operator==(const Aside&, const Aside&) = default;
  };
  ClusterState state{};
  // Owned, without what is given away; of tables about which something is decided.
  TabletsByTable tablets{};
  std::vector<Aside> aside{};  // rows that it has, and that are not its own any more
  bool changes{false};         // false: it is all as it is
  bool fits{true};             // false: what the set says contradicts itself
  // It is not to have a later change of the schema before it is open: who has a tablet on its way
  // to it can take none either.
  uint64_t catalog_max{UINT64_MAX};
};

// O(tablets log tablets)
Settlement Settle(const ReturnedSet& returned);
// Whether it gives the set nothing that it has not already: what it is told is looked at, for it
// may be told by who is no director, or wrong.
bool IsWithin(const Settlement& settlement, const ReportedState& report);

// Of tables of these ids what nobody has, nor is said to be lost already. REQUIRES: there is
// nothing left to be settled.
TabletsByTable UnownedRows(const ReturnedSet& returned, const std::set<uint64_t>& table_ids);

// What a set is told: of which state, which must be its state then, what it is to have.
struct SettlementOrder {
  uint64_t of{0};  // HashOf the state that it was made for
  Settlement settlement{};
};
uint64_t HashOf(const ReportedState& report);
void EncodeSettlement(const SettlementOrder& order, std::string* to);
// False: these are not the bytes of one.
[[nodiscard]] bool DecodeSettlement(std::string_view from, SettlementOrder* order);

}  // namespace cellar
