// FollowerFeed: what a leader has of one follower: where it stands, and what it is sent next.
//
//   kHello      the follower has said PEER; kFollow has not come yet
//   kSearching  a worker looks for its last record in the log's files
//   kWaiting    there is no snapshot from which the log goes on: one is being written
//   kCopying    it is getting a copy, by SnapshotServe, until it says that this is in place
//   kLog        records go out: from the tail in memory, or, further back, from the files
//
// Reading files is a worker's, one piece at a time. No more than kWindowBytes wait in the link, so
// a follower that does not read costs that much memory and nothing else.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "replica/replication.h"
#include "replica/snapshot_serve.h"

namespace cellar {

class FollowerFeed final : public PeerHandler {
 public:
  FollowerFeed(Replication& owner, PeerLink* link, uint64_t id, uint64_t node);
  ~FollowerFeed() override;

  void OnConnected(PeerLink*) override {}
  void OnBytes(std::string_view bytes) override;
  void OnDrained() override { Pump(); }
  // Records wait for more of them; Pump is to be called a little later.
  bool postpones() const { return postpones_; }
  void OnClosed(std::string_view why) override;

  // Sends what there is, as far as the link takes it. A few records right behind others wait
  // for more, unless they are wanted at once.
  void Pump() { Pump(false); }
  void Pump(bool at_once);
  void OnTick();
  // What has been sent shall be on its disk soon.
  void AskForSync();
  // kLead: it is the leader now.
  void HandOver(Lsn last);

  uint64_t id() const { return id_; }
  uint64_t node() const { return node_; }
  const NodeAddress& address() const { return address_; }
  bool online() const { return state_ == State::kLog; }
  bool copies() const { return state_ == State::kCopying; }
  Lsn position() const { return position_; }
  SnapshotServe* serve() { return serve_.get(); }
  Lsn durable() const { return durable_; }
  int64_t acked_micros() const { return acked_micros_; }
  FollowerFigures Figures() const;
  // Says why and closes the link.
  void Fail(std::string_view why);

 private:
  // A turn that sends more holds up all other clients: 128 KiB take 0.1 ms.
  static constexpr size_t kWindowBytes{512 << 10};
  static constexpr size_t kPieceBytes{128 << 10};
  static constexpr int kSearchesMax{5};
  static constexpr size_t kSmallBytes{4 << 10};
  static constexpr int64_t kGatherMicros{1'500};
  static constexpr int64_t kCommitMicros{2'000};  // between two that only tell of a commit
  // Records that are sent into a dead link are sent again: with so many bytes unanswered for so
  // long no more follow until the follower says something.
  static constexpr size_t kUnansweredBytes{64 << 10};
  static constexpr int64_t kUnansweredMicros{400'000};
  // Nor does more than a piece of this size at the beginning, and when such a link speaks again,
  // before it is known to carry records: the follower has more than was sent by then.
  static constexpr size_t kFirstBytes{64 << 10};

  enum class State : uint8_t { kHello, kSearching, kWaiting, kCopying, kLog };
  struct Job;
  // When a record was sent.
  struct SentMark {
    Lsn lsn;
    int64_t micros;
  };

  void OnFrame(const Frame& frame);
  void OnFollow(const Frame& frame);
  void OnAck(const Frame& frame);
  void OnReady();
  void Search();
  bool IsReplaced(const std::optional<SnapshotEntry>& snapshot) const;
  void EndSearch(Job* job);
  void BeginFull(Job* job);
  void ReadLog();
  // Runs `work` on a worker; `end` with the same job on the loop, if this feed still lives.
  void Run(std::unique_ptr<Job> job, void (*work)(Job*), void (FollowerFeed::*end)(Job*));
  void EndReadLog(Job* job);
  bool IsUnanswered() const;
  void TakeAnswer(Lsn applied);
  size_t PieceBytes(size_t usual) const { return answered_ ? usual : kFirstBytes; }
  void SendRecords(std::string_view records, Lsn last);
  void SendBeat(bool sync);
  void Write(FrameKind kind, std::string_view body, std::string_view rest = {});

  Replication& owner_;
  PeerLink* link_;  // null once it is gone
  const uint64_t id_;
  const uint64_t node_;
  NodeAddress address_;
  uint32_t priority_{100};
  State state_{State::kHello};
  FrameReader reader_{FrameKind::kFollow, FrameKind::kAck, FrameKind::kLead, FrameKind::kReady,
                      FrameKind::kError};
  bool job_runs_{false};
  int searches_{0};
  std::string search_error_;     // of the last one, if it failed
  uint64_t search_snapshot_{0};  // its manifest's; 0: none
  RecordName after_;             // what the follower has said
  bool same_cluster_{false};
  std::unique_ptr<SnapshotServe> serve_;  // kCopying, unless the whole log is the copy
  std::unique_ptr<LogStream> stream_;     // null while it is with a job, or the tail serves
  Lsn position_;                          // the last record sent
  Lsn commit_sent_;
  int64_t beat_micros_{0};
  int64_t records_micros_{0};  // when records were sent, the last time
  bool postpones_{false};
  int64_t commit_micros_{0};  // of the last heartbeat proper
  Lsn durable_;
  Lsn applied_;
  int64_t acked_micros_;
  int64_t peer_sent_micros_{0};
  int64_t skew_micros_{0};
  std::deque<SentMark> sent_;
  Lsn begun_;                    // the last record sent before a first piece
  bool answered_{false};         // it has said that it has more than that
  size_t unanswered_bytes_{0};   // of records, since the last acknowledgement
  int64_t unanswered_since_{0};  // the first of them
};

}  // namespace cellar
