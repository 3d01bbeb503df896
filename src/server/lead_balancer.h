// LeadBalancer: the director has sets handed over, so that machines lead equally many
// (cluster/lead_plan.h): one at a time, at most one a minute, and only of a set that has been
// complete, led by the same node and at rest for as long. To the same node again not before ten
// minutes, and then twice as many each time: one that does not take it, or loses it, or is not to
// have it, is not tried for ever.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cluster/lead_plan.h"
#include "commands/session/host.h"
#include "server/move_calls.h"
#include "server/tablet_balancer.h"

namespace cellar {

class LeadBalancer {
 public:
  // `balancer`: knows whether anything is to be evened out.
  LeadBalancer(Host& host, MoveCalls& calls, const TabletBalancer& balancer)
      : host_(host), calls_(calls), balancer_(balancer) {}

  // REQUIRES: this node directs.
  void Step();
  // This node directs no more, or is a new director.
  void Stop();
  bool busy() const { return ticket_ != 0 || now() >= next_micros_; }

 private:
  static constexpr int64_t kRoundMicros{1'000'000};
  static constexpr int64_t kLeadsEveryMicros{60'000'000};
  static constexpr int64_t kLeadsEveryMicrosMax{86'400'000'000};  // so that rests can be counted
  static constexpr int64_t kRestEveries{10};                      // rests, in those
  static constexpr int64_t kRestEveriesMax{1'440};                // a day

  // How a set is, and since when.
  struct Seen {
    uint64_t leader{0};
    int64_t since_micros{0};
  };
  struct Tried {
    int64_t at_micros{0};
    int64_t rest_micros{0};
  };
  int64_t now() const { return host_.clock().MonotonicMicros(); }
  int64_t Every() const;
  void Look();
  void Ask();
  void TakeAnswer();
  void TellIfDone();

  Host& host_;
  MoveCalls& calls_;
  const TabletBalancer& balancer_;
  int64_t next_micros_{0};
  int64_t asked_micros_{0};  // when one was handed over, or this node began to direct
  std::map<uint64_t, Seen> seen_;
  std::map<Handover, Tried> tried_;
  uint64_t ticket_{0};  // 0: nothing is asked
  LeadStep step_;       // that was asked for, or is under way
  bool under_way_{false};
  std::string what_;
};

}  // namespace cellar
