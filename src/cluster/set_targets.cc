// See set_targets.h.
#include "cluster/set_targets.h"

#include <cstddef>

namespace cellar {
namespace {

bool HoldsData(const ClusterMember& member) { return member.kind != "witness"; }

// The one behind `node`, round and round; the first one if it is no member. Null: there is none.
const ClusterMember* MemberBehind(const ClusterSet& set, uint64_t node) {
  size_t at = 0;
  for (size_t i = 0; i < set.members.size(); ++i)
    if (set.members[i].node == node) at = i + 1;
  for (size_t i = 0; i < set.members.size(); ++i) {
    const ClusterMember& member = set.members[(at + i) % set.members.size()];
    if (HoldsData(member)) return &member;
  }
  return nullptr;
}

}  // namespace

const ClusterMember* SetTargets::Pick(const ClusterSet& set, int64_t now_micros) {
  Target& target = targets_[set.number];
  const ClusterMember* picked = set.Find(target.node);
  const ClusterMember* const leader = set.leader == 0 ? nullptr : set.Find(set.leader);
  if (leader != nullptr && set.leader != target.told_leader) {
    picked = leader;
  } else if (target.failed && now_micros < target.resume_micros) {
    return nullptr;
  } else if (target.failed || picked == nullptr) {
    picked = MemberBehind(set, target.node);
    if (!target.failed && leader != nullptr) picked = leader;
  } else {
    return picked;
  }
  target = {.node = picked == nullptr ? 0 : picked->node, .told_leader = set.leader};
  return picked;
}

void SetTargets::Failed(uint64_t node, int64_t now_micros) {
  for (auto& [set, target] : targets_) {
    if (target.node != node || target.failed) continue;
    target.failed = true;
    target.resume_micros = now_micros + kPauseMicros;
  }
}

}  // namespace cellar
