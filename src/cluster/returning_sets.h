// ReturningSets: sets whose data has come back from an archive, a backup or a recovery, so that it
// may be older than what others know, and what the director decides about them (SCALE-DESIGN 6.9):
//
//   all sets to one cut   once all are here, recovered to the same cut, and own every row once:
//                         the cluster goes on from there
//   one set by itself     once its leader is here, and its predecessor is not, it is settled what it
//                         has (settlement.h), and it goes on
//   set 0 by itself       if the others and it own every row once, it goes on
//
// What stands in the way is told, and nothing is opened: a set that has forgotten what it gave away
// would be a second owner, and one that has forgotten what it received would be a hole that nobody
// sees.
//
// Pure data: reports go in, a verdict comes out. The same reports give the same verdict.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/map_check.h"
#include "cluster/map_tables.h"
#include "cluster/settlement.h"
#include "engine/state/cluster_state.h"

namespace cellar {

struct ReturnVerdict {
  struct Opening {
    uint64_t number{0};
    uint64_t set_id{0};  // the replica set that it is from now on
    friend bool operator==(const Opening&, const Opening&) = default;
  };
  std::vector<Opening> open{};  // ascending by number
  // Have come back by themselves, and nothing is known that speaks against them. Likewise.
  std::vector<Opening> settle{};
  // What is missing or wrong, for people; empty: there is nothing to be decided.
  std::vector<std::string> why{};
  // Where all sets together own a row twice or not at all.
  std::vector<MapFault> faults{};
  // The last job of those sets that a set knows of: no number up to it is given again.
  uint64_t last_job{0};
  // One of the other sets has forgotten what became of jobs up to this one: they have ended.
  uint64_t floor{0};
};

class ReturningSets {
 public:
  // By the id of the replica set whose leader has reported it; it has lost it.
  void Put(uint64_t set_id, ReportedState report) { reports_[set_id] = std::move(report); }
  void Lost(uint64_t set_id) { reports_.erase(set_id); }
  void Clear() { reports_.clear(); }
  const std::map<uint64_t, ReportedState>& reports() const { return reports_; }

  struct Director {
    uint64_t set_id{0};
    const ReportedState& own;
    const std::vector<MapTables::SetRow>& rows;  // of sets that were not removed
    // Names (keyspace/table) of all tables, by id.
    const std::map<uint64_t, std::string>& tables;
    // What was lost with sets before (lost_rows.h): no set needs to have it.
    const std::map<uint64_t, TabletsByTable>& lost;
    uint64_t kept_from{0};  // changes of the schema from there on can be told; 0: none are kept
  };
  // O(tablets). REQUIRES: the own state is of set 0.
  ReturnVerdict Decide(const Director& director) const;

 private:
  ReturnVerdict DecideAll(const Director& director) const;
  ReturnVerdict DecideSome(const Director& director) const;
  std::vector<uint64_t> Candidates(const Director& director, uint64_t number) const;
  std::string WhyNot(const Director& director, uint64_t set_id, const ReportedState& report) const;

  std::map<uint64_t, ReportedState> reports_;
};

// The last job that a set knows of, also of those that have ended; 0: it knows of none.
uint64_t LastJobOf(const TabletMoves& moves);

// Where sets own rows twice or not at all, by what each says: a tablet that was given away is its
// donor's until the recipient has it. What is `lost` is nobody's.
std::vector<MapFault> FindOwnershipFaults(
    const std::map<uint64_t, std::string>& tables,
    const std::map<uint64_t, const ReportedState*>& reports_by_number,
    const std::map<uint64_t, TabletsByTable>& lost);

}  // namespace cellar
