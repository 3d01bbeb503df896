// Replication: the log as a stream between machines. One leader, any number of followers; each
// follower may have followers of its own.
//
//   leader                                         follower
//   Journal::Flush -> TailCache                    Upstream: dials, PEER, kFollow
//        files of the log -> LogStream  \          |
//                         FollowerFeed --- link -- | kFrom: the log goes on from its last record
//                               |                  | kFull: a whole copy comes first, then that
//                         <-------- kAck --------- | kRecords: Store::ApplyRecord, own log, own disk
//        snapshot file -> SnapshotServe --- link -- SnapshotFetch: kChunk, file and memory
//
// What a follower applies is never more than the leader has released (Journal::released_lsn), which
// each frame with records tells. A follower that is slow holds nothing up: its feed reads what it
// has not got yet from the leader's files, and begins anew with a snapshot where these are gone.
//
// Without a log (appendonly no) there is nothing to stream: then a node neither leads nor follows.
//
//   tail_cache.h     the newest records in memory
//   follower_feed.h  what the leader has of one follower
//   upstream.h       what a follower has of its leader
//   snapshot_serve.h, snapshot_fetch.h
//                    both ends of the link by which a copy goes
//   greeting.h       how a link begins
//   frame.h          what they say to each other
//   identity_file.h  which node this is, and of which cluster
//
// Sees the store; no sockets, no threads of its own (peer.h). The loop's thread calls everything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "base/random.h"
#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "replica/links/frame.h"
#include "replica/links/identity_file.h"
#include "replica/links/peer.h"
#include "replica/links/tail_cache.h"
#include "replica/set/set_members.h"
#include "replica/snapshot_remake.h"
#include "store/log/log_stream.h"
#include "store/store.h"

namespace cellar {

class FollowerFeed;
class PeerGreeting;
class SetNode;
class SnapshotFetch;
class SnapshotServe;
class Upstream;

struct NodeAddress {
  std::string host;
  uint16_t port{0};
  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

inline constexpr uint32_t kPriorityDefault{100};  // of replica-priority

struct ReplicationOptions {
  // Of a replica set: all of its nodes, and which of them this one is; none: no set.
  std::vector<NodeAddress> nodes;
  NodeAddress self;
  MemberKind kind{MemberKind::kVoter};  // as which it joins one: that, kStandby or kWitness
  int64_t election_micros{300'000};
  bool lease{true};
  std::string announce_host;  // empty: as the leader sees the connection
  uint16_t announce_port{0};
  uint32_t priority{kPriorityDefault};
  std::string user;      // masteruser
  std::string password;  // masterauth; empty: none is sent
  int64_t timeout_micros{60'000'000};
  size_t tail_bytes{64 << 20};
  uint64_t backlog_bytes{1 << 30};    // repl-backlog-size
  uint64_t sync_bytes_per_second{0};  // repl-sync-rate; 0: as fast as the link takes it
  uint64_t seed{0};                   // of ids
  // replicaof; until the store is there, no more is known of it than this.
  std::optional<NodeAddress> follows{};
};

enum class LinkState : uint8_t { kConnect, kConnecting, kSync, kConnected };
std::string_view LinkStateWord(LinkState state);  // as ROLE says it

// What a leader knows of one follower.
struct FollowerFigures {
  NodeAddress address;
  uint64_t node{0};
  uint32_t priority{kPriorityDefault};
  std::string_view state;  // "wait_bgsave", "send_bulk", "online"
  Lsn durable;             // on its disk
  Lsn applied;
  int64_t ack_age_micros{0};
  int64_t lag_micros{0};  // age of the oldest record not on its disk
  int64_t skew_micros{0};
};

// What a member knows of a member of its replica set.
struct MemberFigures {
  uint64_t node{0};
  NodeAddress address;
  std::string_view kind{};   // "voter", "standby", "witness"
  std::string_view state{};  // "leader", "online", "behind", "snapshot", "down"
  Lsn lsn{};                 // on its disk, as far as it is known here
  int64_t lag_micros{0};
  bool room{true};
  uint32_t priority{kPriorityDefault};  // Sentinel's; a set elects by other rules
  std::string version{};                // empty: not known
};

// What a follower knows of its leader.
struct UpstreamFigures {
  bool copies{false};            // a copy of all data is coming
  int64_t copy_begin_micros{0};  // wall clock
  NodeAddress address;
  LinkState state{LinkState::kConnect};
  bool up{false};  // connected, and the last commit known was applied a moment ago
  int64_t last_io_age_micros{-1};
  int64_t down_since_micros{0};  // monotonic; 0 while up
  uint64_t sync_bytes{0};
  uint64_t sync_bytes_total{0};
  int64_t lag_micros{0};  // how far behind the leader's newest record it may be; -1: not known
  Lsn commit;
  int64_t skew_micros{0};
};

struct ReplicationStats {
  uint64_t full_syncs_served{0};
  uint64_t partial_syncs_served{0};
  uint64_t partial_syncs_refused{0};
  uint64_t full_syncs{0};
  uint64_t partial_syncs{0};
  uint64_t link_bytes_out{0};
  uint64_t link_bytes_in{0};
  uint64_t diverged_records{0};
};

enum class FailoverState : uint8_t { kNone, kWaitForSync, kInProgress };
std::string_view FailoverStateWord(FailoverState state);  // as INFO says it

class Replication {
 public:
  Replication(ReplicationHost& host, FileSystem& files, Clock& clock);
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  void SetOptions(ReplicationOptions options);
  // The store is open; borrowed until Detach. Follows the leader that Follow has named already.
  Status Attach(Store* store, const std::string& directory);
  void Detach();
  // The store has been loaded again (DEBUG RELOAD), by another journal: records of this one go to
  // the followers from now on. REQUIRES: the store is attached, and of no replica set.
  void OnReloaded();

