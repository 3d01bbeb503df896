// LogWriter: the sync thread. It makes, syncs and closes log segments and writes the manifest.
//
// The loop submits batches of records; they are written to the open segment, by the thread or by
// the loop itself, and the thread syncs them as the policy says. Two numbers tell how far it is:
//
//   written_ordinal()   the kernel has it: it survives the end of the process
//   durable_ordinal()   synced: it survives the end of the machine
//
// Everything queued while a sync runs shares the next one (group commit). The thread also reserves
// room ahead of the loop (space_reserver.h), rotates segments, and installs snapshots in the
// manifest when the snapshot thread has written them.
//
// Space. Positions in the stream of all record bytes since the start tell how much is granted:
//
//        durable        written       submitted    appended            granted
//   ---------|--------------|-------------|-----------|-------------------|----> stream
//    in the file, synced    |  queue_     |   loop's  |   free room
//            | kept in unsynced_ ...      |   buffer  |
//
// The loop may append up to `granted`: room on the disk, and a bound on what is kept in memory.
// Granted room is never taken back while the segment lives; a new segment begins with at least as
// much.
//
// Failure. When a write or a sync fails, the segment is closed for good where it was last durable.
// Batches stay in unsynced_ until they are durable; each attempt to resume makes a new segment,
// writes all of them, syncs it, and closes the old one in the manifest. Until that succeeds nothing
// is granted. Segment files that a manifest might name although installing it failed are removed
// only after the next manifest that does not name them is durable.
//
// Group commit under `always`. What is queued while a sync runs shares the next one, which begins
//   at once     clients whose replies wait for it and clients that have just got theirs then go on
//               as two groups: one is served while the other's sync runs;
//   gathered    a little later, when as many bytes have come as were released and queued by then,
//               but no longer after the last one than half of what a sync takes: half the syncs,
//               each of which costs a processor as much as several commits, while the loop is idle;
//   overlapped  beside those that run (sync_lanes.h), where a disk takes several in the time of one.
// What gets most to the disk depends on the disk, the clients and how many processors there are. So
// the ways are tried (sync_pacer.h, sync_trial.h).
//
// Small commits go to room that has been written once already, with zeros: syncing them is then one
// write and no metadata (SegmentFile::ZeroAhead).
//
// Lazy policies (`everysec`, `no`): replies wait for written_ordinal(). So the loop writes each
// batch itself when it submits it (tail_writer.h), and the thread, which keeps it until it is
// durable, need not wake for it before kLingerMicros are over. Where the loop cannot write, since
// the batch is large, the log in trouble or the file system slow, the thread does it at once, and
// opens the tail again when it has written all that was queued. A rotation does not close it:
// meanwhile the loop writes to both segments.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/os/file.h"
#include "cellar/clock.h"
#include "store/format/manifest.h"
#include "store/journal/journal.h"
#include "store/journal/log_batch.h"
#include "store/journal/log_retention.h"
#include "store/journal/recovery.h"
#include "store/journal/segment_file.h"
#include "store/journal/space_reserver.h"
#include "store/journal/spare_buffers.h"
#include "store/journal/sync_lanes.h"
#include "store/journal/sync_pacer.h"
#include "store/journal/tail_writer.h"

namespace cellar {

struct LogWriterStats {
  bool sync_in_progress{false};
  uint64_t syncs{0};
  uint64_t delayed_syncs{0};
  uint64_t failures{0};
  std::string error;       // of the last failure or of what prevents room from being reserved now
  bool ok{true};           // false while writes are refused
  bool room_ok{true};      // false while no room can be reserved ahead; what is left is still used
  uint64_t room_bytes{0};  // that is left: reserved and not written yet
  uint64_t unwritten_bytes{0};
  uint64_t unsynced_bytes{0};
  uint64_t spare_bytes{0};  // of buffers that wait for records
  uint64_t log_bytes{0};
  uint64_t covered_bytes{0};  // of these: in segments that the newest snapshot covers
  uint64_t log_bytes_allocated{0};
  uint64_t log_segments{0};
  uint64_t snapshots{0};
  uint64_t snapshots_bytes{0};  // of all
};

class LogWriter {
 public:
  // Goes on where recovery found the end. No thread runs before Start().
  LogWriter(const JournalOptions& options, FileSystem& files, Clock& clock,
            const RecoveredStore& store);
  ~LogWriter();  // Close(), errors ignored

  // Opens the last segment again, or makes a new one, if the log is enabled; starts the thread.
  Status Start();
  // Writes and syncs what was submitted, closes the segment, ends the thread. An error means that
  // records may be lost. Idempotent.
  Status Close();

  // --- loop thread ---

