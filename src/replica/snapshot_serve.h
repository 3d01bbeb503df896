// SnapshotServe: the leader's end of the bulk link of one follower: a snapshot file goes out, piece
// by piece, in the order of store/snapshot/snapshot_intake.h.
//
// The file is held open, so it may be replaced meanwhile. A worker makes one frame at a time, in
// memory that goes to and fro, and lets other threads pass between small reads: it has no more
// right to a processor than the loop, which may have but one. No more than kWindowBytes wait in the
// link, and no more is sent than repl-sync-rate allows. A piece holds the loop while the socket
// takes it, so it is small where turns are short; where they are long, few pieces fit into a
// second, and each is larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/os/file.h"
#include "replica/links/frame.h"
#include "replica/links/peer.h"

namespace cellar {

class Replication;

class SnapshotServe final : public PeerHandler {
 public:
  struct Source {
    std::unique_ptr<ReadableFile> file;
    uint64_t number{0};  // of the snapshot
    uint64_t bytes{0};
    uint64_t end_bytes{0};  // of footer and trailer
  };

  // `feed`: of which follower.
  SnapshotServe(Replication& owner, uint64_t feed, uint64_t ticket, Source source);
  ~SnapshotServe() override;

  uint64_t ticket() const { return ticket_; }
  bool attached() const { return attached_; }
  // Its link is gone again.
  bool ended() const { return attached_ && link_ == nullptr; }
  // The follower has dialled. REQUIRES: !attached().
  void Attach(PeerLink* link);
  void Pump();
  void OnTick();

  void OnConnected(PeerLink*) override {}
  void OnBytes(std::string_view bytes) override;
  void OnDrained() override { Pump(); }
  void OnClosed(std::string_view why) override;

 private:
  static constexpr size_t kWindowBytes{256 << 10};
  static constexpr size_t kPieceBytesMin{4 << 10};     // under repl-sync-rate
  static constexpr size_t kPieceBytesUsual{32 << 10};  // one holds the loop for 0.03 ms
  static constexpr size_t kPieceBytesMax{128 << 10};   // below kMappedBytes, with its head
  static constexpr size_t kReadBytes{16 << 10};
  static constexpr uint64_t kBytesPerMicro{64};  // aimed at, if the turns are that long
  struct Job;

  // Of the next one, by the time since the one before.
  size_t PieceBytes(int64_t now_micros);
  void ReadPiece(size_t bytes);
  void EndPiece(Job* job);
  void Fail(std::string_view why);

  Replication& owner_;
  const uint64_t feed_;
  const uint64_t ticket_;
  Source source_;  // its file is with a job while that runs
  PeerLink* link_{nullptr};
  bool attached_{false};
  bool job_runs_{false};
  uint64_t place_{0};        // in the order of sending
  std::string frame_;        // memory of the one sent last
  int64_t begin_micros_{0};  // of what `sent_` counts
  uint64_t sent_{0};
  int64_t piece_micros_{0};  // when the last one was asked for
  int64_t moved_micros_;     // when the link took something, the last time
  FrameReader reader_{FrameKind::kError};
};

}  // namespace cellar
