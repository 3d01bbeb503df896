// SetNode: this server as a member of a replica set: its links to the others, how a set begins and
// is joined, and what clients are told (REPLICA SETS in cellar-replication(7)).
//
//   listed addresses -- OutLink: dialled, PEER ... member --> kHello, then frames of ReplicaSet
//                    <- InLink: the other's OutLink ---------- the same of the other
//
// Of each pair of nodes either one dials the other and speaks on the link that it has dialled, so
// that a link has one direction, keeps its order, and a new one ends the old. Who is at the other
// end of an OutLink its PEER reply says; a frame for a member goes to where that member is found.
//
// Founding. Each node tells the others in kHello what it has: nothing, data, or a set. Once all
// that `cluster-nodes` lists have answered and none has a set, the one that has data, else the
// first one by address, names all of them, as voters or witnesses; the others take that record. It
// waits while two of them have one id, or one could not read the data (set_node_founding.cc). A
// node that has nothing and finds a set waits to be added by its leader: as one that does not vote,
// and once it has caught up as a voter, in the place of the member that was found at its address
// before. By then it may have been sent records of a leader that was lost with them: it says, by
// what it knows to be committed, that it is no member yet.
//
// A witness votes and keeps the log, and holds no data (Manifest::holds_log_only), so that two
// machines with data and a small one survive the loss of any. What a majority has acknowledged may
// be on one of the two and the witness alone: if that one is lost the witness is elected, brings
// the other one up to date, and hands over to it. It answers no client, and gives no snapshot: who
// is further back than its log needs a node with data.
//
// Members need not be listed: a node dials all that the log names, and who greets it. One whose
// address has changed says so in its greetings, and the leader notes it in the log.
//
// No sockets and no threads of its own (peer.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replica/greeting.h"
#include "replica/replication.h"
#include "replica/set/member_file.h"
#include "replica/set/set_store.h"
#include "replica/set_order.h"
#include "replica/snapshot_fetch.h"
#include "replica/snapshot_serve.h"

namespace cellar {

class SetNode final : private SetStoreHost {
 public:
  SetNode(Replication& owner, Store& store);
  ~SetNode() override;

  // Takes part, or waits for a set. An error: this node cannot.
  Status Begin();
  // The end of the process, or of the store: what is committed is marked.
  void End();

  // PEER of another member.
  Result<PeerHandler*> AcceptMember(PeerLink* link, uint64_t cluster, uint64_t node);

  // --- the loop
  // At the end of a turn, when its records have been flushed.
  void OnTurn(int64_t deadline_micros);
  void OnTick();
  int64_t timer_micros() const;  // monotonic; INT64_MAX: there is none
  void OnTimer();
  // Commands wait, such as readers of feeds: this node is to hear of commits at once.
  void AwaitCommits(bool awaits) { member_.AwaitCommits(awaits); }
  // Replies wait that were made with this floor.
  void OnRepliesWait(Lsn floor) { member_.Confirm(floor); }

  // --- orders
  Status BeginFailover(const std::optional<NodeAddress>& to, int64_t timeout_micros);
  Status AbortFailover();
  FailoverState failover_state() const { return failover_; }
  // REPLICA ...: begins it, on an open leader; kFailover on any node, which passes it on. Its
  // ticket, or why not; kTryAgain while another one is under way.
  Result<uint64_t> BeginOrder(const SetOrder& order);
  // What has become of it; nothing: it goes on.
  std::optional<Status> OrderResult(uint64_t ticket);

  // --- the set's users: lines of an aclfile; empty: it has none of its own
  // The newest ones of the log.
  const std::string& users() const { return set().members().users; }
  // Those that are known to be committed are in these; of a copy that comes, as its offer says.
  // An empty list: nothing is known.
  const SetMembers& committed_members() const;
  // They are known, and the log has no others that may be committed too.
  bool knows_users() const;
  // No set has been founded or joined.
  bool is_outside() const { return !member_.started(); }
  // No member is known not to know of them.
  bool may_have_users() const;
  // kTryAgain: that is not known of all members.
  Status CheckUsersLevel() const;
  // Others in their place, on an open leader: the record that says so. kTryAgain: not yet.
  Result<Lsn> ChangeUsers(std::string users);