  // OK if the stream may grow to `stream_end`; waits for the thread up to kReserveWaitMicros.
  Status Reserve(uint64_t stream_end) {
    if (stream_end <= granted_.load(std::memory_order_acquire)) [[likely]]
      return Status::Ok();
    return ReserveSlow(stream_end);
  }
  // Takes the batch's content and leaves an empty one with recycled memory. Under a lazy policy it
  // is usually written when this returns.
  void Submit(LogBatch* batch);
  void SetSyncPolicy(SyncPolicy policy);
  // Returns when everything submitted is durable, or with what prevents it. Waits for the thread.
  Status Sync();
  // Begins a log behind `start` that the manifest will name with the next snapshot (until then
  // durable_ordinal() stands still), or ends it: all that was submitted is synced first. Wait for
  // the thread.
  Status EnableLog(const LogPosition& start, uint64_t ordinal, uint64_t stream_begin);
  Status DisableLog();
  // A number for a new file.
  uint64_t TakeNumber();

  // --- snapshot thread ---

  // Puts the snapshot, of the state behind the record of that ordinal, into the manifest, and takes
  // what it supersedes out: *superseded gets those files, which the caller is to remove. Waits for
  // the thread. After an error the snapshot's file must stay.
  Status InstallSnapshot(const SnapshotEntry& entry, uint64_t ordinal,
                         std::vector<std::string>* superseded);
  // Drops what SetSnapshotsKept has made superfluous, in the same way. Any thread but the loop's.
  Status TrimSnapshots(std::vector<std::string>* superseded);

  // The record of that ordinal is on disk, in a segment that the manifest says is closed, with what
  // was written to that by then; it is not the loop's thread that waits. MISCONF, NOSPACE.
  Status CloseCut(uint64_t ordinal);

  // --- any thread ---

  // As it was installed last.
  Manifest CopyManifest() const;
  // What of snapshots and log stays, from the next snapshot on (log_retention.h).
  LogRetention& retention() { return retention_; }
  // Segments before this one may go, as far as these are concerned; they do soon (journal.h).
  void RetainFrom(uint64_t segment);
  void PinFrom(LogPin pin, uint64_t segment);
  // What is there now is synced soon, whatever the policy.
  void RequestSync();

  // Ordinals (log_batch.h).
  uint64_t durable_ordinal() const { return durable_ordinal_.load(std::memory_order_acquire); }
  // Never less than durable_ordinal().
  uint64_t written_ordinal() const {
    return std::max(durable_ordinal(), written_ordinal_.load(std::memory_order_acquire));
  }
  bool healthy() const { return healthy_.load(std::memory_order_acquire); }
  // The manifest does not name the log yet.
  bool held() const { return held_.load(std::memory_order_acquire); }
  // When the oldest record that is not durable was submitted (monotonic); 0 if there is none.
  int64_t oldest_unsynced_micros() const {
    return oldest_unsynced_micros_.load(std::memory_order_acquire);
  }
  LogWriterStats Stats() const;

 private:
  // A piece of work that another thread waits for.
  struct Call {
    std::function<Status()> run;
    Status status;
    bool done{false};
  };

  static LogBatch TightCopy(const LogBatch& batch);
  Status ReserveSlow(uint64_t stream_end);
  Status RefuseForRoom();  // under mutex_
  Status RunOnThread(std::function<Status()> run);

  Status StartLog();
  Status StartWithoutLog();

  // --- the thread ---
  void Run();
  int64_t NextWakeMicros() const;            // REQUIRES: mutex_ held
  void TakeWork(std::vector<Call*>* calls);  // REQUIRES: mutex_ held
  void TakeQueue();                          // REQUIRES: mutex_ held
  void OpenTail();                           // REQUIRES: mutex_ held
  void CloseTail();
  void KeepSpares();  // REQUIRES: mutex_ held
  // When spare buffers beyond what is always kept go (monotonic); never while records wait.
  int64_t SparesDueMicros() const;  // REQUIRES: mutex_ held
  void PublishState();              // REQUIRES: mutex_ held
  void Work();
  void WriteBatches();
  Status WriteBatch(const LogBatch& batch);
  int64_t SyncDueMicros() const;
  // What is written is synced, here and now. False if it failed, and the log with it.
  bool SyncSegment();
  void BeginSync();
  // Takes note of what the lanes have done. False if a sync failed, and the log with it.
  bool SettleLanes();
  void OpenLanes();
  void CloseLanes();
  // No sync can begin before a lane has ended.
  bool LanesAreFull() const;
  void LaneEnded(uint64_t ordinal);  // any thread
  void Rotate();
  // The first part of it: what follows what is durable goes to `fresh` too, now and until the loop
  // is told otherwise.
  Status CopyTail(SegmentFile* fresh);
  void DropTailCopy();
  void PublishGrant();
  uint64_t GrantLimit() const;
  void Fail(const Status& status);
  void TryToResume();
  Result<std::unique_ptr<SegmentFile>> ResumeInFreshSegment();
  // A new, empty segment behind base_, its name durable.
  Result<std::unique_ptr<SegmentFile>> CreateSegment(AllocationSize size);
  // Adds `segment` to `draft` and installs that. If that fails the segment is closed and its file
  // goes at once or, where the manifest may name it, later.
  InstallResult InstallWithSegment(Manifest draft, SegmentFile* segment);
  InstallResult Install(Manifest draft);
  // Closes the entry of the open segment in *draft where that is durable. One without records is
  // left out; then it returns the file's path.
  std::optional<std::string> CloseOpenEntry(Manifest* draft) const;
  // Closes the entry of a segment that failed; its file goes with the next manifest.
  void AbandonOpenEntry(Manifest* draft);
  // Drops the first `count` of unsynced_, which are durable.
  void Retire(size_t count);
  void PublishDurable(uint64_t ordinal);                                        // any thread
  void PublishWritten(uint64_t ordinal) { Raise(&written_ordinal_, ordinal); }  // any thread
  static void Raise(std::atomic<uint64_t>* number, uint64_t to);
  Status InstallSnapshotOnThread(const SnapshotEntry& entry, uint64_t ordinal,
                                 std::vector<std::string>* superseded);
  // Takes out of *draft what does not stay; appends its files to *paths.
  void Prune(Manifest* draft, std::vector<std::string>* paths) const;
  Status CloseCutOnThread(uint64_t ordinal);
  // Segments before this one go, where nothing else wants them.
  void DropBefore(uint64_t segment);
  Status TrimOnThread(std::vector<std::string>* superseded);
  void DropUnwanted();
  void PublishManifest();
  Status EnableOnThread(const LogPosition& start, uint64_t ordinal, uint64_t stream_begin);
  Status DisableOnThread();
  void FinishOnThread();
  std::string PathOf(StoreFileKind kind, uint64_t number) const;
  void Wake() const {
    if (options_.wake) options_.wake();
  }

