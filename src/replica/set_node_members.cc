// Who belongs to the set, and where each one is found. See set_node.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "replica/set_links.h"
#include "store/requests.h"

namespace cellar {

// --- peers

// Null: it is this node, or there are too many.
SetNode::Peer* SetNode::LearnPeer(const NodeAddress& address) {
  if (address == owner_.options_.self) return nullptr;
  for (const auto& peer : peers_) {
    if (peer->address == address) return peer.get();
  }
  if (peers_.size() >= kPeersMax) return nullptr;
  auto peer = std::make_unique<Peer>();
  peer->text = TextOf(address);
  peer->address = address;
  peer->heard_micros = now();
  peer->out = std::make_unique<OutLink>(*this, *peer);
  peers_.push_back(std::move(peer));
  return peers_.back().get();
}

// What is listed, all members, who is to be one, and who greets.
void SetNode::SyncPeers() {
  std::vector<const Peer*> needed;
  for (const SetMember& member : set().members().list) {
    if (member.id != owner_.identity_.node) needed.push_back(LearnPeer({member.host, member.port}));
  }
  if (order_.ticket != 0 && !order_.order.address.host.empty())
    needed.push_back(LearnPeer(order_.order.address));
  std::erase_if(peers_, [&](const auto& peer) {
    return !peer->listed && now() - peer->heard_micros > kLearnedMicros &&
           std::find(needed.begin(), needed.end(), peer.get()) == needed.end();
  });
}

// A node may be known by two addresses, an old and a new one, or a name and a number. It takes one
// link of each other node: a second one would end the first.
bool SetNode::IsRedundant(const Peer& peer) const {
  const uint64_t node = peer.answered ? peer.node : peer.out->node();
  if (node == 0 || peer.out->stands()) return false;
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& other) {
    return other.get() != &peer && other->out->stands() && other->out->node() == node;
  });
}

// One that has said who it is, and is reached there.
const SetNode::Peer* SetNode::AnsweringPeer(const NodeAddress& address) const {
  for (const auto& peer : peers_) {
    if (peer->address == address && peer->answered && peer->out->stands() &&
        peer->node == peer->out->node())
      return peer.get();
  }
  return nullptr;
}

// --- members

// It has been sent records of a leader that was lost before they were committed, or nothing at all.
// A node that was taken out has a committed record by which it was a member.
bool SetNode::WantsIn() const {
  if (!member_.started()) return has() == Has::kNothing;
  return set().log().MembersAt(set().commit().seq).Find(owner_.identity_.node) == nullptr;
}

bool SetNode::IsNear(uint64_t node) const {
  return PeerOf(node) != nullptr && set().MatchOf(node).seq + kNearRecords >= set().commit().seq;
}

Status SetNode::CheckLevel(uint32_t level) const {
  if (feature_level() >= level) return Status::Ok();
  for (const SetMember& member : set().members().list) {
    if (member.id == owner_.identity_.node) continue;
    const Peer* const peer = AnsweringPeer({member.host, member.port});
    const std::string text = TextOf({member.host, member.port});
    if (peer == nullptr || peer->node != member.id)
      return Status::Error(ErrorCode::kErr, fmt::format("that needs feature level {} of all "
                                                        "members, and {} cannot be asked for its",
                                                        level, text));
    if (peer->level < level)
      return Status::Error(ErrorCode::kErr,
                           fmt::format("that needs feature level {} of all members, and {} has {}",
                                       level, text, peer->level));
  }
  return Status::Ok();
}

uint32_t SetNode::LevelOf(Feature feature) {
  switch (feature) {
    case Feature::kSnapshots:
      return kSnapshotLevel;
    case Feature::kCompression:
      return kCompressionLevel;
    case Feature::kColumnTypes:
      return kColumnTypesLevel;
    case Feature::kRowEntries:
      return kRowEntriesLevel;
    case Feature::kTablets:
      return kTabletsLevel;
    case Feature::kPlacement:
      return kPlacementLevel;
    case Feature::kMoves:
      return kMovesLevel;
    case Feature::kCuts:
      return kCutsLevel;
    case Feature::kWholeGroups:
      return kWholeGroupsLevel;
  }
  return kFeatureLevel;
}