  // --- roles
  // Also before the store is open: what such a node says of itself must hold from then on.
  bool in_set() const { return !options_.nodes.empty(); }
  // Of a set: an open one. A node that will follow once its store is there leads nobody.
  bool is_leader() const;
  // The member of a set that this node is; null: it is none.
  SetNode* set() const { return set_.get(); }
  // In a replica set neither of these two is allowed: ERR.
  // REPLICAOF host port: from now on a follower of that node. What the store holds stays until a
  // copy of the leader's has come. ERR if there is no log.
  Status Follow(const NodeAddress& leader);
  // REPLICAOF NO ONE: a leader again, with a higher epoch. What has come and was not applied yet is
  // applied first, as far as the former leader had released it. MISCONF where the log takes no
  // record.
  Status Lead();
  // A follower that has nothing yet is getting its first copy.
  bool awaits_first_copy() const;
  // The leader that this node follows, or will follow once its store is there. REQUIRES:
  // !is_leader().
  const NodeAddress& leader() const;

  // FAILOVER: waits until `to` (or, if unset, the follower that has most) has everything, then
  // makes it the leader and follows it. Writes are held meanwhile. After `timeout_micros` (0:
  // never) it is given up, or, with `force`, carried out all the same.
  Status BeginFailover(const std::optional<NodeAddress>& to, int64_t timeout_micros, bool force);
  Status AbortFailover();
  FailoverState failover_state() const;

  // --- peers
  // PEER of another node, authenticated: what now sits on its link, or why it is refused. The link
  // is borrowed until OnClosed.
  Result<PeerHandler*> Accept(PeerLink* link, std::string_view version, std::string_view cluster,
                              std::string_view node, std::string_view purpose,
                              std::string_view features);

  // PEER of a node that will call: its id, or why it is refused. It must be a member of this set,
  // or one of another set that the caller of this knows (`is_known`).
  Result<uint64_t> CheckCaller(std::string_view version, std::string_view cluster,
                               std::string_view node, bool is_known) const;
  // What is said first on a link that was dialled.
  std::string BeginGreeting(PeerGreeting* greeting, std::string_view purpose,
                            uint64_t features) const;

  // WAIT: followers sync now rather than when their policy would.
  void AskForSync();

  // --- the loop
  // Whether there is anything to do at the end of a turn.
  bool active() const { return tail_runs_ || upstream_ != nullptr || set_ != nullptr; }
  // OnFlushed shall be called again within some two milliseconds, also if nothing happens.
  bool postpones() const;
  // The turn's records have been handed over: what followers lack goes out, acks too.
  void OnFlushed();
  // Applies what has come until the deadline (monotonic). True if there is more.
  bool ApplySlice(int64_t deadline_micros);
  // About ten times a second.
  void OnTick();

