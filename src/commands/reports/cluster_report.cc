// See cluster_report.h.
#include "commands/reports/cluster_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>

#include "base/assert.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "replica/set_node.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {

bool IsInCluster(Host& host) {
  const SetNode* const set = host.replication().set();
  return !host.loading() && set != nullptr && !set->member().state_is_void() &&
         host.store().engine().cluster().active();
}

std::optional<NodeAddress> SetLeader(Host& host) {
  const SetNode* const set = host.replication().set();
  CELLAR_ASSERT(set != nullptr);
  if (!set->open()) return set->KnownLeader();
  const SetMember* const own = set->set().members().Find(host.replication().node());
  if (own == nullptr) return std::nullopt;
  return NodeAddress{own->host, own->port};
}

std::string SetLeaderText(Host& host) {
  const std::optional<NodeAddress> leader = SetLeader(host);
  return leader ? fmt::format("{}:{}", leader->host, leader->port) : std::string();
}

std::string_view SetStateOf(const ClusterSet& set) {
  if (set.leader == 0) return "no-leader";
  if (set.draining) return "draining";
  return set.tablets == 0 ? "empty" : "ok";
}

uint64_t OwnSetId(Host& host) {
  return std::stoull(host.replication().cluster_text().substr(0, 16), nullptr, 16);
}

ClusterSet OwnClusterSet(Host& host) {
  const SetNode* const node = host.replication().set();
  CELLAR_ASSERT(node != nullptr);
  const Engine& engine = host.store().engine();
  ClusterSet set;
  set.number = engine.cluster().set;
  set.id = OwnSetId(host);
  set.leader = node->open() ? host.replication().node() : node->set().leader();
  for (const MemberFigures& member : node->Members()) {
    set.members.push_back({.node = member.node,
                           .host = member.address.host,
                           .port = member.address.port,
                           .kind = std::string(member.kind),
                           .state = std::string(member.state),
                           .version = member.version});
  }
  set.catalog = engine.cluster().catalog;
  set.tablets = engine.cluster().active() ? TabletsOwned(engine) : 0;
  set.bytes = host.data_figures().bytes;
  set.maxmemory = static_cast<uint64_t>(host.services().config.maxmemory);
  const TabletMoves& moves = engine.cluster().moves;
  set.jobs = moves.out().size() + moves.in().size();
  const Services& services = host.services();
  const ClusterSet* const known = services.cluster_view.sets.Find(set.number);
  if (known != nullptr) set.draining = known->draining;
  if (node->open())
    set.load = host.services().load.Percent(host.clock().MonotonicMicros());
  else if (known != nullptr)
    set.load = known->load;
  for (ClusterMember& member : set.members) {
    if (member.node == host.replication().node()) {
      member.zone = services.config.cluster_zone;
      member.machine = MachineOf(services.config);
    } else if (const ClusterMember* const told =
                   known == nullptr ? nullptr : known->Find(member.node)) {
      member.zone = told->zone;
      member.machine = told->machine;
    }
  }
  if (set.number == 0 && engine.cluster().active()) {
    const auto& rows = host.services().cluster_map.Sets(host.store());
    set.draining = !rows.empty() && rows[0].draining;
  }
  return set;
}

std::string LeaderTextOf(Host& host, uint64_t set) {
  if (set == host.store().engine().cluster().set) return SetLeaderText(host);
  const ClusterSet* const known = host.services().cluster_view.sets.Find(set);
  const ClusterMember* const leader = known == nullptr ? nullptr : known->Find(known->leader);
  return leader == nullptr ? std::string() : fmt::format("{}:{}", leader->host, leader->port);
}

std::string MachineOf(const Config& config) {
  if (!config.cluster_machine.empty()) return config.cluster_machine;
  char name[HOST_NAME_MAX + 1]{};
  return gethostname(name, sizeof(name) - 1) == 0 ? std::string(name) : std::string();
}

SetReport ReportSet(Host& host) {
  CELLAR_ASSERT(IsInCluster(host));
  const Engine& engine = host.store().engine();
  SetReport report;
  report.set = engine.cluster().set;
  report.id = host.replication().cluster_text().substr(0, 16);
  report.leader = SetLeaderText(host);
  report.state = report.leader.empty() ? "no-leader" : "ok";
  report.members = host.replication().set()->Members();
  report.tablets = TabletsOwned(engine);
  report.bytes = host.data_figures().bytes;
  report.maxmemory = static_cast<uint64_t>(host.services().config.maxmemory);
  return report;
}

}  // namespace cellar
