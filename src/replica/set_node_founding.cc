// How a set begins. See set_node.h.
//
// What is decided here cannot be taken back: a list of members is written, or a process ends. So a
// greeting counts once a node has said the same several times, one behind the other: one that was
// damaged with its checksum right decides nothing (replica/set/frame_sense.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "replica/set/refused.h"
#include "replica/set_links.h"
#include "store/features_in_use.h"

namespace cellar {
// Two nodes must not found a set each: all wait until every listed one has answered, and then come
// to the same founder, the one that holds data or else the one with the first address. Lists that
// differ, or data on two nodes, end the process instead.
void SetNode::FoundIfDue() {
  if (member_.started()) return;
  size_t with_data = has() == Has::kData ? 1 : 0;
  std::string founder = with_data > 0 ? TextOf(owner_.options_.self) : std::string();
  // Of those that can hold data.
  std::string first = is_witness() ? std::string() : TextOf(owner_.options_.self);
  bool all = true;
  // Who may have a set to join says so again at once: before that nothing else is judged.
  const auto may_have_set = [](const auto& peer) {
    return peer->listed && peer->answered && peer->out->stands() && peer->has == Has::kSet &&
           peer->alike < kAlikeMin;
  };
  if (std::any_of(peers_.begin(), peers_.end(), may_have_set)) return;
  for (const auto& peer : peers_) {
    if (!peer->listed) continue;
    if (!peer->answered || !peer->out->stands() || peer->node != peer->out->node() ||
        peer->alike < kAlikeMin) {
      all = false;
      continue;
    }
    if (peer->has == Has::kSet) {
      if (has() == Has::kData)
        Refuse(owner_.directory_ + " holds data of no set; empty it to join " + peer->text);
      return;  // to be added
    }
    if (peer->list != ListText()) {
      return Refuse(fmt::format("cluster-nodes differs: {} has {}, this node {}", peer->text,
                                peer->list, ListText()));
    }
    if (peer->has == Has::kData) {
      if (++with_data > 1)
        return Refuse(fmt::format("two nodes hold data, {} and {}: empty one of them", peer->text,
                                  founder.empty() ? first : founder));
      founder = peer->text;
    }
    const bool can_found = peer->wanted != MemberKind::kWitness;
    if (can_found && (first.empty() || peer->text < first)) first = peer->text;
  }
  if (!all) return NoteHindrance(SameIds());
  if (first.empty()) return Refuse("cluster-nodes lists witnesses alone: nobody would hold data");
  if (founder.empty()) founder = first;
  const bool founds = founder == TextOf(owner_.options_.self);
  std::string hindrance = SameIds();
  if (founds && hindrance.empty()) hindrance = OlderVersion();
  NoteHindrance(std::move(hindrance));
  if (!founds || !hindrance_.empty()) return;
  const Status founded = Found();
  if (founded.ok()) return;
  const std::string why = "the set cannot be founded: " + founded.text();
  // Without room nothing has changed, and it is tried again; else what is here cannot be told.
  if (founded.code() == ErrorCode::kCorruption) return Refuse(why);
  Log(LogSeverity::kWarning, why);
}

// What an operator can mend while the nodes wait: logged when it is new; empty: nothing.
void SetNode::NoteHindrance(std::string why) {
  if (why != hindrance_ && !why.empty())
    Log(LogSeverity::kWarning, "the set is not founded yet: " + why);
  hindrance_ = std::move(why);
}

// Of two nodes with one id a list of members cannot tell which is meant. Only one of them may be
// linked at a time (IsRedundant).
std::string SetNode::SameIds() const {
  for (const auto& peer : peers_) {
    if (!peer->listed || peer->alike < kAlikeMin) continue;
    const auto same = std::find_if(peers_.begin(), peers_.end(), [&peer](const auto& other) {
      return other != peer && other->listed && other->alike >= kAlikeMin &&
             other->node == peer->node;
    });
    if (same != peers_.end())
      return fmt::format(
          "{} and {} have one id, {:016x}: one has a copy of the other's "
          "cellar.replica; empty its directory",
          peer->text, (*same)->text, peer->node);
  }
  return {};
}

// Who could not read what is here.
std::string SetNode::OlderVersion() {
  if (has() != Has::kData) return {};
  if (const Status applied = member_.ApplyOwn(); !applied.ok()) {
    Refuse(applied.text());
    return applied.text();
  }
  uint32_t level = 1;
  for (const Feature feature : FeaturesInUse(store_.engine()))
    level = std::max(level, LevelOf(feature));
  for (const auto& peer : peers_) {
    if (peer->listed && peer->level < level)
      return fmt::format("what {} holds needs feature level {} of all nodes, and {} has {}",
                         owner_.directory_, level, peer->text, peer->level);
  }
  return {};
}

// The set's first record is its list of members; its feature level is that of the oldest version
// among them. The others get to know by the greeting at the end, and join.
Status SetNode::Found() {
  SetMembers members;
  CELLAR_ASSERT(!is_witness());
  members.list.push_back({.id = owner_.identity_.node,
                          .kind = MemberKind::kVoter,
                          .host = owner_.options_.self.host,
                          .port = owner_.options_.self.port});
  members.feature_level = kFeatureLevel;
  for (const auto& peer : peers_) {
    if (!peer->listed) continue;
    members.feature_level = std::min(members.feature_level, peer->level);
    members.list.push_back(
        {.id = peer->node,
         .kind = peer->wanted == MemberKind::kWitness ? MemberKind::kWitness : MemberKind::kVoter,
         .host = peer->address.host,
         .port = peer->address.port});
  }
  const SetMembers::Voters voters = members.CountVoters();
  const bool is_known = voters.witnesses == 0 || members.feature_level >= kWitnessLevel;
  if (!voters.fit() || !is_known) {
    Refuse(is_known ? UnfitVoters(voters) : "one of the nodes has a version without witnesses");
    return Refused("the process ends");
  }
  const size_t count = members.list.size();
  RETURN_IF_ERROR(member_.Found(std::move(members)));
  Log(LogSeverity::kNotice,
      fmt::format("Replica set {:016x} founded with {} nodes", owner_.identity_.cluster, count));
  if (count == 1) {
    Log(LogSeverity::kWarning,
        "cluster-nodes lists this node alone: nothing survives its loss before others have joined");
  }
  RETURN_IF_ERROR(StartMember());
  for (const auto& peer : peers_) {
    if (peer->out->stands()) SayHello(peer->out.get());
  }
  return Status::Ok();
}

}  // namespace cellar
