// Upstream: what a follower has of its leader: the link, what comes over it, and what of it has
// been applied.
//
//   kNaming     a worker names the last record of the own log
//   kDialing    the connection is being made
//   kHello      AUTH and PEER have been sent as commands; their replies are awaited
//   kAsked      kFollow has been sent
//   kCopying    a copy comes by a link of its own (snapshot_fetch.h) into `cellar-sync.tmp` and into
//               memory, beside what is there
//   kInstalling a worker makes it durable; then it takes the place of the store's content
//   kStreaming  records come, are applied up to the leader's commit, and are acknowledged
//   kPausing    something failed: the next attempt comes a little later
//
// Records that have come wait in memory until they are applied, in slices; beyond kQueueBytesMax
// the link is not read, unless it is the leader's commit that they wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "replica/greeting.h"
#include "replica/replication.h"
#include "replica/snapshot_fetch.h"

namespace cellar {

class Upstream final : public PeerHandler {
 public:
  Upstream(Replication& owner, uint64_t id, NodeAddress leader);
  ~Upstream() override;

  // Begins; REQUIRES: the store is there.
  void Begin();
  // The own node leads from now on: the one that may have handed over to it gets to know.
  void TellThatItLeads();
  // Ends the link for good; what was received and may be applied is applied.
  void End();

  void OnConnected(PeerLink* link) override;
  void OnBytes(std::string_view bytes) override;
  void OnDrained() override {}
  void OnClosed(std::string_view why) override;

  bool ApplySlice(int64_t deadline_micros);
  // Acknowledges what has become durable.
  void SendAck();
  void OnTick();

  const NodeAddress& leader() const { return leader_; }
  // Its id, since it has greeted for the first time; 0 before.
  uint64_t leader_node() const { return greeting_.node(); }
  // A copy is coming, and is not in place yet.
  bool copies() const { return state_ == State::kCopying || state_ == State::kInstalling; }
  SnapshotFetch* fetch() { return fetch_.get(); }
  UpstreamFigures Figures() const;
  size_t memory_bytes() const;

 private:
  static constexpr size_t kQueueBytesMax{32 << 20};
  static constexpr int64_t kRetryMicros{250'000};
  // A record that cannot be applied cannot be so behind the next copy either, as a rule: then the
  // leader is not asked for one copy after the other.
  static constexpr int64_t kStuckMicros{1'000'000};
  static constexpr int64_t kStuckMicrosMax{60'000'000};
  // An attempt to dial is given up after so long, the next ones later and later: a lost packet is
  // sent again by the kernel after one second, then two, then four.
  static constexpr int64_t kDialMicros{1'500'000};
  static constexpr int64_t kDialMicrosMax{12'000'000};
  // The leader beats ten times a second: a link over which nothing came for so long is dead.
  static constexpr int64_t kSilenceMicros{2'000'000};

  enum class State : uint8_t {
    kNaming,
    kDialing,
    kHello,
    kAsked,
    kCopying,
    kInstalling,
    kStreaming,
    kPausing,
  };
  struct Job;

  void NameLast();
  void Dial();
  void ReadHello(std::string_view bytes);
  void ReadAgain();
  void DropFetch();
  void OnFrame(const Frame& frame);
  void OnFull(const Frame& frame);
  void OnFrom(const Frame& frame);
  void OnLead(const Frame& frame);
  void OnRecords(const Frame& frame);
  void OnBeat(const Frame& frame);
  // Goes on with a copy: true if there is more to load now.
  bool Copy(int64_t deadline_micros);
  void Install();
  void EndInstall(Job* job);
  void BeginStreaming();
  size_t waiting_bytes() const { return queue_.size() - queue_begin_; }
  // Whether the record at the front of the queue is known not to be committed yet.
  bool AwaitsCommit() const { return awaited_ > commit_; }
  void ClearQueue();
  // Applies the records at the front of the queue. A status other than OK: the stream is no good.
  Status ApplyFront(int64_t deadline_micros);
  // Why the link is no good: logged, and tried again a little later.
  void Fail(std::string_view why);
  // The record behind the last one applied cannot be: all is to be copied anew, later and later.
  void FailToApply(std::string_view why);
  void Run(std::unique_ptr<Job> job, void (*work)(Job*), void (Upstream::*end)(Job*));
  void EndNaming(Job* job);
  void SaveDiverged(uint64_t common_seq);

  Replication& owner_;
  const uint64_t id_;
  const NodeAddress leader_;
  PeerLink* link_{nullptr};
  State state_{State::kPausing};
  bool dialling_{false};
  bool ended_{false};
  bool wants_copy_{false};  // a record could not be applied: what is here is worth nothing
  Lsn stuck_;               // the one before it; how long to wait if it is the same one again
  int64_t stuck_micros_{0};
  int64_t due_micros_{0};  // kPausing: when the next attempt comes; kDialing: when it is given up
  int64_t dial_micros_{kDialMicros};
  PeerGreeting greeting_;
  FrameReader reader_{FrameKind::kFrom, FrameKind::kFull, FrameKind::kRecords,
                      FrameKind::kBeat, FrameKind::kLead, FrameKind::kError};
  RecordName last_;
  uint64_t leader_cluster_{0};
  std::unique_ptr<SnapshotFetch> fetch_;   // kCopying, unless the whole log is the copy
  std::optional<SnapshotEntry> snapshot_;  // kInstalling: of what is to be installed
  std::string queue_;                      // records in wire form
  size_t queue_begin_{0};
  Lsn awaited_;  // the record at the front, if it was not committed when it was looked at
  bool reading_{true};
  Lsn commit_;
  Lsn leader_last_;
  Lsn sync_asked_;  // up to there the leader wants records synced at once
  Lsn sync_begun_;  // and so far that has been asked of the log
  Lsn acked_durable_;
  Lsn acked_applied_;
  int64_t ack_micros_{0};
  int64_t heard_micros_{0};
  int64_t up_micros_{0};  // when all that was committed had been applied, the last time
  int64_t down_micros_;
  int64_t leader_sent_micros_{0};
  int64_t skew_micros_{0};
  int64_t copy_begin_micros_{0};
  std::string failure_;  // the last one that was logged
  int64_t failure_micros_{0};
};

}  // namespace cellar
