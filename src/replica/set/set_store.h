// SetStore: a replica set's member over the store: what ReplicaSet wants done is done to the log,
// the state and the tail in memory, and what becomes of the log is told to ReplicaSet.
//
//   commands -> Store -> Journal ----------- Submit --> ReplicaSet   what this node, leading, writes
//   frames   -------------------------------- OnFrame -> ReplicaSet -> AppendEntry -> Store
//   the disk -> Journal::released_appended -- Advance -> OnDurable
//                                            OnCommitted -> Advance: ApplyCommitted, in slices
//                                            Records <- TailCache, or files of the log (a worker)
//
// A turn: Submit before each step of ReplicaSet, so that what was written before it stands before
// it in the log; Advance at the end. Where a record voids others that had been applied, Advance
// makes the state anew from the files.
//
// Up to where replies may leave is released() (REPLICA SETS in cellar-replication(7)). What a reply
// depends on must be `floor()` at least: without a lease it is a record that is yet to be written,
// by which a majority says that this node still leads.
//
// No sockets and no threads; what remains to be done by who has them is SetStoreHost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/os/file.h"
#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "replica/links/tail_cache.h"
#include "replica/set/replica_set.h"
#include "store/log/log_entry_reader.h"
#include "store/store.h"

namespace cellar {

class SetStoreHost {
 public:
  virtual ~SetStoreHost() = default;
  // As ReplicaSetHost says.
  virtual Status SaveVote(uint32_t term, uint64_t vote) = 0;
  virtual void Send(uint64_t node, std::string frame) = 0;
  virtual bool IsSendingLong(uint64_t node) = 0;
  // Whether so much waits for that node that a frame would be dropped: then none need be made.
  virtual bool IsFull(uint64_t /*node*/) { return false; }
  // The snapshot that the manifest names, which is `entry`, for `node`.
  virtual std::optional<SnapshotOffer> OfferSnapshot(const SnapshotEntry& entry) = 0;
  virtual void FetchSnapshot(uint64_t node, const SnapshotOffer& offer) = 0;
  virtual void OnRoleChanged() = 0;
  virtual void OnBroken(std::string_view why) = 0;
  virtual void OnContradicted(std::string_view why) = 0;
  // Runs `work` on another thread, then `done` on this one.
  virtual void RunInBackground(std::function<void()> work, std::function<void()> done) = 0;
  // Runs Store::ReloadCommitted under clients that must not see what is void.
  virtual Status ReloadStore(const std::function<Status()>& reload) = 0;
};

class SetStore final : private ReplicaSetHost {
 public:
  SetStore(SetStoreHost& host, Store& store, FileSystem& files, Clock& clock,
           const ReplicaSetOptions& options, size_t tail_bytes);
  ~SetStore() override;

  ReplicaSet& set() { return set_; }
  const ReplicaSet& set() const { return set_; }
  // Begins a set with these members (their index is filled in) and what the store holds; Start
  // follows. An error: nothing has changed, or, if it is not MISCONF, there is no store any more.
  Status Found(SetMembers members);
  // Before that: what a single server has written is applied, so that it can be looked at.
  Status ApplyOwn();
  // For JournalOptions::members.
  std::string members_payload() const;
  // Whether the log names members, so that this node is one. Before Start.
  bool is_member() const;
  // Takes part with what the log holds. kCorruption: it names members that cannot be read.
  Status Start(uint32_t term, uint64_t vote,
               ReplicaSet::Begins begins = ReplicaSet::Begins::kAtOnce);

  // What has been written since the last step is the leader's. Before each step.
  void Submit();
  // A frame, an order, a timer: steps with Submit before them.
  Status OnFrame(const Frame& frame);
  void OnArriving(const FrameHead& head);
  void OnTimer();
  Status Transfer(uint64_t to);
  Status ChangeMembers(SetMembers members);
  // At the end of a turn: what is durable is told, what is committed is applied, until the deadline
  // (monotonic). True if there is more to apply. An error: the state cannot be made, there is no
  // store any more.
  Result<bool> Advance(int64_t deadline_micros);
  // About ten times a second: commit marks, snapshots.
  void OnTick();
  // Puts the snapshot that FetchSnapshot asked for in place: `replace` changes the store's content
  // (Store::ReplaceContent) and returns what the store said, *done whether it has been done.
  void Install(const std::function<Status()>& replace);
  void InstallFailed();
  // The end: a commit mark.
  void Close();

