// Simulation: a replica set in one process, over one simulated clock, one simulated network and one
// FaultyFileSystem a node. Everything follows from a seed.
//
//   node = ReplicaSet (the real one, over libraft's core)
//        + SimLog: the log in its real format, real recovery of it, real identity file
//        + a small state machine: rows that are overwritten, and a hash over all that was applied
//
// What happens to it: frames are lost, delayed, cut off one way or both, long ones take their time;
// processes are killed, with or without what was not synced; clocks start anywhere and run up to
// 2 % apart; nodes are paused; disks take their time or refuse to save a vote; leadership is handed
// over; snapshots are taken, fetched, given up; members come and go, get and lose their votes,
// move; disks are lost for good, or come back as an older copy, whole or in part; frames are
// damaged in ways that their checksums do not tell. Some nodes may be witnesses, which have no
// state
// machine.
//
// What must hold, after each step: one leader a term; what one node takes for committed every other
// one does, for ever; the state at a commit is the same everywhere; what was acknowledged is
// committed; a read that a leader lets out shows all that was acknowledged before it began. At the
// end, when all is healed: somebody leads, all members agree, everything acknowledged is there.
//
// Faults leave out one rule each; the simulation has to find what follows.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/hash.h"
#include "base/random.h"
#include "cellar/clock.h"
#include "replica/links/identity_file.h"
#include "replica/set/member_file.h"
#include "replica/set/replica_set.h"
#include "store/log/log_replay.h"
#include "store/log/log_stream.h"
#include "tests/store/faulty_file_system.h"

namespace cellar {

// What the nodes' own side leaves out, beside ReplicaSetFaults.
struct SimFaults {
  ReplicaSetFaults set;
  bool no_rollback{false};  // voided records stay applied
  bool replies_before_commit{false};
  bool vote_not_synced{false};
  bool wiped_node_votes{false};  // a node without a disk comes back as who it was
  bool early_snapshot{false};    // one of state that is not committed
  bool witness_offers{false};    // a snapshot, which has no state
  bool witness_stays{false};     // and leads on
  bool trusts_copies{false};     // who comes back as one takes part
  bool one_greeting{false};      // what one says is kept
};

struct SimOptions {
  uint32_t nodes{3};
  bool members{false};  // the first three are voters at first; all come and go
  // So many of the last nodes, or with `members` the third one, hold a log alone.
  uint32_t witnesses{0};
  uint64_t witness_trailing{1'000'000};  // records that it keeps behind a snapshot of its own
  bool chaos{true};
  bool awaits{false};  // all nodes ask to be told commits at once
  double loss{0.02};
  // Of a millisecond, on a link, of frames of kLongFrameBytes and more; what comes behind one
  // waits, or is lost where the link's window is full. One write of 100 is so long then. 0: no
  // limit.
  size_t link_bytes{0};
  // A node comes back with its directory, or its log, or its identity alone, as it was before.
  bool copies{false};
  // Of frames, as many are damaged and have right checksums. Then nothing is promised but that the
  // set goes on; a node whose records contradict the others' is emptied.
  double damage{0};
  // Frames come from elsewhere, too (forgeries.h), and may be refused.
  bool forged{false};
  int64_t micros{60'000'000};
  SimFaults faults;
  bool trace{false};
};

struct SimStats {
  uint64_t acknowledged{0}, committed{0}, elections{0}, voids{0}, reloads{0}, installs{0},
      installs_failed{0}, snapshots{0}, reads{0}, crashes{0}, power_losses{0}, cuts{0}, pauses{0},
      long_frames{0}, transfers{0}, asides{0}, changes{0}, wipes{0}, votes_unsaved{0},
      torn_tails{0}, frames{0}, damaged{0}, older{0}, refused{0}, copies_accepted{0},
      contradicted{0}, links_closed{0};
};

// What a schedule ends with when something does not hold.
struct Violation {
  std::string what;
};

class Simulation;

// The state machine: rows are overwritten; `hash` is over all payloads in order.
class SimMachine final : public StateMachine {
 public:
  Status Apply(std::string_view mutation) override {
    hash = Hash64(mutation, hash);
    return Status::Ok();
  }
  StateSnapshot TakeSnapshot() override { return {}; }
  Status BeginLoad(std::string_view) override { return Status::Ok(); }
  BTree* TreeForLoad(uint64_t) override { return nullptr; }
  std::vector<uint64_t> TreesForLoad() const override { return {}; }
  Status FinishLoad() override { return Status::Ok(); }
  Status FinishSalvage(const std::vector<LoadGap>&, std::vector<std::string>*) override {
    return Status::Ok();
  }
  void Reset() override { hash = 1; }
  std::string Describe(std::string_view mutation) override { return std::string(mutation); }

