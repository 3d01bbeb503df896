// ClusterLinks: what a node reports of its set, and whom it tells.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/os/log.h"
#include "base/text/quote.h"
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

uint64_t ClusterLinks::Known() const {
  const auto knows = [this](uint32_t level) {
    return set()->feature_level() >= level || set()->CheckLevel(level).ok();
  };
  if (!has_state() || !knows(kCutsLevel)) return kClusterLinkVersion;
  return knows(kWholeGroupsLevel) ? kClusterLinkTypes : kClusterLinkCuts;
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

// --- sets, at the director

// Until somebody has come to its director in this term, nobody is known to be away.
int64_t ClusterLinks::AwayMicros(uint64_t set) const {
  if (LeaderOf(set) != nullptr) return 0;
  const auto seen = here_micros_.find(set);
  return now() - (seen == here_micros_.end() ? begun_micros_ : seen->second);
}

// Nobody waits for it, and nobody is sent to it any more.
void ClusterLinks::NoteRemoved(uint64_t number) {
  ClusterView& view = host_.services().cluster_view;
  const ClusterSet* const known = view.sets.Find(number);
  if (known == nullptr) return;
  returns_.Lost(known->id);
  view.sets.Remove(number);
  ++directory_version_;
  director_.RemoveSet(number);
}

void ClusterLinks::DropRemoved() {
  std::vector<uint64_t> gone;
  for (const auto& [number, set] : host_.services().cluster_view.sets.sets())
    if (!host_.services().cluster_map.Has(host_.store(), number)) gone.push_back(number);
  for (const uint64_t number : gone) NoteRemoved(number);
}

// What two voters of it share, which is lost with both.
static std::string SharedPlace(const ClusterSet& set) {
  for (auto one = set.members.begin(); one != set.members.end(); ++one) {
    for (auto other = one + 1; other != set.members.end(); ++other) {
      if (one->kind != "voter" || other->kind != "voter") continue;
      if (!one->zone.empty() && one->zone == other->zone) return "zone " + Quote(one->zone);
      if (!one->machine.empty() && one->machine == other->machine)
        return "machine " + Quote(one->machine);
    }
  }
  return {};
}

void ClusterLinks::PutSet(ClusterSet set) {
  FillMembers(&set);
  std::string shared = SharedPlace(set);
  if (std::string& told = shared_told_[set.number]; told != shared) {
    told = shared;
    if (!shared.empty())
      Log(LogSeverity::kWarning,
          fmt::format("Members of set {} are in one place: {}", set.number, shared));
  }
  if (host_.services().cluster_view.sets.Put(std::move(set))) ++directory_version_;
}

void ClusterLinks::TellListeners(const CutMark& mark, uint64_t number) {
  const CutListeners& listeners = host_.services().cut_listeners;
  const auto listener = listeners.find(mark.purpose);
  if (listener != listeners.end()) listener->second->OnCut(mark, number, host_.store().last_lsn());
}

void ClusterLinks::OnCutLogged(const CutMark& mark, uint64_t number, bool fits) {
  NoteCatalog();
  director_.OnCut(number, fits, now());
  TellListeners(mark, number);
}

// So long a set looks for its cluster without a word, which may be starting as well; and so often
// it says that it finds none.
static constexpr int64_t kAlonePatienceMicros{5'000'000};
static constexpr int64_t kAloneEveryMicros{60'000'000};

void ClusterLinks::TellWhyAlone() {
  if (in_cluster() || failure_.empty() || alone_micros_ == 0) {
    alone_micros_ = now() + kAlonePatienceMicros;
  } else if (now() >= alone_micros_) {
    alone_micros_ = now() + kAloneEveryMicros;
    Log(LogSeverity::kWarning, "cluster-join: no cluster is found: " + failure_);
  }
}

// Those that every set has, and that no set is to be told when it comes back.
void ClusterLinks::ForgetChanges() {
  Store& store = host_.store();
  MapTables tables(store);
  if (!tables.exist() || store.in_transaction() || host_.closed()) return;
  const uint64_t first = tables.FirstChange();
  uint64_t last = director_.all_have();
  const uint64_t kept = std::min(director_.committed(), MapTables::kChangesKept);
  if (tables.changes_bytes() <= MapTables::kChangesBytesMax)
    last = std::min(last, director_.committed() - kept);
  if (first == 0 || first > last) return;
  store.BeginTransaction(Store::Atomicity::kAll);
  if (tables.ForgetChanges(last).ok())
    store.CommitTransaction();
  else
    store.RollBackTransaction();
}

}  // namespace cellar