  const JournalOptions options_;
  FileSystem& files_;
  Clock& clock_;
  std::thread thread_;

  std::atomic<uint64_t> granted_{0};
  std::atomic<uint64_t> durable_ordinal_{0};
  std::atomic<uint64_t> written_ordinal_{0};
  std::atomic<bool> healthy_{true};
  std::atomic<bool> held_{false};
  LogRetention retention_;
  std::atomic<int64_t> oldest_unsynced_micros_{0};
  std::atomic<bool> sync_in_progress_{false};

  mutable std::mutex mutex_;
  std::condition_variable work_cv_;   // the thread waits
  std::condition_variable reply_cv_;  // others wait for the thread
  // Under mutex_:
  std::deque<LogBatch> queue_;
  size_t queue_bytes_{0};
  size_t queue_unwritten_bytes_{0};
  // Of what the thread has taken from the queue since it published stats_.
  size_t taken_bytes_{0};
  size_t taken_unwritten_bytes_{0};
  TailWriter tail_;      // of segment_; open only while all batches are written to it
  SpareBuffers spares_;  // for Submit
  std::vector<Call*> calls_;
  Manifest manifest_published_;
  bool sync_requested_{false};
  bool drop_requested_{false};  // segments that nobody wants are to go
  uint64_t requested_stream_end_{0};
  uint64_t next_number_;
  SyncPolicy policy_;
  bool stop_{false};
  bool ended_{true};  // no thread runs
  Status close_status_;
  int64_t thread_wakes_micros_{0};  // 0: it is not waiting
  SyncPacer::Gathering gathering_;  // `always`: what the next sync waits for
  bool lane_ended_{false};          // SettleLanes is due
  bool waits_for_lane_{false};      // nothing can be synced before one has ended
  struct RoomTrouble {
    std::string error{};   // why no room can be reserved; empty if it can
    uint64_t failures{0};  // how often it could not
    bool refused{false};   // a record has been refused since then
  };
  RoomTrouble room_trouble_;
  LogWriterStats stats_;

  // The thread's own:
  bool enabled_{false};
  bool stopping_{false};
  bool sync_wanted_{false};
  bool drop_wanted_{false};
  SyncPolicy policy_now_;
  uint64_t stream_requested_{0};  // by Reserve
  uint64_t stream_submitted_{0};
  uint64_t stream_durable_{0};
  std::unique_ptr<SegmentFile> segment_;  // closed while not healthy; null if there is none
  std::deque<LogBatch> unsynced_;  // in order; the first `written_` are known to be in the segment
  size_t written_{0};
  SyncLanes lanes_;  // for segment_, once syncs have turned out slow
  struct InLane {
    SegmentFile::End end;
    uint64_t ordinal;
  };
  std::deque<InLane> in_lanes_;  // what they sync, in order
  SyncPacer pacer_;
  uint64_t unsynced_bytes_{0};
  Status tail_error_;                 // of a write behind the end that nobody has looked at yet
  LogPosition base_;                  // the record before unsynced_; in a file only at Start()
  uint64_t base_ordinal_{0};          // of that record
  Manifest manifest_;                 // as installed; while held_: as it will be
  Manifest manifest_on_disk_;         // while held_
  std::vector<std::string> garbage_;  // to be removed once a manifest is installed
  SpaceReserver room_;
  int64_t resume_micros_{0};  // not before then: TryToResume
  int64_t rotate_retry_micros_{0};
  int64_t drop_retry_micros_{0};
  uint64_t failures_{0};
  std::string failure_;  // why not healthy
};

inline constexpr int64_t kLingerMicros{50'000};
inline constexpr size_t kLingerBytes{256 * 1024};
inline constexpr int64_t kReserveWaitMicros{1'000'000};

}  // namespace cellar