  uint64_t hash{1};
};

struct SimSnapshot {
  Lsn lsn;
  uint64_t hash{1};
  int64_t commit_micros{0};
  std::string members;
};

// A clock that began anywhere and runs a little fast or slow.
class SimClock final : public Clock {
 public:
  SimClock(const int64_t* now, double rate, int64_t offset)
      : now_(now), rate_(rate), offset_(offset) {}
  int64_t WallMicros() override { return MonotonicMicros(); }
  int64_t MonotonicMicros() override {
    return static_cast<int64_t>(static_cast<double>(*now_) * rate_) + offset_;
  }
  int64_t ToGlobal(int64_t local) const {
    return static_cast<int64_t>(static_cast<double>(local - offset_) / rate_) + 1;
  }

 private:
  const int64_t* now_;
  double rate_;
  int64_t offset_;
};

// The log of one node: a file of real records, named with its snapshot by a small manifest that is
// replaced as a whole. Writing is at once, syncing takes the simulated disk's time.
class SimLog {
 public:
  struct Entry {
    RecordHead head;
    std::string payload;
  };

  explicit SimLog(FaultyFileSystem* disk) : disk_(disk) {}

  // Reads what the disk holds. The machine gets all that is known to be committed.
  void Recover(SimMachine* machine, EntryLog* known, Lsn* committed, SimStats* stats);
  // Replaces everything: a snapshot, and retained records from `first` on (none if behind the
  // last).
  void Replace(const SimSnapshot& snapshot, uint64_t first);
  void Append(const RecordHead& head, std::string_view payload);
  void MarkCommit(Lsn lsn);
  void Sync() {
    if (file_) CheckOk(file_->Sync());
  }

  Lsn last() const { return last_; }
  Lsn durable_claim;
  const SimSnapshot& snapshot() const { return snapshot_; }
  std::map<uint64_t, Entry>& entries() { return entries_; }
  const Entry* Find(uint64_t index) const {
    const auto it = entries_.find(index);
    return it == entries_.end() ? nullptr : &it->second;
  }
  int64_t last_commit_micros() const {
    return entries_.empty() ? snapshot_.commit_micros
                            : entries_.rbegin()->second.head.commit_micros;
  }

 private:
  static void CheckOk(const Status& status) {
    if (!status.ok()) throw Violation{"the simulated disk failed: " + std::string(status.text())};
  }
  void WriteFile(const std::string& path, std::string_view bytes);
  void AppendBytes(const RecordHead& head, std::string_view payload);
  void NewLogFile(uint64_t number, Lsn after, int64_t after_micros);

  FaultyFileSystem* const disk_;
  uint64_t number_{0};
  std::unique_ptr<WritableFile> file_;
  uint64_t end_{0};
  uint64_t chain_{kChainStart};
  Lsn last_;  // in the order of writing
  SimSnapshot snapshot_;
  std::map<uint64_t, Entry> entries_;  // in force
};

class SimNode final : public ReplicaSetHost {
 public:
  SimNode(Simulation& sim, uint32_t slot, double rate, int64_t offset);

  // --- ReplicaSetHost
  Status SaveVote(uint32_t term, uint64_t vote) override;
  bool HasRoom(size_t) override { return !disk_full; }
  void AppendEntry(const LogRecord& record) override;
  void AppendOwn(RecordKind kind, uint32_t term, std::string_view payload) override;
  void OnCommitted(Lsn lsn) override;
  Lsn applied() const override { return set->log().At(applied_index); }
  std::optional<Piece> Records(Lsn after, Lsn last, size_t bytes_max) override;
  void Send(uint64_t node, std::string frame) override;
  bool IsSendingLong(uint64_t node) override;
  std::optional<SnapshotOffer> OfferSnapshot(Lsn lsn) override;
  void FetchSnapshot(uint64_t node, const SnapshotOffer& offer) override;
  void OnRoleChanged() override;
  void OnBroken(std::string_view why) override;
  void OnContradicted(std::string_view why) override;

