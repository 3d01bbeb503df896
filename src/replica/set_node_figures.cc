// What clients and INFO are told of a replica set. See set_node.h.
#include <fmt/format.h>

#include <algorithm>

#include "cellar/version.h"
#include "replica/set_links.h"

namespace cellar {

std::string_view SetNode::state_word() const {
  if (!member_.started()) return "joining";
  if (failover_ != FailoverState::kNone) return "handing-over";
  if (open()) return "leader";
  if (set().leads()) return is_witness() ? "handing-over" : "opening";
  return set().leader() == 0 ? "electing" : "follower";
}

std::optional<NodeAddress> SetNode::KnownLeader() const {
  if (!member_.started() || set().leads()) return std::nullopt;
  const uint64_t leader = set().leader();
  if (leader == 0 || leader == owner_.identity_.node) return std::nullopt;
  return AddressOf(leader);
}

std::string SetNode::NoLeaderText() const {
  constexpr int64_t kTellMicros{5'000'000};
  if (!member_.started()) {
    for (const auto& peer : peers_) {
      if (peer->answered && peer->has == Has::kSet)
        return fmt::format("waiting for set {:016x} at {} to add this node", peer->cluster,
                           peer->text);
    }
    if (!hindrance_.empty()) return "the set is not founded yet: " + hindrance_;
    for (const auto& peer : peers_) {
      if (!peer->answered || !peer->out->stands())
        return "waiting for " + peer->text + " to found the set";
    }
    return "waiting for the set to be founded";
  }
  if (set().held())
    return "this node waits for what " + set().past().WaitsFor(set().members()) + " knows of it";
  if (set().leads()) return set().transferring() || is_witness() ? "handing over" : "opening";
  for (const auto& peer : peers_) {
    const bool same = peer->has == Has::kSet && peer->cluster == owner_.identity_.cluster;
    if (peer->out->stands() && same && peer->shuts_out)
      return "this node is no member of the set any more";
  }
  const int64_t since = leaderless_since_ == 0 ? 0 : now() - leaderless_since_;
  if (since < kTellMicros) return "electing";
  return fmt::format("no quorum since {} s", since / 1'000'000);
}

int64_t SetNode::lag_micros() const {
  if (!member_.started() || set().heard_leader_micros() == 0) return -1;
  return now() - set().heard_leader_micros();
}

UpstreamFigures SetNode::Upstream() const {
  UpstreamFigures figures;
  const auto leader = KnownLeader();
  if (leader) figures.address = *leader;
  const int64_t heard = set().heard_leader_micros();
  figures.copies = fetch_ != nullptr || installs_;
  figures.state = figures.copies ? LinkState::kSync
                  : leader       ? LinkState::kConnected
                                 : LinkState::kConnecting;
  figures.up = leader && !figures.copies && store_.applied_lsn() >= set().commit();
  figures.last_io_age_micros = heard == 0 ? -1 : now() - heard;
  figures.down_since_micros = figures.up ? 0 : leaderless_since_ == 0 ? now() : leaderless_since_;
  figures.sync_bytes = fetch_ == nullptr ? 0 : fetch_->received_bytes();
  figures.sync_bytes_total = fetch_ == nullptr ? 0 : fetch_->entry().bytes;
  figures.lag_micros = lag_micros();
  figures.commit = set().commit();
  return figures;
}

std::vector<FollowerFigures> SetNode::Followers() const {
  std::vector<FollowerFigures> all;
  if (!open()) return all;
  for (const SetMember& member : set().members().list) {
    const Peer* const peer = PeerOf(member.id);
    if (peer == nullptr || member.kind == MemberKind::kWitness) continue;
    const int64_t heard = set().heard_micros(member.id);
    const Lsn match = set().MatchOf(member.id);
    const int64_t age = heard == 0 ? 0 : now() - heard;
    all.push_back({.address = {member.host, member.port},
                   .node = member.id,
                   .priority = peer->priority,
                   .state = "online",
                   .durable = match,
                   .applied = std::min(match, set().commit()),
                   .ack_age_micros = age,
                   .lag_micros = match >= set().log().last() ? 0 : age,
                   .skew_micros = peer->skew_micros});
  }
  return all;
}

std::string SetNode::VersionOf(uint64_t node) const {
  if (node == owner_.identity_.node) return std::string(kVersion);
  for (const auto& peer : peers_)
    if (peer->answered && peer->node == node) return peer->version;
  return {};
}

uint32_t SetNode::PriorityOf(uint64_t node) const {
  if (node == owner_.identity_.node) return owner_.options_.priority;
  const Peer* const peer = PeerOf(node);
  return peer == nullptr ? kPriorityDefault : peer->priority;
}

std::vector<MemberFigures> SetNode::Members() const {
  std::vector<MemberFigures> all;
  for (const SetMember& member : set().members().list) {
    MemberFigures figures{.node = member.id, .address = {member.host, member.port}};
    figures.kind = member.kind == MemberKind::kWitness ? "witness"
                   : member.votes()                    ? "voter"
                                                       : "standby";
    figures.version = VersionOf(member.id);
    figures.priority = PriorityOf(member.id);
    const bool own = member.id == owner_.identity_.node;
    const int64_t heard = set().heard_micros(member.id);
    const bool leads = own ? open() : set().leader() == member.id;
    const bool linked = own || PeerOf(member.id) != nullptr;
    figures.lsn = own ? store_.last_lsn() : set().MatchOf(member.id);
    figures.room = own || set().has_room(member.id);
    const bool late = open() && !own && figures.lsn < set().log().last();
    figures.lag_micros = late && heard != 0 ? now() - heard : 0;
    // What it lacks is not in the log any more.
    const bool copies =
        own ? fetch_ != nullptr || installs_ : late && figures.lsn.seq + 1 < set().log().first();
    figures.state = !linked  ? "down"
                    : leads  ? "leader"
                    : copies ? "snapshot"
                    : late   ? "behind"
                             : "online";
    all.push_back(figures);
  }
  return all;
}

size_t SetNode::MembersWith(Lsn lsn) const {
  size_t count = 0;
  for (const SetMember& member : set().members().list) {
    const bool other = member.id != owner_.identity_.node;
    if (other && PeerOf(member.id) != nullptr && set().MatchOf(member.id) >= lsn) ++count;
  }
  return count;
}

int64_t SetNode::skew_micros() const {
  int64_t largest = 0;
  for (const auto& peer : peers_) {
    if (std::abs(peer->skew_micros) > std::abs(largest)) largest = peer->skew_micros;
  }
  return largest;
}

size_t SetNode::waiting_bytes() const {
  size_t bytes = store_.pending_bytes();
  for (const auto& link : in_links_) bytes += link->memory_bytes();
  if (fetch_ != nullptr) bytes += fetch_->memory_bytes();
  return bytes;
}

}  // namespace cellar
