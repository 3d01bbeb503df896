// LeadBalancer: the director has sets handed over, so that machines lead equally many
// (cluster/lead_plan.h): one at a time, at most one a minute, and only of a set that has been
// complete, led by the same node and at rest for as long.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cluster/set_directory.h"
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

  // How a set is, and since when.
  struct Seen {
    uint64_t leader{0};
    int64_t since_micros{0};
  };
  int64_t now() const { return host_.clock().MonotonicMicros(); }
  int64_t Every() const;
  void Look();
  void Ask();
  void TakeAnswer();

  Host& host_;
  MoveCalls& calls_;
  const TabletBalancer& balancer_;
  int64_t next_micros_{0};
  int64_t asked_micros_{0};  // when one was handed over, or this node began to direct
  std::map<uint64_t, Seen> seen_;
  uint64_t ticket_{0};  // 0: nothing is asked
  uint64_t set_{0};     // of it
  std::string what_;
  std::string why_;
};

}  // namespace cellar