  // --- the process
  void Start();
  void Crash(bool power_loss);
  void Wipe();
  // What follows each event: the disk begins to sync, replies leave, the timer is set.
  void Touch();
  void Receive(const std::string& bytes, uint32_t source = 0, uint64_t sender = 0);
  // Some of the frame, which is not whole yet.
  void ReceiveSome(const std::string& bytes);
  void OnTimer(uint64_t generation);

  // --- what was acknowledged (set_past.h)
  void BeginPast(bool fresh, const Lsn& last);
  void OnHello(const Frame& frame, uint32_t source, uint64_t sender);
  void Greet(uint32_t to);
  void Tick(uint64_t process);
  void JudgePast();
  void Refuse(const std::string& why);
  // The node is down: what its disk holds, and what it held then, in the place of that.
  void TakeCopy();
  void ReturnAs(uint64_t kind);

  // --- load and orders
  void Write(uint64_t count, size_t more_bytes = 0);
  void Read();
  void TakeSnapshot();
  void MaybeInstallSnapshot();
  void Transfer();
  // A witness that leads hands over; where there are any nobody hands over to one.
  void TransferToData();
  void ChangeMembers();
  // Another vote or address for one of them. False: none fits.
  bool ChangeKind(SetMembers* members, size_t voters);

  bool up() const { return set != nullptr; }
  bool leads() const { return up() && set->leads(); }
  bool paused() const;
  bool is_witness() const;

  Simulation& sim;
  const uint32_t slot;
  uint64_t id;
  SimClock clock;
  FaultyFileSystem disk;
  bool disk_full{false};
  bool was_started{false};
  bool refused{false};
  bool older{false};  // it has come back as a copy, and nothing is said of it yet
  uint64_t boot{1};
  std::unique_ptr<MemberFile> member_file;
  std::unique_ptr<TieFile> tie_file;
  std::map<uint32_t, uint64_t> greeted;  // by slot: which process has said hello
  std::map<std::string, std::string> copy;
  uint64_t copy_id{0};
  bool copy_runs{false};  // it was taken of a running process
  int64_t patient_until{0};
  uint64_t incarnation{0};
  int64_t paused_until{0};

  std::unique_ptr<IdentityFile> identity_file;
  Identity identity;  // as in memory; differs from the file only under vote_not_synced
  std::unique_ptr<SimLog> log;
  std::unique_ptr<SimMachine> machine;
  uint64_t applied_index{0};
  std::map<uint64_t, uint64_t> hash_at;  // after each record applied and not yet committed
  uint64_t committed_hash{1};            // at the commit
  uint64_t committed_index{0};
  Lsn mark;
  int64_t mark_micros{0};
  std::unique_ptr<ReplicaSet> set;

  bool syncing{false};
  uint64_t durable{0};
  int64_t armed_micros{INT64_MAX};
  int64_t aside_micros{0};
  uint64_t timer_generation{0};
  std::optional<SnapshotOffer> fetching;
  uint64_t fetching_from{0};
  std::optional<SimSnapshot> taken;  // written, and waits until it is committed

  struct PendingRead {
    uint64_t index;
    uint64_t floor;
    int64_t since;
  };
  std::deque<uint64_t> unacknowledged;
  std::deque<PendingRead> reads;
  std::string wire;  // of Records
};

class Simulation {
 public:
  explicit Simulation(SimOptions options) : options_(std::move(options)), random_(0) {}

  // One schedule. Throws Violation. Statistics add up.
  void Run(uint64_t seed);
  // For schedules by hand: only makes the nodes and starts them.
  void Begin(uint64_t seed);
  void RunUntil(int64_t micros);
  void At(int64_t micros, std::function<void()> run) {
    events_.push({std::max(micros, now_), sequence_++, std::move(run)});
  }
  void After(int64_t micros, std::function<void()> run) { At(now_ + micros, std::move(run)); }