  // --- what is so
  const ReplicaSet& set() const { return member_.set(); }
  const SetStore& member() const { return member_; }
  bool open() const { return member_.set().open() && !is_witness(); }
  bool may_append() const { return member_.set().may_append() && !is_witness(); }
  bool is_witness() const { return member_.is_witness(); }
  // Disks of a majority take records.
  bool has_room() const { return has_room_; }
  Lsn released() const { return member_.released(); }
  Lsn floor() const { return member_.floor(); }
  // A read shall not be older than this moment: its ticket. It may be carried out here once
  // read_ready() is not below that; the host's WakeReads says when it is worth a look.
  uint64_t RequestReadIndex();
  uint64_t read_ready() const { return read_ready_; }
  int64_t read_patience_micros() const { return 2 * owner_.options_.election_micros; }
  std::string members_payload() const { return member_.members_payload(); }
  std::string_view state_word() const;
  // Why there is no leader that could be asked, as behind "CLUSTERDOWN no leader: ".
  std::string NoLeaderText() const;
  // The leader that is known, unless it is this node; nothing else.
  std::optional<NodeAddress> KnownLeader() const;
  // It has no state that could be shown.
  bool is_empty() const { return !member_.started(); }
  // Since when nothing was heard from a leader; -1: nothing ever was.
  int64_t lag_micros() const;
  UpstreamFigures Upstream() const;
  std::vector<FollowerFigures> Followers() const;
  std::vector<MemberFigures> Members() const;
  // Other members whose disks have `lsn`.
  size_t MembersWith(Lsn lsn) const;
  size_t tail_bytes() const { return member_.tail_bytes(); }
  size_t waiting_bytes() const;
  int64_t skew_micros() const;
  uint64_t rollbacks() const { return member_.reloads(); }
  // What this version knows, and what the set has come to use.
  uint32_t feature_level() const { return set().members().feature_level; }
  // Whether all members know that level: if not, who is in the way.
  Status CheckLevel(uint32_t level) const;

  SnapshotFetch* fetch() { return fetch_.get(); }
  SnapshotServe* ServeOf(uint64_t ticket);
  void SetOptions();

