// CutDesk: one moment over all sets, for those who need one: a snapshot, a restore point, a cursor,
// a digest, a backup (server/cut_director.h implements it; cluster/catalog_agreement.h says how a
// cut comes about and why it is one moment).
//
//   director   Begin: what `make` changes and the cut are one record, change n of the schema
//   each set   logs change n; CutListener::OnCut in the same turn, before anything is told
//   director   StateOf(n): open, then good or bad, for ever
//
// A cut is begun by a command that runs at the director; commands/cluster/cut_run.h is the loop
// around it, which waits, and tries again when a cut is bad. What was made at a bad cut is to be
// undone: other sets have it, of another moment.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/state/cut_mark.h"

namespace cellar {

struct CutFigures {
  uint64_t good{0};  // since this node's start
  uint64_t bad{0};
  int64_t hold_micros_max{0};  // replies were held for so long, here
};

class CutDesk {
 public:
  virtual ~CutDesk() = default;

  struct Order {
    CutPurpose purpose{CutPurpose::kRestorePoint};
    std::string argument{};          // each set gets it
    std::function<Status()> make{};  // by which schema changes; none: nothing changes
    int attempt{0};                  // of how many that were bad before
  };
  enum class State : uint8_t { kOpen, kGood, kBad };

  // The number of the cut, CUT:n of --until. TRYAGAIN, nothing was done: this node is not the
  // director, another cut is open, a tablet is on its way, or a set is away. ERR: not all sets know
  // cuts. The errors of `make`. REQUIRES: no transaction.
  virtual Result<uint64_t> Begin(const Order& order) = 0;
  // Of one that this node has begun. That it is good is to be told with the record at hand
  // (Host::last_lsn) behind it. Host::WakeTasks is called when there is something new.
  virtual State StateOf(uint64_t number) = 0;
  virtual const CutFigures& figures() const = 0;
};

// What a purpose does at the leader of each set, set 0 too.
class CutListener {
 public:
  virtual ~CutListener() = default;
  // The cut of that number has been logged by `record`: what was logged before it is in it.
  virtual void OnCut(const CutMark& mark, uint64_t number, Lsn record) = 0;
};
// They outlive the server's links.
using CutListeners = std::map<CutPurpose, CutListener*>;

}  // namespace cellar
