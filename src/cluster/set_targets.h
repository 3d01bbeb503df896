// SetTargets: which member of another set is called: who is said to lead it; and where that one
// cannot be reached, or says that it does not lead, the others in turn.
//
// A member is given up for kPauseMicros before the next one is called, so that a set without a
// leader is not asked all the time. No sockets.
#pragma once

#include <cstdint>
#include <map>

#include "cluster/set_directory.h"

namespace cellar {

class SetTargets {
 public:
  static constexpr int64_t kPauseMicros{20'000};

  // The member to call; null: none at the moment. `now_micros` of a clock that only goes forward.
  const ClusterMember* Pick(const ClusterSet& set, int64_t now_micros);
  // That node could not be reached, or does not lead. Nothing happens if it is not called (any
  // more).
  void Failed(uint64_t node, int64_t now_micros);

 private:
  struct Target {
    uint64_t node{0};         // 0: none yet
    uint64_t told_leader{0};  // what the directory said when it was taken
    int64_t resume_micros{0};
    bool failed{false};
  };
  std::map<uint64_t, Target> targets_;  // by set
};

}  // namespace cellar