  // --- figures
  // 40 hexadecimal digits.
  std::string cluster_text() const;
  uint64_t node() const { return identity_.node; }
  uint32_t term() const;
  // As INFO says it.
  std::string_view state_word() const;
  // Up to where the leader has released the log, as far as that is known here.
  Lsn commit() const;
  // The largest difference of clocks that was seen on a link, the other's minus the own.
  int64_t skew_micros() const;
  const ReplicationStats& stats() const { return stats_; }
  std::vector<FollowerFigures> followers() const;
  std::optional<UpstreamFigures> upstream() const;
  size_t tail_bytes() const;
  // Received and not applied yet.
  size_t waiting_bytes() const;
  void ResetStats() { stats_ = {.diverged_records = stats_.diverged_records}; }
  uint64_t diverged_total() const { return identity_.diverged; }
  // How many followers have `lsn` on their disks; for WAIT.
  size_t FollowersWith(Lsn lsn) const;
  // Followers whose last ack is not older than that; for min-replicas-to-write.
  size_t FollowersWithin(int64_t lag_micros) const;

 private:
  friend class FollowerFeed;
  friend class SetNode;
  friend class SnapshotFetch;
  friend class SnapshotServe;
  friend class Upstream;

  // It is to follow, but its store is not there yet.
  bool will_follow() const { return store_ == nullptr && options_.follows.has_value(); }
  // The file is made if there is none.
  Status EnsureIdentity();
  Status WriteIdentity(const Identity& identity);
  FrameHead MakeHead(FrameKind kind) const;
  // What the clock of `address` says, minus the own one; told of when they are far apart.
  int64_t SkewOf(const NodeAddress& address, int64_t wall_micros, int64_t before_micros) const;
  void Send(PeerLink* link, FrameKind kind, std::string_view body);
  // The body in two parts.
  void Send(PeerLink* link, const FrameHead& head, std::string_view body,
            std::string_view rest = {});
  // One that has been made elsewhere.
  void SendFrame(PeerLink* link, std::string_view frame);
  void StepFailover();
  void EndFailover();
  // Has `feed` lead.
  void HandOver(FollowerFeed* feed);
  // It says that it leads now, or that it does not.
  void EndHandOver(FollowerFeed* feed, bool leads);
  void FollowSuccessor();
  // Whether to go on with a node that says so of itself. Not if this one has handed over to it, and
  // it does not lead (yet): if it never will, this one leads again.
  bool MayFollow(bool leads);
  Result<PeerHandler*> AcceptFollower(PeerLink* link, uint64_t node);
  // Warns where this node follows one that follows it.
  void LookForCircle();
  Result<PeerHandler*> AcceptBulk(PeerLink* link, uint64_t node, std::string_view ticket);
  FollowerFeed* FeedById(uint64_t id);
  SnapshotServe* ServeOf(uint64_t feed, uint64_t ticket);
  SnapshotFetch* FetchById(uint64_t id);
  void DropFeed(FollowerFeed* feed);
  // Log that followers need behind the copies that they are getting stays.
  void UpdateRetention();
  void StartTail();
  Status BeginEpoch();

  ReplicationHost& host_;
  FileSystem& files_;
  Clock& clock_;
  ReplicationOptions options_;
  Store* store_{nullptr};
  std::string directory_;
  Random random_;
  Identity identity_;
  std::unique_ptr<IdentityFile> identity_file_;  // null: none was needed yet
  static constexpr size_t kFrameKeptBytes{512 << 10};
  std::string frame_;  // memory for the next one
  TailCache tail_;
  bool tail_runs_{false};
  std::vector<std::unique_ptr<FollowerFeed>> feeds_;
  std::vector<std::unique_ptr<FollowerFeed>> dropped_;  // until the end of the turn
  uint64_t feed_id_next_{1};
  uint64_t told_circle_{0};  // with which node it was told of last
  uint32_t seen_term_{0};    // the highest that another node has named
  std::unique_ptr<Upstream> upstream_;
  std::unique_ptr<SetNode> set_;
  SnapshotRemake remake_;
  std::vector<std::unique_ptr<Upstream>> dropped_upstreams_;
  ReplicationStats stats_;
  FailoverState failover_state_{FailoverState::kNone};
  std::optional<NodeAddress> failover_to_;
  int64_t failover_deadline_micros_{0};
  bool failover_force_{false};
  uint64_t successor_feed_{0};       // kInProgress
  NodeAddress successor_;            // kInProgress
  int64_t hand_over_end_micros_{0};  // kInProgress: it is not waited for any longer
  int64_t take_back_micros_{0};      // from then on who was handed over to cannot take over
};

}  // namespace cellar
