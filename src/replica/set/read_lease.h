// ReadLease: until when a leader may answer reads without asking anybody (Ongaro's thesis, 6.4.1).
//
// Each frame of the leader carries its own monotonic time, and each follower's result echoes the
// newest such time that it has seen from it in this term. A follower that has heard from a leader
// votes for nobody for an election timeout. So once a majority has echoed `t` or later, nobody else
// is elected before t + the timeout, less what clocks differ in their pace: nine tenths are used.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "replica/set/raft_core.h"

namespace cellar {

class ReadLease {
 public:
  // A new term: nobody has echoed anything.
  void Restart() { echoes_.clear(); }
  void OnEcho(uint64_t node, int64_t micros) {
    int64_t& newest = echoes_[node];
    newest = std::max(newest, micros);
  }
  int64_t EchoOf(uint64_t node) const {
    const auto it = echoes_.find(node);
    return it == echoes_.end() ? 0 : it->second;
  }
  // What a majority of the voters has echoed; 0: not so many have echoed anything. `self` is the
  // leader's own id, who echoes at once.
  int64_t MajorityEcho(const std::vector<RaftMember>& members, uint64_t self, int64_t now) const {
    std::vector<int64_t> times;
    for (const RaftMember& member : members) {
      if (member.kind != kRaftVoter) continue;
      times.push_back(member.id == self ? now : EchoOf(member.id));
    }
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end(), std::greater<>());
    return times[times.size() / 2];
  }

 private:
  std::map<uint64_t, int64_t> echoes_;
};

}  // namespace cellar
