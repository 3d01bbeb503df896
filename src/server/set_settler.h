// SetSettler: how the director settles what sets have that have come back by themselves
// (cluster/settlement.h, where the order of it is told and why), one step at each call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "cellar/lsn.h"
#include "cluster/settlement.h"
#include "commands/session/host.h"
#include "server/move_calls.h"

namespace cellar {

class SetSettler {
 public:
  // `host` outlives it.
  explicit SetSettler(Host& host) : host_(host), calls_(host) {}
  ~SetSettler() { Clear(); }
  SetSettler(const SetSettler&) = delete;
  SetSettler& operator=(const SetSettler&) = delete;

  // What is to be done about the set next.
  struct Next {
    enum class Kind : uint8_t {
      kWait,    // `why`
      kSettle,  // it is to be told `order`
      kSchema,  // it is to have the changes of the schema up to `catalog`
      kOpen     // nobody has `lost`
    };
    Kind kind{Kind::kWait};
    std::string why{};
    std::string order{};
    uint64_t catalog{0};
    TabletsByTable lost{};
  };
  // `closed`: all that have come back, by number, the set among them. REQUIRES: this node directs;
  // no transaction.
  Next Step(uint64_t number, uint64_t set_id,
            const std::map<uint64_t, const ReportedState*>& closed);
  // They have come back no more; this node does not direct any more.
  void KeepOnly(const std::set<uint64_t>& set_ids);
  void Clear() { KeepOnly({}); }

 private:
  struct Desk {
    std::optional<Lsn> proof{};  // of a record: once it is committed this node has led since
    uint64_t of{0};              // hash of the state that was reported
    uint64_t told{0};            // ... of which it was told what it is to have,
    int64_t again_micros{0};     // and is told again then
    std::map<uint64_t, uint64_t> tickets{};
    std::map<uint64_t, ReportedState> answers{};
  };

  static constexpr int64_t kAgainMicros{1'000'000};

  Next Wait(std::string why) const { return {.why = std::move(why)}; }
  // Empty: nothing comes of jobs that could be in the way.
  std::string EndJobs(uint64_t number, const std::set<uint64_t>& closed);
  // Empty: all have answered.
  std::string Ask(uint64_t number, Desk* desk,
                  const std::map<uint64_t, const ReportedState*>& closed,
                  std::map<uint64_t, const ReportedState*>* others);
  void Forget(Desk* desk);
  void Tell(uint64_t number, const Settlement& settlement);

  Host& host_;
  MoveCalls calls_;
  std::map<uint64_t, Desk> desks_;  // by the id of the replica set
  ReportedState own_;
};

}  // namespace cellar
