// SetReturns: a node's part in the return of sets that were recovered (cluster/returning_sets.h).
//
//   leader of a set that has come back   serves nothing; reports what it has, as always; says that
//                                        it is in order once the director's directory names it
//   director                             decides by the reports, and writes what it has decided
//
// A set whose data was recovered elsewhere while it was away, and which comes back itself, is told
// so when it reports, and closes.
//
// While it waits, ClusterView::closed says why, and commands are refused with that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar/lsn.h"
#include "cluster/returning_sets.h"
#include "commands/session/host.h"

namespace cellar {

class SetReturns {
 public:
  // `host` outlives it.
  explicit SetReturns(Host& host) : host_(host) {}

  // What the leader of a replica set says; it leads no more, or is not here.
  void TakeReport(uint64_t set_id, ReportedState report) { sets_.Put(set_id, std::move(report)); }
  void Lost(uint64_t set_id) { sets_.Lost(set_id); }
  void Clear() { sets_.Clear(); }
  // The director says that another replica set is what this one was: it serves nothing more until
  // the director's directory names it.
  void NoteReplaced();

  // Whether this node may serve, as its state is now. Nothing is looked at while that is the same.
  void Note();
  // Of the leader of a set, now and then. True: sets were opened, by a record.
  bool OnTick(bool directs);
  // What the director waits for, or what is wrong, as texts.
  const std::vector<std::string>& news() const { return news_; }

 private:
  bool Direct();
  bool SayOpen();
  std::string ClosedText() const;

  Host& host_;
  ReturningSets sets_;
  std::vector<std::string> news_;
  uint64_t lineage_{0};
  Lsn schema_seen_{};
  uint64_t set_id_{0};
  bool is_open_{true};
  bool is_replaced_{false};  // for all that is known since the start
};

}  // namespace cellar
