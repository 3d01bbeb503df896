// ReplicaSet: one member of a set of nodes that agree on one log (Raft; REPLICA SETS in
// cellar-replication(7)). libraft's core decides (raft_core.h); what is here gives it what it needs
// and does what it says:
//
//            frames  --> OnFrame  -->  core  --> SaveVote      before anything of the step is sent
//   disk is done     --> OnDurable     step  --> AppendEntry   what a follower is given
//   own records      --> OnAppended          --> OnCommitted   they are for ever: apply, release
//   time             --> OnTimer             --> Send          frames
//   a snapshot       --> OnSnapshotTaken     --> FetchSnapshot a manifest: the bulk goes beside
//
// One log: entry i of term t is the record numbered (t, i). A leader's records are applied to the
// trees at once and released when they are committed; a follower applies committed ones only.
//
// What the core of libraft 0.22 leaves to its user, each a case of tests/replica/simulation.cc:
//   - links are FIFO; who sends anew after a cut begins with a new link, and no frame of the old one
//     comes after it
//   - entries that an own snapshot holds are cut off what a leader sends: it may remember less
//   - a member change stands first in what a step is given: more are divided
//   - a leader commits a barrier of its term before all else
//   - a pre-vote that is refused for a lower term tells the higher one
//   - a node votes also if its own log does not show it as a voter (yet, or any more)
//   - who does not vote forgets a leader that is silent: the core lets it refuse all others for ever
//   - members stand in the order of their ids: one that changes its kind keeps its place
//   - a sole voter begins a new term at each start
//   - no vote in the first election timeout after a start: what was promised before it is forgotten
//   - while a snapshot comes, frames of the leader are signs of life only: the core would refuse what
//     it has acknowledged before, and its leader then sends nothing any more
//   - an install is given up by starting the core anew from the log
//   - a leader that takes a member to have more than it has never sends it what it lacks: it gives
//     up its term, since only a new leader asks anew
//   - of a term there is one leader: frames of a second one, or to the first, are damaged; the core
//     takes them for impossible. What else a frame may say, and is believed of it: frame_sense.h
//   - a frame that the core fails at is as good as never received: it begins anew from the log
//   - while a long record comes nothing else does: its bytes are signs of life of the leader, who
//     does not send it again as long as the link stands
//
// No sockets, no threads; disk, network and time are the host's, so that a run replays from its
// seed. The loop's thread calls everything; a host must not call back from inside its own methods,
// but for applied(), Records and getters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "replica/links/frame.h"
#include "replica/set/entry_log.h"
#include "replica/set/frame_sense.h"
#include "replica/set/raft_core.h"
#include "replica/set/read_lease.h"
#include "replica/set/set_members.h"
#include "replica/set/set_message.h"
#include "replica/set/set_past.h"