Status SetNode::WantLevel(uint32_t level) {
  if (feature_level() >= level) return Status::Ok();
  RETURN_IF_ERROR(CheckLevel(level));
  wanted_level_ = level;
  owner_.host_.WakeSoon();
  return Status::Error(
      ErrorCode::kTryAgain,
      fmt::format("the replica set comes to feature level {}, which that needs", level));
}

const SetMembers& SetNode::committed_members() const {
  return set().installing() ? set().incoming().members : set().log().MembersAt(set().commit().seq);
}

bool SetNode::knows_users() const {
  const SetMembers& members = committed_members();
  return !members.list.empty() && (set().installing() || members.users == users());
}

bool SetNode::may_have_users() const {
  if (feature_level() >= kUsersLevel) return true;
  return std::none_of(peers_.begin(), peers_.end(), [this](const auto& peer) {
    return peer->level < kUsersLevel && peer->node != 0 &&
           set().members().Find(peer->node) != nullptr;
  });
}

Status SetNode::CheckUsersLevel() const {
  Status level = CheckLevel(kUsersLevel);
  if (level.ok()) return level;
  return Status::Error(ErrorCode::kTryAgain,
                       "users come to belong to the replica set: " + level.text());
}

Result<Lsn> SetNode::ChangeUsers(std::string users) {
  if (users.size() > kSetUsersBytesMax)
    return Status::Error(
        ErrorCode::kErr,
        fmt::format("the users of a replica set may take {} bytes, and these take {}",
                    kSetUsersBytesMax, users.size()));
  // While it hands over nothing is appended; behind that somebody else leads.
  if (!may_append()) return Status::Error(ErrorCode::kTryAgain, "the leader hands over");
  if (!set().members_committed())
    return Status::Error(ErrorCode::kTryAgain, "another change of members or users is under way");
  RETURN_IF_ERROR(CheckUsersLevel());
  RETURN_IF_ERROR(WantLevel(kUsersLevel));
  SetMembers members = set().members();
  members.users = std::move(users);
  RETURN_IF_ERROR(member_.ChangeMembers(std::move(members)));
  return Lsn{set().term(), set().members().index};
}

bool SetNode::TendLevel(SetMembers* members, std::string*) {
  if (wanted_level_ <= members->feature_level || !CheckLevel(wanted_level_).ok()) return false;
  members->feature_level = wanted_level_;
  return true;
}

// What the leader does of itself, one change at a time.
void SetNode::TendMembers() {
  for (const auto tend :
       {&SetNode::TendLevel, &SetNode::TendAddress, &SetNode::TendStandby, &SetNode::TendJoining}) {
    if (!may_append() || !set().members_committed()) return;
    SetMembers members = set().members();
    std::string told;
    if (!(this->*tend)(&members, &told)) continue;
    // What is refused, for there would be no quorum, is tried again ten times a second.
    if (member_.ChangeMembers(std::move(members)).ok() && !told.empty())
      Log(LogSeverity::kNotice, told);
  }
}

// A member is found at another address than the log names.
bool SetNode::TendAddress(SetMembers* members, std::string* told) {
  const auto move = [&](SetMember* member, const NodeAddress& to) {
    const bool taken = std::any_of(
        members->list.begin(), members->list.end(),
        [&](const SetMember& other) { return other.host == to.host && other.port == to.port; });
    if (taken) return false;
    *told = fmt::format("Member {} is at {} from now on", TextOf({member->host, member->port}),
                        TextOf(to));
    member->host = to.host;
    member->port = to.port;
    return true;
  };
  for (SetMember& member : members->list) {
    if (member.id == owner_.identity_.node) {
      if (move(&member, owner_.options_.self)) return true;
      continue;
    }
    const Peer* const known = AnsweringPeer({member.host, member.port});
    if (known != nullptr && known->node == member.id) continue;
    for (const auto& peer : peers_) {
      const Peer* const there = AnsweringPeer(peer->address);
      if (there != nullptr && there->node == member.id && move(&member, there->address))
        return true;
    }
  }
  return false;
}