  [[noreturn]] void Fail(const std::string& what);
  std::string Describe() const;
  int64_t now() const { return now_; }
  Random& random() { return random_; }
  bool Chance(double p) { return random_.Fraction() < p; }
  int64_t Below(int64_t bound) {
    return bound <= 0 ? 0 : static_cast<int64_t>(random_.Below(static_cast<uint64_t>(bound)));
  }
  SimNode& node(uint32_t slot) { return *nodes_[slot]; }
  std::vector<std::unique_ptr<SimNode>>& nodes() { return nodes_; }
  SimNode* Leader();  // that is open and has data; null if none is
  bool IsWitness(uint32_t slot) const {
    if (options_.members) return options_.witnesses > 0 && slot == 2;
    return slot + options_.witnesses >= options_.nodes;
  }
  static uint32_t SlotOf(uint64_t id) { return static_cast<uint32_t>(id % 100 - 1); }
  // For schedules by hand: only frames arrive for which this is true (empty: all).
  std::function<bool(const SimNode& from, const SimNode& to, const Frame& frame)> passes;
  // Runs until `holds`, looked at each 200 us; false after `micros`.
  bool WaitFor(int64_t micros, const std::function<bool()>& holds);
  void Cut(uint32_t from, uint32_t to, bool cut) { cut_[from][to] = cut; }
  void CutOff(uint32_t slot, bool cut) {
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (i != slot) cut_[slot][i] = cut_[i][slot] = cut;
  }
  // The last word of a schedule: all is healed and must come together.
  void Heal();
  void CheckEnd();

  // --- what nodes tell
  void OnLeader(SimNode& node);
  void OnCommit(SimNode& node, uint64_t index, const SimLog::Entry& entry);
  void OnState(SimNode& node, uint64_t index, uint64_t hash);
  void OnAcknowledged(uint64_t index) { max_acknowledged = std::max(max_acknowledged, index); }
  void Post(SimNode& from, uint64_t to, std::string frame);
  // With a long frame, or one that has come so lately that it may not have been answered.
  bool IsBusy(uint32_t source, uint32_t slot) const {
    constexpr int64_t kAnswerMicros{300'000};
    const int64_t until = busy_until_[source][slot];
    return until != 0 && now_ < until + kAnswerMicros;
  }
  uint64_t NewId(uint32_t slot) { return ++id_next_ * 100 + slot + 1; }

  const SimOptions& options() const { return options_; }
  SimStats stats;
  uint64_t max_acknowledged{0};
  std::map<uint64_t, SimSnapshot> images;  // pinned, by the number of their offer
  std::set<uint64_t> lost_ids;             // of disks that are gone

 private:
  // Puts a long frame on the link and says to whom it goes, time and again, that it comes. When it
  // will be there.
  int64_t Carry(uint32_t source, uint32_t slot, const std::shared_ptr<std::string>& bytes);

  struct Event {
    int64_t at;
    uint64_t sequence;
    std::function<void()> run;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };
  struct Committed {
    uint32_t term;
    uint64_t hash;
  };

  void Load();
  void Chaos();
  void ChaosMembers();
  void CrashOne();
  void CutSome();
  void PauseSome();
  void MaybeWipe();
  void MaybeReturn(SimNode& node);
  bool AnyOdd() const;
  void Damage(std::string* frame);
  void CheckProgress(uint64_t before);

  const SimOptions options_;
  Random random_;
  uint64_t seed_{0};
  int64_t now_{0};
  int64_t end_{0};
  uint64_t sequence_{0};
  uint64_t id_next_{0};
  bool calm_{false};
  bool healed_{false};
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::vector<bool>> cut_;
  std::vector<std::vector<int64_t>> last_arrival_;  // of each link
  std::vector<std::vector<int64_t>> busy_until_;    // likewise, with a long frame
  std::map<uint64_t, Committed> committed_;
  std::map<uint64_t, uint64_t> hash_at_;
  std::map<uint32_t, uint64_t> leader_of_term_;
  uint64_t max_committed_{0};
};

}  // namespace cellar