 private:
  friend class Replication;
  // Beyond so many bytes that a link has not taken, frames are lost.
  static constexpr size_t kWindowBytes{24 << 20};
  static constexpr int64_t kHelloMicros{500'000};
  // Greetings alike that it takes before a set is founded, or a process ends for what they say.
  static constexpr int kAlikeMin{3};
  // A witness that leads, and has handed over to nobody, tries again.
  static constexpr int64_t kAsideMicros{20'000};
  // A standby that lacks no more records than this is made a voter.
  static constexpr uint64_t kNearRecords{1000};
  static constexpr size_t kServesMax{8};

  // A peer that is neither listed nor a member is given up when so long nothing was heard of it.
  static constexpr int64_t kLearnedMicros{10'000'000};
  static constexpr size_t kPeersMax{2 * kSetMembersMax};
  // An order that has not been carried out by then, and a promotion, which waits for a copy.
  static constexpr int64_t kOrderMicros{10'000'000};
  static constexpr int64_t kPromotionMicros{60'000'000};
  static constexpr size_t kOrderResultsMax{256};

  enum class Has : uint8_t { kNothing = 0, kData = 1, kSet = 2 };
  class OutLink;
  class InLink;
  struct InstallJob;
  struct Peer {
    std::string text;  // as it is listed, or as it has said
    NodeAddress address;
    bool listed{false};
    int64_t heard_micros{0};
    std::unique_ptr<OutLink> out;
    bool answered{false};  // since it was connected
    int alike{0};          // its last greetings that said the same, kAlikeMin at most
    uint64_t node{0};      // as its hello says
    uint64_t cluster{0};
    Has has{Has::kNothing};
    std::string list;
    uint32_t level{1};      // of features
    bool wants_in{false};   // it is no member by what is committed there
    bool shuts_out{false};  // this node is none by what is committed there
    MemberKind wanted{MemberKind::kVoter};
    std::string version;
    uint32_t priority{kPriorityDefault};
    int64_t said_skew_micros{0};  // by its last greeting
    int64_t skew_micros{0};
    bool told_of{false};        // it is of another set: once
    int64_t refused_micros{0};  // when it was last told that a frame of it was refused
    bool told_level{false};
  };
  // What the leader is carrying out.
  struct RunningOrder {
    uint64_t ticket{0};  // 0: nothing
    SetOrder order;
    int64_t begin_micros{0};
    int64_t deadline_micros{0};
    uint64_t from{0};  // the member that has asked for it; 0: a client of this node
    uint64_t from_ticket{0};
  };
  // What the leader is asked to do: SENTINEL FAILOVER, or, of who has handed over for that, to take
  // it out or its vote.
  struct AskedOrder {
    uint64_t ticket{0};
    SetOrder order;
    int64_t deadline_micros{0};
    int64_t sent_micros{0};
    bool leaves{false};
    int64_t refused_micros{0};  // when it was, first
  };

  // --- SetStoreHost
  Status SaveVote(uint32_t term, uint64_t vote) override;
  void Send(uint64_t node, std::string frame) override;
  bool IsSendingLong(uint64_t node) override;
  bool IsFull(uint64_t node) override;
  std::optional<SnapshotOffer> OfferSnapshot(const SnapshotEntry& entry) override;
  void FetchSnapshot(uint64_t node, const SnapshotOffer& offer) override;
  void OnRoleChanged() override;
  void OnBroken(std::string_view why) override;
  void OnContradicted(std::string_view why) override;
  void RunInBackground(std::function<void()> work, std::function<void()> done) override;
  Status ReloadStore(const std::function<Status()>& reload) override;

  Has has() const;
  std::string ListText() const;  // sorted, so that two lists can be compared
  void Greet(OutLink* link);     // of one that has just answered
  void SayHello(OutLink* link);
  void OnHello(InLink* link, const Frame& frame);
  void NoteHello(Peer* peer, const Frame& frame, uint64_t node);
  void OnMemberFrame(InLink* link, const Frame& frame);
  void OnArriving(const InLink& link, const FrameHead& head);
  // Who speaks on a link, if it is known to be of a set; else null.
  Peer* MemberBehind(const InLink& link) const;
  void OnReadIndex(uint64_t node, const Frame& frame);
  void OnReadAnswer(const Frame& frame);
  void StepReads();
  void AskAgain();
  // set_node_founding.cc
  void FoundIfDue();
  void NoteHindrance(std::string why);
  std::string SameIds() const;
  std::string OlderVersion();
  Status Found();
  Status StartMember(ReplicaSet::Begins begins = ReplicaSet::Begins::kAtOnce);
  // set_node_past.cc
  Status BeginPast(ReplicaSet::Begins begins);
  Status WritePast();
  void StepPast();
  void KeepPast();
  void ClosePast();
  std::string OlderText() const;
  // The members that the log names against what this node is.
  Status CheckKind() const;
  MemberKind kind() const;
  void StepAside();
  void EndRestart();
  // What cannot be mended by waiting: the process ends.
  void Refuse(const std::string& why);
  // set_node_members.cc
  Peer* LearnPeer(const NodeAddress& address);
  void SyncPeers();
  bool IsRedundant(const Peer& peer) const;
  bool WantsIn() const;
  void TendMembers();
  // Each makes one change, if one is due, and says what is told once it is made.
  bool TendAddress(SetMembers* members, std::string* told);
  bool TendStandby(SetMembers* members, std::string* told);
  bool TendJoining(SetMembers* members, std::string* told);
  bool IsNear(uint64_t node) const;
  // Whether records of that level may be written; TRYAGAIN while the set comes to use it.
  Status WantLevel(uint32_t level);
  static uint32_t LevelOf(MemberKind kind) {
    return kind == MemberKind::kWitness   ? kWitnessLevel
           : kind == MemberKind::kStandby ? kStandbyLevel
                                          : 1;
  }
  static uint32_t LevelOf(Feature feature);
  static Status CheckVoters(const SetMembers& members, MemberKind kind, const NodeAddress& at);
  bool TendLevel(SetMembers* members, std::string* told);
  const Peer* AnsweringPeer(const NodeAddress& address) const;
  // set_node_orders.cc
  const SetMember* Find(const SetOrder& order) const;
  Status CheckOrder(const SetOrder& order);
  Status CheckAdd(const SetOrder& order);
  Status Leave(const SetOrder& order);
  void StepOrder();
  Status NextMembers(const SetOrder& order, SetMembers* members) const;
  Status NextAdded(const SetOrder& order, SetMembers* members) const;
  bool IsDone(const SetOrder& order) const;
  void EndOrder(Status status);
  std::string WhySilent(const NodeAddress& address) const;
  void NoteResult(uint64_t ticket, Status status);
  void StepAsked();
  void OnOrder(uint64_t node, const Frame& frame);
  void OnOrderAnswer(const Frame& frame);
  void AnswerOrder(uint64_t node, uint64_t ticket, const Status& status);
  // Who is to lead next: connected, with room, and with the most of the log. 0: nobody.
  uint64_t Successor() const;
  void HandOverIfFull();
  void NoteRoom();
  void StepFailover();
  void EndFailover();
  bool StepFetch(int64_t deadline_micros);
  void EndInstall(InstallJob* job);
  void DropFetch();
  void NoteLeader();
  static std::string TextOf(const NodeAddress& address);
  Peer* PeerOf(uint64_t node);
  const Peer* PeerOf(uint64_t node) const;
  std::optional<NodeAddress> AddressOf(uint64_t node) const;
  std::string VersionOf(uint64_t node) const;
  uint32_t PriorityOf(uint64_t node) const;
  int64_t now() const;

  Replication& owner_;
  Store& store_;
  SetStore member_;
  std::vector<std::unique_ptr<Peer>> peers_;  // but for this node
  std::vector<std::unique_ptr<InLink>> in_links_;
  std::vector<std::unique_ptr<InLink>> dropped_;
  std::string hindrance_;  // why the set is not founded though nodes answer; empty: nothing
  bool was_open_{false};
  uint64_t leader_{0};
  int64_t leaderless_since_{0};  // monotonic; 0: there is a leader
  int64_t hello_micros_{0};
  FailoverState failover_{FailoverState::kNone};
  uint64_t failover_to_{0};
  int64_t failover_deadline_{0};
  bool has_room_{true};
  int64_t full_retry_micros_{0};
  std::vector<std::unique_ptr<SnapshotServe>> serves_;
  std::unique_ptr<SnapshotFetch> fetch_;
  std::unique_ptr<MemberFile> member_file_;  // null: nothing is kept
  std::unique_ptr<TieFile> tie_file_;        // likewise
  int64_t held_until_micros_{0};
  int64_t held_told_micros_{0};
  bool fetch_failed_{false};              // it could not begin
  bool installs_{false};                  // a worker makes the copy durable
  std::optional<SnapshotOffer> restart_;  // a witness's log is to go on behind it
  int64_t aside_micros_{0};
  RunningOrder order_;
  std::vector<AskedOrder> asked_orders_;
  std::deque<std::pair<uint64_t, Status>> order_results_;
  uint64_t order_next_{1};
  uint32_t wanted_level_{0};
  std::vector<uint64_t> removed_;  // by this leader: they do not come back by themselves

  // set_node_reads.cc. As a leader: who has asked, and when.
  struct AskedRead {
    uint64_t node;
    uint64_t ticket;
    int64_t micros;
    Lsn commit;
  };
  static constexpr size_t kAskedMax{1000};
  std::deque<AskedRead> asked_reads_;
  // As a follower. Tickets of this process: from read_first_ on, up to below read_next_.
  struct ReadAnswer {
    uint64_t ticket;
    Lsn commit;
  };
  uint64_t read_first_{0};
  uint64_t read_next_{0};
  uint64_t read_ready_{0};
  Lsn shown_;  // when commands were last woken for it
  bool read_wanted_{false};
  int64_t read_sent_micros_{0};
  std::deque<ReadAnswer> read_answers_;  // not applied so far yet
};

}  // namespace cellar
