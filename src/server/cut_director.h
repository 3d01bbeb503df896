// CutDirector: this node's part in moments over all sets, as the director: begins them, has them
// judged by what the sets say (cluster/catalog_agreement.h), logs what they are, and makes restore
// points by itself (cluster-cut-interval).
//
// A cut has a time that is later than those of all records before it in all sets. Sets whose clocks
// are ahead say so when they have been asked for what is past there; the next cut is later.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "cluster/cut_desk.h"
#include "cluster/map_tables.h"
#include "commands/cluster/cut_run.h"
#include "commands/session/host.h"

namespace cellar {

class CatalogDirector;

class CutDirector final : public CutDesk {
 public:
  // What it needs of the links to other sets.
  class Links {
   public:
    virtual ~Links() = default;
    // Why there is no moment over all sets now: one is away, or does not know cuts.
    virtual Status CheckSets() const = 0;
    // Change `number`, which is a cut, has been logged by the last record; `fits`: here.
    virtual void OnCutLogged(const CutMark& mark, uint64_t number, bool fits) = 0;
  };

  // All outlive it.
  CutDirector(Host& host, CatalogDirector& director, Links& links)
      : host_(host), director_(director), links_(links) {}

  // This node is the director from now on, or anew: of cuts that are open nobody knows more.
  void BeginTerm();
  void OnTick();
  // What set `set` has said: its wall clock, and the time of its last record.
  void NoteClock(uint64_t set, int64_t clock_micros, int64_t commit_micros);
  void NoteHold(int64_t micros);

  // --- CutDesk
  Result<uint64_t> Begin(const Order& order) override;
  State StateOf(uint64_t number) override;
  const CutFigures& figures() const override { return figures_; }

 private:
  Status CheckMoves() const;
  int64_t Now() const;
  int64_t TimeOf(int attempt) const;
  void Decide();
  Status Write(const MapTables::CutRow& row);
  void StepInterval();
  void DropStaleCursors();
  int64_t now() const { return host_.clock().MonotonicMicros(); }

  Host& host_;
  CatalogDirector& director_;
  Links& links_;
  std::optional<MapTables::CutRow> open_{};
  std::map<uint64_t, State> decided_{};  // the last ones that this node has begun
  bool looks_{false};                    // older ones may be open
  struct SetClock {
    int64_t ahead_micros{0};   // of the own wall clock
    int64_t commit_micros{0};  // of its last record
  };
  std::map<uint64_t, SetClock> clocks_{};  // by set, as it has said last
  CutFigures figures_;
  // Of restore points that come by themselves.
  int64_t interval_micros_{0};  // the next one is due then; 0: not known
  std::optional<CutRun> interval_run_{};
  int64_t begun_micros_{0};  // the last cut
  int64_t rests_until_micros_{0};
};

}  // namespace cellar
