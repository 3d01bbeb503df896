// SnapshotFetch: the follower's end of the bulk link: what comes is written to a file by a worker,
// then loaded in slices beside the state that is there.
//
//   link -> incoming_ -> job: the file -> SnapshotIntake -> an engine of its own
//
// At most some kWaitingBytesMax wait between the two: beyond, the link is not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/os/file.h"
#include "replica/greeting.h"
#include "replica/links/frame.h"
#include "replica/links/peer.h"
#include "store/format/manifest.h"
#include "store/snapshot/snapshot_intake.h"

namespace cellar {

class Replication;
struct NodeAddress;

class SnapshotFetch final : public PeerHandler {
 public:
  SnapshotFetch(Replication& owner, uint64_t id, const SnapshotEntry& entry, uint64_t end_bytes);
  ~SnapshotFetch() override;

  // Makes the file, and dials.
  Status Begin(const NodeAddress& leader, const std::string& path, uint64_t ticket);

  void OnConnected(PeerLink* link) override;
  void OnBytes(std::string_view bytes) override;
  void OnDrained() override {}
  void OnClosed(std::string_view why) override;

  // Loads until the deadline (monotonic). True if there is more to load now. An error: why no copy
  // will come of this.
  Result<bool> Step(int64_t deadline_micros);
  // Written and loaded, all of it.
  bool done() const { return intake_.done() && file_ != nullptr && written_ == entry_.bytes; }
  std::unique_ptr<WritableFile> TakeFile() { return std::move(file_); }
  std::unique_ptr<Engine> TakeEngine() { return intake_.TakeEngine(); }

  std::string_view members() const { return intake_.members(); }

  uint64_t id() const { return id_; }
  const SnapshotEntry& entry() const { return entry_; }
  uint64_t received_bytes() const { return received_; }
  // When something came over the link, or it was begun.
  int64_t heard_micros() const { return heard_micros_; }
  size_t memory_bytes() const;

 private:
  static constexpr size_t kWaitingBytesMax{16 << 20};
  struct Job;

  void TakeChunk(const Frame& frame);
  void WriteSome();
  void EndWrite(Job* job);
  void UpdateReading();
  void Fail(std::string why);
  void Hangup();

  Replication& owner_;
  const uint64_t id_;
  const SnapshotEntry entry_;
  const uint64_t end_bytes_;
  PeerGreeting greeting_;
  uint64_t ticket_{0};
  PeerLink* link_{nullptr};
  bool dialling_{false};
  bool greeted_{false};
  bool reading_{true};
  FrameReader reader_{FrameKind::kChunk, FrameKind::kError};
  std::string failure_;   // empty: none
  std::string incoming_;  // not written yet
  uint64_t received_{0};
  uint64_t written_{0};
  bool job_runs_{false};
  bool load_waits_{false};              // the intake has more than it has loaded
  std::unique_ptr<WritableFile> file_;  // with a job while that runs
  SnapshotIntake intake_;
  size_t added_{0};  // given to the intake and not known to be loaded
  int64_t heard_micros_;
};

}  // namespace cellar