  void AwaitCommits(bool awaits) { set_.AwaitCommits(awaits); }
  // Replies that depend on records up to here may leave.
  Lsn released() const;
  // The least that a reply to a command depends on that is carried out now.
  Lsn floor() const;
  // Replies wait that have been made with that floor: sees to it that there is such a record.
  void Confirm(Lsn floor);
  Lsn commit() const { return set_.commit(); }
  uint64_t reloads() const { return reloads_; }
  size_t tail_bytes() const { return tail_.memory_bytes(); }
  void SetTailBytes(size_t bytes) {
    tail_.SetBytesMax(is_witness() ? std::min(bytes, kWitnessTailBytes) : bytes);
  }
  void SetBacklog(uint64_t bytes);
  // Whether the log takes records of some size; not only the smallest one.
  bool has_room() const;
  bool started() const { return started_; }
  // It keeps the log and no state: what it is asked it cannot answer, and whom it leads it hands
  // over to.
  bool is_witness() const { return store_.holds_log_only(); }
  bool state_is_void() const { return store_.state_is_void(); }
  // It has begun, and has not applied yet what its log had by then: what it has told may be among
  // that. Only who leads knows how much of it is committed.
  bool is_before_its_end() const {
    return store_.applied_lsn().seq < std::min(begun_.seq, store_.last_lsn().seq);
  }
  // As a leader it has applied what is not known to be committed, and may never be.
  bool state_is_ahead() const { return store_.applied_lsn().seq > set_.commit().seq; }

 private:
  // Of log behind a snapshot that the core is told of; for each it keeps some 60 bytes. A witness
  // has no snapshot that would help who is further back.
  static constexpr uint64_t kTrailingMax{100'000};
  static constexpr uint64_t kWitnessTrailingMax{150'000};
  // A witness forgets what is behind the trailing records in steps of so many.
  static constexpr uint64_t kWitnessStep{50'000};
  // Of its tail, which is read only while it leads.
  static constexpr size_t kWitnessTailBytes{4 << 20};
  static constexpr size_t kReadBytes{4 << 20};
  static constexpr size_t kRoomBytes{256 << 10};
  static constexpr int64_t kMarkMicros{1'000'000};
  // For so long new records are turned away while a snapshot waits for the state to catch up.
  static constexpr int64_t kHoldMicros{500'000};
  // Beyond, records that wait to be applied have to be applied before more are taken.
  static constexpr uint64_t kPendingBytesMax{64 << 20};
  struct Job;
  // What a member that is further back than the tail is being sent.
  struct Behind {
    std::unique_ptr<LogEntryReader> reader;  // null while a job runs, which has it
    Lsn before;                              // `wire` begins behind it, and ends with `last`
    Lsn last;
    std::string wire;
    int64_t used_micros{0};
  };
  static constexpr size_t kBehindMax{8};

  // --- ReplicaSetHost
  Status SaveVote(uint32_t term, uint64_t vote) override { return host_.SaveVote(term, vote); }
  bool HasRoom(size_t bytes) override;
  void AppendEntry(const LogRecord& record) override;
  void AppendOwn(RecordKind kind, uint32_t term, std::string_view payload) override;
  void OnCommitted(Lsn lsn) override;
  Lsn applied() const override;
  std::optional<Piece> Records(Lsn after, Lsn last, size_t bytes_max) override;
  void Send(uint64_t node, std::string frame) override { host_.Send(node, std::move(frame)); }
  bool IsSendingLong(uint64_t node) override { return host_.IsSendingLong(node); }
  bool IsFull(uint64_t node) override { return host_.IsFull(node); }
  std::optional<SnapshotOffer> OfferSnapshot(Lsn lsn) override;
  void FetchSnapshot(uint64_t node, const SnapshotOffer& offer) override;
  void OnRoleChanged() override;
  void OnBroken(std::string_view why) override;
  void OnContradicted(std::string_view why) override;

  // The journal is another one: it is told what it must know.
  void Adopt(Lsn committed);
  void NoteDurable();
  void NoteSnapshot();
  void ShortenWitness();
  void Mark();
  Status Reload();
  void UpdateFollowing();
  void ConfirmIfDue();
  std::optional<Piece> RecordsOfFiles(Lsn after, Lsn last, size_t bytes_max);
  void ReadFiles(uint64_t slot, Lsn after, Lsn last);
  void EndReadFiles(uint64_t slot, Job* job);
  // Those of `wire` that are behind `after`, up to `last`; nullopt: none.
  static std::optional<Piece> Cut(std::string_view wire, Lsn after, Lsn last, size_t bytes_max);
  bool has_lease_mode() const {
    return options_.lease && !set_.lease_lost() && !set_.transferring();
  }

  SetStoreHost& host_;
  Store& store_;
  FileSystem& files_;
  Clock& clock_;
  const ReplicaSetOptions options_;
  const std::shared_ptr<SetStore*> self_;  // null once this is gone: for what runs elsewhere
  TailCache tail_;
  ReplicaSet set_;
  LogShape shape_;  // until Start
  std::string founding_;
  bool started_{false};
  uint64_t ahead_{0};  // of Journal::appended(): how much more it counts than set_.log()
  Lsn marked_;
  Lsn begun_;  // the end of the log at Start, until that is applied
  int64_t mark_micros_{0};
  int64_t hold_until_micros_{0};
  Lsn wanted_;  // of Confirm
  uint64_t reloads_{0};
  uint64_t backlog_bytes_{0};
  std::map<uint64_t, Behind> behind_;
  uint64_t slot_next_{1};
};

}  // namespace cellar