// A node that has caught up takes the place of the one that was at its address before, and then,
// unless it is to stand by, votes.
bool SetNode::TendStandby(SetMembers* members, std::string* told) {
  for (SetMember& standby : members->list) {
    if (standby.votes() || !IsNear(standby.id)) continue;
    const auto former =
        std::find_if(members->list.begin(), members->list.end(), [&](const SetMember& member) {
          return member.id != standby.id && member.host == standby.host &&
                 member.port == standby.port;
        });
    if (former != members->list.end()) {
      members->list.erase(former);
      return true;
    }
    if (standby.kind != MemberKind::kJoining) continue;
    *told = TextOf({standby.host, standby.port}) + " has caught up: it votes";
    const Peer* const peer = PeerOf(standby.id);
    const bool is_witness = peer != nullptr && peer->wanted == MemberKind::kWitness;
    standby.kind = is_witness ? MemberKind::kWitness : MemberKind::kVoter;
    return true;
  }
  return false;
}

// Whether there will be fewer witnesses than voters with data, once a node of that kind has caught
// up: it takes the place of the member at its address.
Status SetNode::CheckVoters(const SetMembers& members, MemberKind kind, const NodeAddress& at) {
  if (kind == MemberKind::kStandby) return Status::Ok();
  SetMembers next = members;
  std::erase_if(next.list, [&at](const SetMember& member) {
    return member.host == at.host && member.port == at.port;
  });
  next.list.push_back({.kind = kind, .host = at.host, .port = at.port});
  const SetMembers::Voters voters = next.CountVoters();
  return voters.fit() ? Status::Ok() : Status::Error(ErrorCode::kErr, UnfitVoters(voters));
}

// A node that has nothing, or that was about to be added when the leader was lost.
bool SetNode::TendJoining(SetMembers* members, std::string* told) {
  if (members->list.size() >= kSetMembersMax) return false;
  for (const auto& peer : peers_) {
    const bool in_reach =
        AnsweringPeer(peer->address) == peer.get() && members->Find(peer->node) == nullptr;
    const bool wants = peer->has == Has::kNothing || (peer->has == Has::kSet && peer->wants_in &&
                                                      peer->cluster == owner_.identity_.cluster);
    const bool is_ordered = order_.ticket != 0 && order_.order.address == peer->address;
    const bool was_removed =
        std::find(removed_.begin(), removed_.end(), peer->node) != removed_.end();
    if (!in_reach || !wants || is_ordered || was_removed) continue;
    const auto former =
        std::find_if(members->list.begin(), members->list.end(), [&](const SetMember& member) {
          return member.host == peer->address.host && member.port == peer->address.port;
        });
    const bool stands_by = former == members->list.end() ? peer->wanted == MemberKind::kStandby
                                                         : former->kind == MemberKind::kStandby;
    const MemberKind kind = peer->wanted == MemberKind::kWitness ? MemberKind::kWitness
                            : stands_by                          ? MemberKind::kStandby
                                                                 : MemberKind::kVoter;
    const uint32_t level = std::max(members->feature_level, LevelOf(kind));
    Status known = CheckLevel(level);
    if (known.ok() && peer->level < level)
      known = Status::Error(
          ErrorCode::kErr,
          fmt::format("its version knows feature level {}, the set is at {}", peer->level, level));
    if (known.ok()) known = CheckVoters(*members, kind, peer->address);
    if (!known.ok()) {
      if (!std::exchange(peer->told_level, true))
        Log(LogSeverity::kWarning, peer->text + " cannot join the set: " + known.text());
      continue;
    }
    *told = peer->text + " has nothing; it joins the set";
    members->feature_level = level;
    members->list.push_back({.id = peer->node,
                             .kind = kind == MemberKind::kStandby ? kind : MemberKind::kJoining,
                             .host = peer->address.host,
                             .port = peer->address.port});
    return true;
  }
  return false;
}

}  // namespace cellar
