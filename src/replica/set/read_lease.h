// ReadLease: until when a leader may answer reads without asking anybody (Ongaro's thesis, 6.4.1).
//
// Each frame of the leader carries its own monotonic time, and each follower's result echoes the
// newest such time that it has seen from it in this term. A follower that has heard from a leader
// votes for nobody for an election timeout. So once a majority has echoed `t` or later, nobody else
// is elected before t + the timeout, less what clocks differ in their pace: nine tenths are used.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "base/assert.h"
#include "replica/set/raft_core.h"
#include "replica/set/set_members.h"

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
  // Asked several times a turn: it allocates nothing.
  int64_t MajorityEcho(std::span<const RaftMember> members, uint64_t self, int64_t now) const {
    CELLAR_ASSERT(members.size() <= kSetMembersMax);
    std::array<int64_t, kSetMembersMax> times;
    size_t voters = 0;
    for (const RaftMember& member : members) {
      if (member.kind != kRaftVoter) continue;
      times[voters++] = member.id == self ? now : EchoOf(member.id);
    }
    if (voters == 0) return 0;
    std::sort(times.begin(), times.begin() + voters, std::greater<>());
    return times[voters / 2];
  }

 private:
  std::map<uint64_t, int64_t> echoes_;
};

}  // namespace cellar
