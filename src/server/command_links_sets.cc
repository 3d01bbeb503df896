// CommandLinks: which set a command goes to, and which node of it is called.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "cluster/lost_rows.h"
#include "commands/config/config.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/services.h"
#include "replica/set_node.h"
#include "server/command_link_ends.h"
#include "server/command_links.h"
#include "server/remote_asks.h"
#include "server/tablet_mover.h"
#include "store/catalog_changes.h"

namespace cellar {
namespace {

// Who is dialled and says nothing is not waited for any longer than this.
constexpr int64_t kAnswerMicros{200'000};

bool IsHex(std::string_view word, uint64_t* number) {
  const auto read = std::from_chars(word.data(), word.data() + word.size(), *number, 16);
  return read.ec == std::errc{} && read.ptr == word.data() + word.size();
}

}  // namespace

void CommandLinks::UpdateRoutes() {
  bool routes = false;
  bool awaits = false;
  if (set() != nullptr && !host_.loading() && !set()->member().state_is_void()) {
    const ClusterState& cluster = host_.store().engine().cluster();
    awaits = !cluster.active() && !host_.services().config.cluster_join.empty() &&
             CatalogChanges::WhatIsHere(host_.store().engine()).empty();
    routes = cluster.active() &&
             (cluster.set != 0 || host_.services().cluster_map.Sets(host_.store()).size() > 1 ||
              host_.services().cluster_map.Current(host_.store()).has_lost());
    // Before anything is read: who has just begun again must not answer by itself what others may
    // have changed meanwhile.
    SetClusterReadsDefault(&host_.services().config, cluster.active());
  }
  host_.SetAwaitsCluster(awaits);
  if (routes == host_.routes()) return;
  host_.SetRoutes(routes);
  host_.dispatcher().sampler().Restart();
  OnRoleChanged();
}

// What is watched belongs to what EXEC does.
CommandRoute CommandLinks::Route(const Session& session, const CommandEntry& command,
                                 Arguments args) const {
  CommandRoute route = RouteOf(host_, session, command, args);
  const bool runs =
      command.Is(CommandRole::kExec) && session.in_multi() && !session.transaction->aborted;
  if (!runs) return route;
  std::vector<uint64_t> watched;
  if (!session.transaction->watches.empty()) watched.push_back(own_set());
  if (const PassedClient* const client = ClientOf(session); client != nullptr) {
    for (const auto& channel : client->channels())
      if (channel->watches) watched.push_back(channel->is_own() ? own_set() : channel->set());
  }
  for (const uint64_t set : watched) {
    if (route.Is(CommandRoute::Kind::kHere)) route = {CommandRoute::Kind::kSet, set, 0, {}};
    if (!route.Is(CommandRoute::Kind::kSet)) break;
    if (route.set == set) continue;
    return {CommandRoute::Kind::kSeveral, 0, 0,
            fmt::format("CROSSSET EXEC touches set {}, and what is watched lies on set {}; nothing "
                        "was done",
                        route.set, set)};
  }
  return route;
}

bool CommandLinks::IsAway(const CommandRoute& route) const {
  if (route.Is(CommandRoute::Kind::kSet)) return route.set != own_set();
  return !route.Is(CommandRoute::Kind::kHere);
}

CommandLinks::EntryEnd* CommandLinks::LeaderLink() {
  const uint64_t leader = set()->set().leader();
  if (leader == 0) return nullptr;
  for (const auto& end : entries_)
    if (end->node() == leader && !end->dead()) return end->stands() ? end.get() : nullptr;
  const auto address = set()->KnownLeader();
  if (!address || now() < redial_micros_) return nullptr;
  redial_micros_ = now() + kRedialMicros;
  entries_.push_back(std::make_unique<EntryEnd>(*this, leader, *address, 0));
  entries_.back()->Begin();
  return nullptr;
}

uint64_t CommandLinks::LeaderFor(const EntryEnd& end) const {
  if (end.is_own()) return set()->set().leader();
  const ClusterSet* const other = host_.services().cluster_view.sets.FindId(end.set_id());
  return other == nullptr ? 0 : other->leader;
}

CommandLinks::EntryEnd* CommandLinks::LinkTo(uint64_t number) {
  if (number == kOwnSet) return LeaderLink();
  const ClusterSet* const other = host_.services().cluster_view.sets.Find(number);
  const ClusterMember* const member = other == nullptr ? nullptr : targets_.Pick(*other, now());
  if (member == nullptr) return nullptr;
  for (const auto& end : entries_) {
    if (end->node() != member->node || end->dead()) continue;
    if (end->stands()) return end.get();
    if (now() - end->dialled_micros() >= kAnswerMicros) targets_.Failed(member->node, now());
    return nullptr;
  }
  entries_.push_back(std::make_unique<EntryEnd>(
      *this, member->node, NodeAddress{member->host, member->port}, other->id));
  entries_.back()->Begin();
  return nullptr;
}

EntryLink* CommandLinks::AnyLinkTo(uint64_t number) {
  if (set() == nullptr) return nullptr;
  const bool is_own = number == own_set();
  if (is_own && set()->open()) return &local_->entry();
  EntryEnd* const end = LinkTo(is_own ? kOwnSet : number);
  return end == nullptr ? nullptr : &end->entry();
}

// If it leads to an owner no more, what is under way there comes back.
EntryLink* CommandLinks::LinkFor(const PassedChannel& channel) {
  if (!channel.calls().empty()) return channel.link();
  return AnyLinkTo(channel.is_own() ? own_set() : channel.set());
}

EntryLink* CommandLinks::LinkToNode(uint64_t node) {
  if (set() == nullptr) return nullptr;
  if (node == host_.replication().node()) return &local_->entry();
  for (const auto& end : entries_) {
    if (end->node() != node || end->dead()) continue;
    return end->stands() ? &end->entry() : nullptr;
  }
  std::optional<NodeAddress> address;
  uint64_t set_id = OwnSetId(host_);
  if (const SetMember* const own = set()->set().members().Find(node); own != nullptr)
    address = NodeAddress{own->host, own->port};
  for (const auto& [number, other] : host_.services().cluster_view.sets.sets()) {
    const ClusterMember* const member = address ? nullptr : other.Find(node);
    if (member == nullptr) continue;
    address = NodeAddress{member->host, member->port};
    set_id = other.id;
  }
  if (!address) return nullptr;
  entries_.push_back(std::make_unique<EntryEnd>(*this, node, *address, set_id));
  entries_.back()->Begin();
  return nullptr;
}

std::optional<NodeAddress> CommandLinks::LeaderOf(uint64_t number) const {
  if (number == kOwnSet) return set()->KnownLeader();
  const ClusterSet* const other = host_.services().cluster_view.sets.Find(number);
  const ClusterMember* const leader =
      other == nullptr || other->leader == 0 ? nullptr : other->Find(other->leader);
  if (leader == nullptr) return std::nullopt;
  return NodeAddress{leader->host, leader->port};
}

std::string CommandLinks::LateText(const PassedClient& client, uint64_t number, Doing doing) const {
  if (client.misled) {
    return fmt::format("TRYAGAIN set {} does not have (yet) what the map says it has",
                       number == kOwnSet ? own_set() : number);
  }
  if (number != kOwnSet) return LateText(number);
  const auto leader = set()->KnownLeader();
  if (!leader) return "CLUSTERDOWN no leader: " + set()->NoLeaderText();
  if (!doing.writes && IsBehind(&client, true))
    return "TRYAGAIN what this connection has been told of has not come here yet";
  return fmt::format("CLUSTERDOWN no leader: {}:{} does not answer", leader->host, leader->port);
}

std::string CommandLinks::LateText(uint64_t number) const {
  if (IsLost(number)) return LostRowsText(number);
  if (number == own_set()) {
    const bool known = set() != nullptr && set()->KnownLeader().has_value();
    return fmt::format("CLUSTERDOWN no leader: set {}: {}", number,
                       known || set() == nullptr ? "it does not answer" : set()->NoLeaderText());
  }
  if (host_.services().cluster_view.sets.Find(number) == nullptr)
    return fmt::format("CLUSTERDOWN no leader: set {}: this node does not know where it is",
                       number);
  const auto leader = LeaderOf(number);
  if (!leader) return fmt::format("CLUSTERDOWN no leader: set {}: nobody is known to lead", number);
  return fmt::format("CLUSTERDOWN no leader: set {}: {}:{} does not answer", number, leader->host,
                     leader->port);
}

RemoteCalls& CommandLinks::remote() { return *asks_; }

MoveDesk& CommandLinks::moves() { return *mover_; }

// --- who calls

Result<uint64_t> CommandLinks::CheckCaller(std::string_view version, std::string_view cluster,
                                           std::string_view node) const {
  uint64_t set_id = 0;
  uint64_t node_id = 0;
  const bool named = IsHex(cluster, &set_id) && IsHex(node, &node_id);
  const ClusterSet* const other =
      named && host_.routes() ? host_.services().cluster_view.sets.FindId(set_id) : nullptr;
  const bool knows =
      other != nullptr && other->number != own_set() && other->Find(node_id) != nullptr;
  return host_.replication().CheckCaller(version, cluster, node, knows);
}

PeerHandler* CommandLinks::Accept(PeerLink* link, uint64_t node) {
  std::string from;
  if (const SetMember* const own = set()->set().members().Find(node); own != nullptr)
    from = fmt::format("{}:{}", own->host, own->port);
  for (const auto& [number, other] : host_.services().cluster_view.sets.sets()) {
    const ClusterMember* const member = from.empty() ? other.Find(node) : nullptr;
    if (member != nullptr) from = fmt::format("{}:{}", member->host, member->port);
  }
  CELLAR_ASSERT(!from.empty());  // it has been checked
  owners_.push_back(std::make_unique<OwnerEnd>(*this, link, node, std::move(from)));
  return owners_.back().get();
}

}  // namespace cellar