namespace cellar {

enum class SetRole : uint8_t { kFollower, kCandidate, kLeader };

struct ReplicaSetOptions {
  uint64_t node{0};
  int64_t election_micros{300'000};
  int64_t heartbeat_micros{30'000};
  // After which a leader offers a snapshot again.
  int64_t install_micros{10'000'000};
  bool lease{true};
  uint32_t inflight_entries_max{4096};
  size_t frame_bytes_max{kFrameRecordsMax};
  uint64_t seed{0};
};

// Rules that tests leave out, one at a time, to see that the simulation finds what follows.
struct ReplicaSetFaults {
  bool counts_old_terms{false};
  bool long_lease{false};
  bool no_divide{false};
  bool no_barrier{false};
  bool no_vote_pause{false};
  bool no_told_term{false};
  bool no_vote_of_strangers{false};
  bool no_forgotten_leader{false};
  bool no_cut{false};
  bool no_order{false};
  bool no_new_term{false};
  bool refuses_while_installing{false};
  bool deaf_to_arriving{false};  // bytes of a frame are no sign of life
  bool repeats_long{false};      // what is on its way is sent again
  bool no_quorum_check{false};   // a change may leave no majority
  bool changes_together{false};  // several at once, and before the last one is committed
  bool any_term{false};          // is followed at once
  bool keeps_match{false};       // of a member that has less
  // What is said once is believed (frame_sense.h).
  bool one_leader{false};
  bool one_contradiction{false};
  bool one_offer{false};
  bool one_time{false};
  bool untold_time{false};  // before a transfer
  bool any_ack{false};      // also of what was not sent, or is another record here
  bool any_echo{false};     // also of what was not said yet
};

// What a member does its work with; the server's, or a simulation's.
class ReplicaSetHost {
 public:
  virtual ~ReplicaSetHost() = default;

  // Durable when it returns OK. After an error the old one or the new one is.
  virtual Status SaveVote(uint32_t term, uint64_t vote) = 0;
  // Whether the log takes records of so many bytes; nothing changes.
  virtual bool HasRoom(size_t bytes) = 0;
  // Adds a leader's record to the log. One whose seq is not above the last one's voids all from
  // there on, whatever its epoch; if some of these had been applied, the state is brought back to
  // what is committed.
  virtual void AppendEntry(const LogRecord& record) = 0;
  // Adds a record of this node's own, which leads: a barrier or members. Its number is (term,
  // last + 1).
  virtual void AppendOwn(RecordKind kind, uint32_t term, std::string_view payload) = 0;
  // All records up to `lsn` are committed. Applies what of them has not been.
  virtual void OnCommitted(Lsn lsn) = 0;
  // The newest record that has been applied; ahead of the commit on a leader.
  virtual Lsn applied() const = 0;
  // Records behind `after` up to `last` at most, in wire form, about `bytes_max` bytes, at least
  // one record. Nullopt: they are not at hand now (and will be a little later, or never).
  struct Piece {
    std::string_view wire;
    Lsn last;
  };
  virtual std::optional<Piece> Records(Lsn after, Lsn last, size_t bytes_max) = 0;
  // The link keeps the order, or ends.
  virtual void Send(uint64_t node, std::string frame) = 0;
  // Whether a frame of kLongFrameBytes or more may be on its way there, by the link that stands.
  virtual bool IsSendingLong(uint64_t node) = 0;
  // Whether so much waits for that node that a frame would be dropped: then none need be made.
  virtual bool IsFull(uint64_t /*node*/) { return false; }
  // The newest snapshot, numbered as OnSnapshotTaken has said; its file stays for a while.
  virtual std::optional<SnapshotOffer> OfferSnapshot(Lsn lsn) = 0;
  // Fetches it from `node` and puts it in the place of state and log, then OnInstalled; or
  // OnInstallFailed, all being as it was.
  virtual void FetchSnapshot(uint64_t node, const SnapshotOffer& offer) = 0;
  // Role, leader, openness or members have changed.
  virtual void OnRoleChanged() = 0;
  // What cannot be has been seen: the node takes no part any more. `why` is for the log.
  virtual void OnBroken(std::string_view why) = 0;
  // What is committed here is not what the set has: either this node's files are of another
  // history, or the set has lost some of its own. No start mends that.
  virtual void OnContradicted(std::string_view why) = 0;
};

class ReplicaSet {
 public:
  ReplicaSet(ReplicaSetHost& host, Clock& clock, ReplicaSetOptions options);
  ~ReplicaSet();
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  void SetFaults(const ReplicaSetFaults& faults) { faults_ = faults; }

  // Takes part, as what the disk says: term and vote of the identity file; the log, all of it
  // durable; and up to where it is known to be committed. An empty log has term 0 and waits for a
  // leader.
  // With kHeld it waits for Release: what stands in the log may be less than this node has
  // acknowledged (set_past.h).
  enum class Begins : uint8_t { kAtOnce, kHeld };
  void Start(uint32_t term, uint64_t vote, EntryLog log, Lsn committed,
             Begins begins = Begins::kAtOnce);
  // Ends that. Of a copy, the newest term that others know: it votes for nobody in that. Else 0.
  void Release(uint32_t newest_term);
  bool held() const { return held_; }
  SetPast& past() { return past_; }
  const SetPast& past() const { return past_; }

  // --- events
  // A frame of another member. kCorruption: the link is no good, and has to be closed.
  Status OnFrame(const Frame& frame);
  // Bytes of a frame keep coming that is not whole yet, of which this is the head. Costs a step:
  // the host says it when a heartbeat would be due.
  void OnArriving(const FrameHead& head);
  // The host has appended commands up to `last`, numbered in this term. REQUIRES: may_append().
  void OnAppended(Lsn last);
  // Of all records that were appended since Start (log().appended() counts them), so many are on
  // the disk.
  void OnDurable(uint64_t appended);
  // The next OnTimer is due then (monotonic).
  int64_t timer_micros() const { return timer_micros_; }
  void OnTimer();
  // A snapshot of its own is durable and named; records before `first` have gone from the log.
  // REQUIRES: lsn is committed.
  void OnSnapshotTaken(Lsn lsn, uint64_t first);
  void OnInstalled();
  void OnInstallFailed();
  // Records have been applied: applied() is further.
  void OnApplied() { OpenIfDue(); }

  // --- orders to the leader
  // Hands over to `to`, or to whom has most if it is 0. From then on nothing may be appended until
  // transferring() is false: then it has succeeded if this node leads no more.
  Status Transfer(uint64_t to);
  bool transferring() const { return transferring_; }
  // Writes a barrier: once it is committed, a majority has said that this node led after that.
  // REQUIRES: may_append().
  void Confirm();
  // The next members: one is added, removed or changed in its kind, or they are found elsewhere.
  // Their index is filled in. kTryAgain while another change is not committed; kErr if it would
  // take the leader's own vote, or leave no majority that is there.
  Status ChangeMembers(SetMembers members);
  // Whether those of them that vote and have the log, and have answered what was sent at
  // `since_micros` or later, are a majority.
  Status CheckQuorum(const SetMembers& members, int64_t since_micros) const;
  // What has been sent before is too old to say that a member is there.
  int64_t heard_since_micros() const { return now() - options_.election_micros + 1; }

  // --- figures
  SetRole role() const;
  bool leads() const { return lead_term_ != 0; }
  // The leader's barrier is committed and all before it applied.
  bool open() const { return open_; }
  bool may_append() const { return open_ && !transferring_; }
  uint32_t term() const { return term_; }
  uint64_t leader() const;  // 0: none is known
  Lsn commit() const { return commit_; }
  const EntryLog& log() const { return log_; }
  // Of log().appended(), so many are known to be durable.
  uint64_t durable() const { return durable_; }
  // REQUIRES: installing().
  const SnapshotOffer& incoming() const { return incoming_; }
  const SetMembers& members() const { return log_.members(); }
  bool members_committed() const;
  // Whether the core has the members that the log names last: a check for tests. Costs O(members).
  bool MembersAgree() const;
  bool installing() const { return installing_; }
  // It takes no part now: a vote could not be saved, an install was given up, or it is broken.
  bool stopped() const { return core_ == nullptr; }
  // Whether replies may leave that depend on no more than what is committed: this node leads and
  // holds its lease, or a majority has answered what it sent at `since_micros` (when the oldest of
  // these replies was made) or later.
  bool MayRelease(int64_t since_micros) const;
  // Until when the lease holds (monotonic); 0: there is none.
  int64_t lease_micros() const;
  // Nor will there be one in this term.
  bool lease_lost() const { return lease_lost_; }
  // Frames of which something could not be.
  uint64_t frames_refused() const { return frames_refused_; }
  // Of a leader: the last record that `node` has on its disk.
  Lsn MatchOf(uint64_t node) const;
  // When `node` answered last (monotonic), as the leader knows it; 0: never.
  int64_t heard_micros(uint64_t node) const { return lease_.EchoOf(node); }
  bool has_room(uint64_t node) const;
  // Readers here wait for what is committed: says so to who leads, from the next frame on.
  void AwaitCommits(bool awaits) { awaits_commits_ = awaits; }
  // When a leader was heard last (monotonic), as a follower knows it; 0: never.
  int64_t heard_leader_micros() const { return heard_micros_; }
  // The latest time by which a leader has judged what is due. One that leads tells the others, who
  // go on from there, whatever their own clocks show.
  int64_t retention_micros() const { return retention_micros_; }
  void NoteRetention(int64_t micros) { retention_micros_ = std::max(retention_micros_, micros); }

 private:
  // One step of the core, and what follows from it. Returns the core's code.
  template <typename Step>
  int Run(const SetMessage* message, Step step);
  // Run of a step that cannot fail.
  template <typename Step>
  void RunSafely(const SetMessage* message, Step step);
  void Carry(const RaftUpdate& update, const SetMessage* message);
  bool SaveVote();
  void TakeEntries(const RaftUpdate& update, const SetMessage* message);
  void NoteRole();
  void NoteCommit();
  uint64_t CommitIndex() const;
  void SendMessages(uint32_t count);
  void SendOne(RaftMessage raft);
  void SendAppend(RaftMessage raft);
  uint64_t& LongSentTo(uint64_t node);
  void SendInstall(const RaftMessage& raft);
  void TellCommits();
  void TellTime(uint64_t node);
  void SendHeartbeat(uint64_t node, Lsn match);
  size_t SendFrame(const SetMessage& message);
  bool MendVote(RaftMessage* raft);
  void OpenIfDue();
  void SubmitBarrier();
  void ConfirmMembers();
  void SetTimer();
  void StartCore();
  void Stop();  // ends the core
  void NoteOwn();
  void NotePeer(const RaftMessage& result);
  void StartAgain();  // once all of the log is durable
  void BeginAnew();   // ends the core, and starts it again
  void StepDown();
  void Break(std::string_view why);
  void Contradict(std::string_view why);

  Status Receive(const Frame& frame);
  Status CheckSense(const Frame& frame, const SetMessage& message) const;
  Status CheckRecords(const SetMessage& message);
  void StepTowards(uint64_t peer, uint64_t term);
  void ReceiveResult(const SetMessage& message);
  void NoteSender(const Frame& frame, const SetMessage& message);
  void ReceiveVote(const SetMessage& message);
  Status ReceiveAppend(SetMessage* message);
  void CutBehindSnapshot(SetMessage* message) const;
  void MakeSignOfLife(SetMessage* message, Lsn previous) const;
  void StepAppend(const SetMessage& message, size_t begin, size_t end);
  Status ReceiveInstall(SetMessage* message);
  void StepReceive(const SetMessage& message);
  void AddCoreEntry(uint32_t term, RecordKind kind, const SetMembers* members);
  RaftMembers CoreForm(const SetMembers& members);
  std::vector<RaftMember> CoreMembers() const;
  int64_t MajorityEcho() const;
  int64_t now() const { return clock_.MonotonicMicros(); }
  uint64_t now_ms() const { return static_cast<uint64_t>(now()) / 1000; }

  ReplicaSetHost& host_;
  Clock& clock_;
  const ReplicaSetOptions options_;
  ReplicaSetFaults faults_;
  Random random_;
  RaftCore* core_{nullptr};  // null before Start, and while it waits to be started again
  bool waits_to_start_{false};
  bool held_{false};
  SetPast past_;
  FrameSense sense_;
  uint64_t frames_refused_{0};
  Status step_fault_;  // of the frame at hand, in the core
  int64_t timer_micros_{0};
  int64_t started_micros_{0};

  EntryLog log_;
  uint32_t term_{0};  // as saved
  uint64_t vote_{0};
  Lsn commit_;
  uint64_t durable_{0};  // of log_.appended()
  bool installing_{false};
  SnapshotOffer incoming_;

  uint32_t lead_term_{0};  // 0: another one leads, or nobody
  uint64_t open_index_{0};
  bool open_{false};
  bool transferring_{false};
  bool lease_lost_{false};  // in this term: a transfer has failed
  ReadLease lease_;
  // What the others say of themselves, and up to where they have been told what is committed.
  struct Other {
    uint64_t node{0};
    bool room{true};
    bool awaits{false};
    uint64_t told{0};
  };
  std::vector<Other> others_;
  bool awaits_commits_{false};
  uint8_t append_version_{0};  // of what the core sends

  // As a follower: what the newest frame of the leader of `heard_term_` said.
  uint32_t heard_term_{0};
  uint64_t heard_leader_{0};  // of that term
  bool heard_again_{false};   // more than once: one frame makes no leader of whom it names
  int64_t heard_sent_micros_{0};
  int64_t heard_micros_{0};  // when it came
  uint64_t known_leader_{0};
  int64_t retention_micros_{0};
  // As a leader: of each node, the last record of the last long frame that was sent there.
  std::vector<std::pair<uint64_t, uint64_t>> long_sent_;
  // Likewise, the members that refuse what they are taken to have, and since when (monotonic).
  std::vector<std::pair<uint64_t, int64_t>> lacking_;

  // What is being answered is of a term that is over: the core's answer says nothing of the log.
  bool asked_is_old_{false};
  // Of the vote that is being answered.
  const RaftMessage* asked_{nullptr};
  bool asked_had_leader_{false};
  std::vector<RaftEntry> entries_;              // scratch
  std::vector<std::vector<RaftMember>> lists_;  // likewise
};

}  // namespace cellar
