// ClusterLinks: what joins the sets of a cluster. Each node but the director has one link to it,
// which it has dialled; on it go up what the sets are and what they own, and down the map, where
// sets are, and changes of the schema (cluster/cluster_frames.h).
//
//   leader of a set --- NodeReport --->  director (leader of set 0): directory, claims, agreement
//   any node        <--- kMap -------
//   leader of a set <--- kCut, kRelease
//
// Where the director is, a node knows of its own set (set 0), of the directory, or of cluster-join;
// a node that is asked and directs nothing says who may. What is decided is in the state machines
// of src/cluster; here are sockets, the store and the clock. A link on which nothing is heard for
// some seconds is given up: a process may stand still whose machine confirms what comes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "cluster/catalog_agreement.h"
#include "cluster/cluster_frames.h"
#include "cluster/director_desk.h"
#include "commands/session/host.h"
#include "replica/links/frame.h"
#include "replica/links/peer.h"
#include "replica/replication.h"
#include "server/backup_cuts.h"
#include "server/cut_director.h"
#include "server/digest_cuts.h"
#include "server/set_returns.h"

namespace cellar {

class SetNode;

class ClusterLinks final : public DirectorDesk,
                           private CatalogDirector::Teller,
                           private CutDirector::Links {
 public:
  // Both outlive it; `dialler` is the same server as `host`.
  ClusterLinks(Host& host, ReplicationHost& dialler);
  ~ClusterLinks() override;
  ClusterLinks(const ClusterLinks&) = delete;
  ClusterLinks& operator=(const ClusterLinks&) = delete;

  // PEER of a node of that set.
  PeerHandler* Accept(PeerLink* link, uint64_t set_id, uint64_t node, uint64_t features);
  // What this turn has logged is about to be told: changes of the schema among it are held.
  void BeforeReplies();
  // Of what is released, what may be told.
  Lsn Bounded(Lsn released) const { return holds_ ? std::min(released, held_at_) : released; }
  // At the end of a turn: what is to be said leaves.
  void OnTurn();
  void OnTick();
  void OnRoleChanged();
  // Before the threads of others end, which work for it.
  void Stop() { returns_.StopSettlement(); }
  CutDesk& cuts() { return cuts_; }
  size_t links() const { return downs_.size() + (up_ == nullptr ? 0 : 1); }

  // --- DirectorDesk
  std::vector<WaitingSet> Waiting() const override;
  std::optional<uint64_t> WhoLacks(uint64_t catalog) const override;
  std::optional<std::string> WhoLacksUsers() const override;
  const std::vector<std::string>& Returns() const override { return returns_.news(); }
  void OnAdmitted() override;
  int64_t AwayMicros(uint64_t set) const override;

 private:
  class Up;
  class Down;
  static constexpr int64_t kRedialMicros{200'000};
  static constexpr int64_t kReportMicros{5'000'000};
  static constexpr int64_t kPulseMicros{1'000'000};

  // --- CatalogDirector::Teller
  void TellChange(uint64_t set, uint64_t number) override;
  void TellRelease(uint64_t set, uint64_t number) override;

  // --- CutDirector::Links
  Status CheckSets() const override;
  void OnCutLogged(const CutMark& mark, uint64_t number, bool fits) override;

  SetNode* set() const { return host_.replication().set(); }
  int64_t now() const { return host_.clock().MonotonicMicros(); }
  FrameHead Head(FrameKind kind) const;
  bool has_state() const;   // there is a store, and it is that of a set
  bool in_cluster() const;  // REQUIRES: has_state
  bool directs() const;
  // This node leads its set, and may write.
  bool leads() const;
  // And has nothing of the schema that may be lost: so its reports say.
  bool LeadsAsTold() const;
  void UpdateRole();
  void NoteCatalog();
  void NoteCommitted();
  void SetHold(uint64_t held_from, Lsn before);
  // What all members of this node's set know, or may: kClusterLinkCuts to kClusterLinkTypes.
  uint64_t Known() const;
  void NoteKnown();
  void TellListeners(const CutMark& mark, uint64_t number);
  // Where the director is, as far as is known.
  std::optional<NodeAddress> Director() const;
  // Where it may be, the likeliest first.
  std::vector<NodeAddress> Candidates() const;
  NodeReport MakeReport(bool with_tablets) const;
  Down* LeaderOf(uint64_t number) const;
  void ForgetChanges();
  void AdmitWaiting();
  // What nodes tell of themselves comes to their entries in the directory.
  void FillMembers(ClusterSet* set) const;
  void PutSet(ClusterSet set);
  void TendReturns();
  void NoteLost(uint64_t set_id, const Down* link);
  void NoteRemoved(uint64_t number);
  // Those that the directory has, and the cluster no more.
  void DropRemoved();
  // A set that is to join, and hears of no cluster, says so in the log.
  void TellWhyAlone();
  // --- what the director says
  void TakeSchemaOrder(std::string_view body);
  void TakeUsers(std::string text);
  bool TakeMap(std::string_view body);

  Host& host_;
  ReplicationHost& dialler_;
  CatalogDirector director_{*this};
  CatalogMember member_;
  CutDirector cuts_{host_, director_, *this};
  std::map<uint64_t, uint64_t> known_;       // what leaders of sets have said, by set
  std::map<uint64_t, int64_t> here_micros_;  // when a set's leader was here last (monotonic)
  int64_t begun_micros_{0};                  // when this director has begun
  SetReturns returns_;
  BackupCuts backup_cuts_;
  DigestCuts digest_cuts_;
  std::unique_ptr<Up> up_;
  std::vector<std::unique_ptr<Down>> downs_;
  uint32_t term_{0};   // that director_ or member_ began with
  bool leads_{false};  // member_ has begun
  uint64_t catalog_seen_{0};
  int64_t catalog_micros_{0};  // when it was seen first (monotonic)
  Lsn catalog_lsn_{};          // a record at or behind that of catalog_seen_
  Lsn last_seen_{};            // the last record of the turn before
  uint64_t answered_{0};       // the catalog that the director was answered
  bool holds_{false};
  Lsn held_at_{};
  std::map<uint64_t, std::string> shared_told_;  // by set: the place that its members share
  int64_t held_since_micros_{0};
  std::optional<NodeAddress> elsewhere_;
  size_t next_candidate_{0};
  int64_t redial_micros_{0};
  std::string failure_;      // why there is no link to the director
  int64_t alone_micros_{0};  // when TellWhyAlone says it next
  int64_t directory_micros_{0};
  int64_t forget_micros_{0};
  int64_t tick_micros_{0};
  uint64_t directory_version_{1};  // of what the director pushes
  std::string users_due_;          // that were told and could not be logged then
};

}  // namespace cellar
