// ClusterLinks: what a node reports of its set, and whom it tells.
#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/os/log.h"
#include "commands/config/config.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/services.h"
#include "engine/state/snapshot_set.h"
#include "replica/set_node.h"
#include "server/cluster_links.h"
#include "server/own_tablets.h"
#include "server/store_config.h"
#include "store/catalog_changes.h"
#include "store/move_changes.h"
#include "store/store.h"

namespace cellar {

TabletsByTable OwnTablets(const Engine& engine) {
  TabletsByTable tablets;
  // Of snapshots, too: where their rows are does not change.
  for (const Table* const table : engine.snapshots().Tables()) {
    Tablets::Pointer frozen =
        table->tablets() == nullptr ? Tablets::Whole() : table->shared_tablets();
    if (!frozen->list().empty()) tablets.emplace(table->id(), std::move(frozen));
  }
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    if (table->tablets() == nullptr) continue;
    Tablets::Pointer claimed = ClaimedTablets(engine, *table);
    if (!claimed->list().empty()) tablets.emplace(table->id(), std::move(claimed));
  }
  return tablets;
}

std::optional<NodeAddress> ClusterLinks::Director() const {
  if (!has_state() || !in_cluster()) return std::nullopt;
  if (host_.store().engine().cluster().set == 0) return SetLeader(host_);
  const ClusterSet* const head = host_.services().cluster_view.sets.Find(0);
  const ClusterMember* const leader = head == nullptr ? nullptr : head->Find(head->leader);
  if (leader == nullptr) return std::nullopt;
  return NodeAddress{leader->host, leader->port};
}

std::vector<NodeAddress> ClusterLinks::Candidates() const {
  std::vector<NodeAddress> list;
  const auto add = [&list](const NodeAddress& address) {
    if (std::find(list.begin(), list.end(), address) == list.end()) list.push_back(address);
  };
  if (in_cluster() && host_.store().engine().cluster().set == 0) {
    if (const auto leader = set()->KnownLeader()) add(*leader);
    return list;
  }
  if (const ClusterSet* const head = host_.services().cluster_view.sets.Find(0)) {
    if (const ClusterMember* const leader = head->Find(head->leader))
      add({leader->host, leader->port});
    for (const ClusterMember& member : head->members) add({member.host, member.port});
  }
  for (const NodeAddress& node : NodesOf(host_.services().config.cluster_join)) add(node);
  return list;
}

// What it has is told once it is committed.
bool ClusterLinks::LeadsAsTold() const {
  return leads() && set()->set().commit().seq >= catalog_lsn_.seq;
}

NodeReport ClusterLinks::MakeReport(bool with_tablets) const {
  const Engine& engine = host_.store().engine();
  NodeReport report;
  report.cluster_id = engine.cluster().cluster_id;
  report.leads = LeadsAsTold();
  if (report.leads)
    report.set = OwnClusterSet(host_);
  else
    report.set.id = OwnSetId(host_);
  if (report.leads && !engine.cluster().active())
    report.refusal = CatalogChanges::WhatIsHere(engine);
  const Services& services = host_.services();
  const Acl::TakenOver& users = services.acl.taken_over();
  if (services.config.cluster_acl && users.seen) report.users = Hash64(users.text);
  report.zone = services.config.cluster_zone;
  report.machine = MachineOf(services.config);
  if (with_tablets) {
    report.tells_tablets = true;
    EncodeClusterState(engine.cluster(), OwnTablets(engine), &report.tablets);
  }
  return report;
}

// --- users

// Those of the cluster are those of each of its sets. While a change of the members or of the users
// before is under way they wait: they are told once.
void ClusterLinks::TakeUsers(std::string text) {
  users_due_.clear();
  const bool may = set() != nullptr && set()->open() && host_.services().config.cluster_acl;
  if (!may || set()->users() == text) return;
  const Result<Lsn> changed =
      leads() ? set()->ChangeUsers(text) : Status::Error(ErrorCode::kTryAgain, "not yet");
  if (changed.ok()) return;
  if (changed.status().code() == ErrorCode::kTryAgain) {
    users_due_ = std::move(text);
    return;
  }
  Log(LogSeverity::kWarning,
      "The users of the cluster cannot be taken over: " + changed.status().text());
}

}  // namespace cellar
