// SetReturns: a node's part in the return of sets that were recovered (cluster/returning_sets.h).
//
//   leader of a set that has come back   serves nothing; reports what it has, as always; takes what
//                                        it is told to have, and sets aside what that leaves out;
//                                        says that it is in order once the director's directory
//                                        names it
//   director                             decides by the reports (server/set_settler.h), and writes
//                                        what it has decided
//
// A set whose data was recovered elsewhere while it was away, and which comes back itself, is told
// so when it reports, and closes.
//
// While it waits, ClusterView::closed says why, and commands are refused with that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "cluster/returning_sets.h"
#include "commands/session/host.h"
#include "server/range_asides.h"
#include "server/set_settler.h"

namespace cellar {

class SetReturns {
 public:
  // `host` outlives it.
  explicit SetReturns(Host& host) : host_(host), settler_(host), asides_(host) {}

  // What the leader of a replica set says; it leads no more, or is not here.
  void TakeReport(uint64_t set_id, ReportedState report) { sets_.Put(set_id, std::move(report)); }
  void Lost(uint64_t set_id) { sets_.Lost(set_id); }
  void Clear();
  // The director says that another replica set is what this one was: it serves nothing more until
  // the director's directory names it.
  void NoteReplaced();

  // Whether this node may serve, as its state is now. Nothing is looked at while that is the same.
  void Note();
  // What the director says that this set is to have (EncodeSettlement). False: it is none.
  bool TakeSettlement(std::string_view order);
  // Of the leader of a set, now and then. True: sets were opened, by a record. `say`: tells the
  // leader of a replica set such an order; false: it knows of none.
  using Say = std::function<bool(uint64_t set_id, std::string_view order)>;
  bool OnTick(bool directs, const Say& say);
  // What it does for that ends here.
  void StopSettlement();
  // Whether that one has been opened by a record that is not committed yet.
  bool AwaitsCommit(uint64_t set_id) const;
  // Of a replica set that has come back and is to have the changes of the schema: the number of its
  // set. At the director.
  std::optional<uint64_t> ToldAs(uint64_t set_id) const;
  // Up to which change a set that has come back is told.
  uint64_t ToldUpTo(uint64_t number) const;
  // What the director waits for, or what is wrong, as texts.
  const std::vector<std::string>& news() const { return news_; }

 private:
  bool Direct(const Say& say);
  bool Settle(const ReturnVerdict& verdict, const Say& say);
  bool Write(const ReturnVerdict& verdict, uint64_t cut, const TabletsByTable& lost);
  bool SayOpen();
  void StepSettlement();
  ReportedState Own() const;
  std::string ClosedText() const;

  Host& host_;
  ReturningSets sets_;
  SetSettler settler_;
  struct Told {
    uint64_t set_id{0};
    uint64_t catalog{0};
  };
  std::map<uint64_t, Told> told_;  // by number: sets that take changes of the schema
  std::set<uint64_t> opened_{};    // replica sets, by the last record, which is:
  Lsn opened_lsn_{};
  std::optional<SettlementOrder> order_{};  // that this set carries out
  RangeAsides asides_;
  std::string refusal_;  // why that cannot be logged
  std::vector<std::string> news_;
  uint64_t lineage_{0};
  Lsn schema_seen_{};
  uint64_t set_id_{0};
  bool is_open_{true};
  bool is_replaced_{false};  // for all that is known since the start
};

}  // namespace cellar
