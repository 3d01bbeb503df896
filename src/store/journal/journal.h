// Journal: makes the changes of a StateMachine durable. One log, one snapshot, one manifest in a
// folder; earlier snapshots beside it if they are to be kept.
//
//   loop thread                     sync thread                        snapshot thread
//   Reserve, Append ... Append
//   Flush            -- buffer -->  write, fdatasync                    (`always`)
//   Flush: write     -- buffer -->  fdatasync, room and segments ahead  (`everysec`, `no`)
//   Poll             <-- wake() --  durable LSN
//   StartSnapshot    -- rotate -->  new segment
//                    ------------- leaf images ------------------->    write, fsync, rename
//   Poll             <-- wake() --  manifest, durable LSN        <---  done
//
// Use: once per write command or EXEC, Reserve before anything is kept of a change, then change the
// trees, then Append the resolved mutations. Flush once per turn of the loop. A reply that could
// tell of record L leaves when L <= released_lsn().
//
// What is promised (cellar-admin(7), "DURABILITY"):
//   - durable_lsn() only grows; every record up to it survives a power loss.
//   - Every record up to released_lsn() survives the end of this process, however it ends: the
//     kernel has it at least. Under `always` it is durable_lsn(). Under `everysec` and `no` it is
//     last_lsn() after a Flush, as a rule; a large record, or one that the file system does not take
//     at once, is written by the sync thread, and then it follows when that has been done. Once the
//     oldest record not on disk is older than kReleaseLagMicros (`everysec`), or a write has failed,
//     it falls back to durable_lsn(), so that no more is acknowledged than the policy allows to
//     lose. Without a log it is kLsnMax.
//   - A full disk is found by Reserve, since the log is preallocated. A write or sync that fails
//     all the same closes the segment for good; the records not known durable are kept in memory
//     and written to a fresh segment, again and again until that is on disk; meanwhile Reserve
//     says MISCONF. Nothing ends the process, nothing must be done to resume.
//   - Snapshots cost the loop O(trees); writing them is another thread's work.
//
// Threads: every method belongs to the loop thread unless it says otherwise. `wake` is called from
// the journal's threads.
//
// Files and their formats: log_format.h, snapshot_format.h, manifest.h (store/format).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/state/state_machine.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/format/snapshot_format.h"
#include "store/log/log_replay.h"

namespace cellar {

enum class SyncPolicy : uint8_t { kAlways, kEverySecond, kNo };

// A snapshot is due when at least `changes` changes and `seconds` seconds have passed since the
// last.
struct SavePoint {
  uint32_t seconds{0};
  uint64_t changes{0};
};

struct LoadProgress {
  uint64_t bytes_done{0};
  uint64_t bytes_total{0};
  bool replaying_log{false};  // false: still in the snapshot
};
// Called during Open at least every few hundred KiB, on the loop thread: the place to answer
// LOADING. An error ends Open with it; the files are as they were.
using LoadProgressCallback = std::function<Status(const LoadProgress&)>;

inline constexpr int64_t kSlowWriteMicros{5'000};

struct JournalOptions {
  std::string directory;
  // create-dir: where there is no store, a new one begins, and the directory is made if it is
  // missing (its parent must be there). Else that is an error, unless kNewStoreName is there.
  bool may_create{true};
  bool log_enabled{true};  // appendonly
  SyncPolicy sync_policy{SyncPolicy::kEverySecond};
  std::vector<SavePoint> save_points;
  // auto-aof-rewrite-percentage and -min-size. 0 per cent: never.
  uint32_t rewrite_percentage{100};
  uint64_t rewrite_bytes_min{64 << 20};
  // stop-writes-on-bgsave-error: without a log, writes are refused after a failed snapshot if there
  // are save points.
  bool stop_writes_on_snapshot_error{true};
  // snapshot-keep: how many snapshots, the newest among them, and the log behind the oldest. > 0.
  uint32_t snapshots_kept{1};

  // Called from the journal's threads when durable_lsn(), released_lsn(), the health of the log or
  // a snapshot changed, so that the loop should call Poll(). Must be quick, must not call the
  // journal (uv_async_send). May be empty.
  std::function<void()> wake;

  // A member of a replica set: records may void others, and what is not known to be committed is
  // not applied at the start (TakePending).
  bool set_member{false};
  // Of a member whose store has no record yet: it keeps the log and applies nothing of it.
  bool log_only{false};
  // Of a member: who belongs to the set as of last_lsn(), for snapshots. May be empty.
  std::function<std::string()> members;
  // Of a member: if the state is that of last_lsn(), so that a snapshot may be taken of it. The
  // store sets it.
  std::function<bool()> state_is_newest;

  // Of a member: the largest change that clients may make at once, in bytes of a record's payload.
  // While the leader copies one into its log, its tree and a frame for each member it gives no sign
  // of life, so that a change that takes about as long as an election costs it the lead, and comes
  // to nothing, each time that it is tried.
  size_t change_bytes_max{kRecordPayloadBytesMax};

  // Under a lazy policy: after a write of the loop's own that took so long the sync thread writes
  // for a while, so that clients wait and not the loop. INT64_MAX: never, where whoever submits a
  // record waits for it anyway.
  int64_t slow_write_micros{kSlowWriteMicros};

  // Sizes and delays that only tests change.
  uint64_t segment_bytes_max{64 << 20};     // a log file is closed at about this size
  uint64_t allocation_bytes_max{16 << 20};  // largest piece reserved on disk at once
  uint64_t allocation_bytes_min{64 << 10};
  uint64_t queue_bytes_max{
      256 << 20};  // not durable yet, in memory; beyond it Reserve says MISCONF
  int64_t retry_delay_micros{100'000};  // between attempts after a failure
  // Until nothing was synced for so long, buffers that a sync has freed are kept.
  int64_t spares_kept_micros{10'000'000};
  // `always`: syncs that usually take at least so long may run beside each other. Shorter ones are
  // mostly work for a processor, which the clients need more.
  int64_t overlap_sync_micros_min{500};
};

// What recovery found. Texts are for the log on stderr, one line each.
struct RecoveryReport {
  bool directory_created{false};  // there was none
  bool from_snapshot{false};
  bool from_earlier{false};  // the newest one is damaged
  Lsn snapshot_lsn;
  uint64_t snapshot_cells{0};  // entries of all trees
  uint64_t records_replayed{0};
  uint64_t tail_bytes_cut{0};  // of the last segment
  int64_t snapshot_micros{0};
  int64_t replay_micros{0};
  std::vector<std::string> warnings;
};

// For INFO persistence. Times are Unix seconds or durations in seconds, -1 for "never", as in
// Redis.
struct JournalStats {
  bool log_enabled{false};
  SyncPolicy sync_policy{SyncPolicy::kEverySecond};

  uint64_t changes_since_save{0};  // rdb_changes_since_last_save
  bool save_in_progress{false};    // rdb_bgsave_in_progress, aof_rewrite_in_progress
  int64_t last_save_unix_s{0};     // rdb_last_save_time
  bool last_save_ok{true};         // rdb_last_bgsave_status, aof_last_bgrewrite_status
  int64_t last_save_s{-1};         // rdb_last_bgsave_time_sec
  int64_t current_save_s{-1};      // rdb_current_bgsave_time_sec
  uint64_t saves{0};               // rdb_saves: completed since the start
  uint64_t save_cells_done{0};     // current_save_keys_processed
  uint64_t save_cells_total{0};    // current_save_keys_total
  std::string last_save_error;

  uint64_t snapshot_bytes{0};  // size of the newest snapshot
  uint64_t snapshots{0};       // that are kept, the newest among them
  uint64_t snapshots_bytes{0};
  Lsn snapshot_lsn;
  uint64_t log_bytes{0};            // of records in the segments of the manifest
  uint64_t log_bytes_allocated{0};  // what they take on disk
  uint64_t log_segments{0};
  uint64_t appended_bytes{0};  // of records, since the log was opened
  // Snapshot and the log that it lacks, at its end and now: aof_base_size, aof_current_size.
  uint64_t base_bytes{0};
  uint64_t current_bytes{0};
  uint64_t buffer_bytes{0};      // aof_buffer_length: accepted and not yet written
  uint64_t unsynced_bytes{0};    // accepted and not known durable, kept in memory
  uint64_t spare_bytes{0};       // of buffers that are kept for the next records
  bool sync_in_progress{false};  // aof_pending_bio_fsync
  uint64_t syncs{0};
  uint64_t delayed_syncs{0};   // aof_delayed_fsync: over kReleaseLagMicros, or replies held back
  bool log_ok{true};           // aof_last_write_status: false while writes are refused
  bool log_room_ok{true};      // aof_room_status: false while the log cannot grow
  uint64_t log_room_bytes{0};  // aof_room_bytes: reserved on disk and not written yet
  std::string log_error;       // why log_ok or log_room_ok is false
  uint64_t log_failures{0};    // segments given up since the start

  Lsn last_lsn;
  Lsn durable_lsn;
};

// What Reserve is asked for before AppendMark.
inline constexpr size_t kMarkBytesMax{64};

// As long as a sync has not fallen behind by more, `everysec` does not hold replies back (Redis'
// two seconds).
inline constexpr int64_t kReleaseLagMicros{2'000'000};

// Gets each record as it leaves for the disk.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // Whole records (log_format.h) behind those of the call before; `last` numbers the last one.
  virtual void OnRecords(std::string_view records, Lsn last) = 0;
};

// The newest snapshot file: what it says of itself, and how much had been logged when it was taken.
struct NewestSnapshot {
  std::string catalog{};
  std::vector<SnapshotTree> trees{};
  uint64_t file_bytes{0};  // 0: there is none
  std::vector<StateMachine::Logged> logged{};
};

// What a state machine holds when its log is opened: nothing, or all that the snapshot holds which
// the manifest names.
enum class StateContent : uint8_t { kEmpty, kSnapshot };

// What consensus must know of the log of a set's member, as the start has found it: all records
// behind the snapshot that are in force, by number and kind.
struct LogShape {
  Lsn snapshot;                     // Lsn{}: there is none
  std::string snapshot_members;     // payload of a kMembers record
  std::vector<Lsn> begins;          // the first record, and each whose epoch is another one
  std::vector<NamedMembers> named;  // the kMembers records
  Lsn last;
  Lsn committed;                // as far as the log itself tells
  int64_t retention_micros{0};  // the latest time of retention that it names
};

// Who wants log to stay that a snapshot covers, besides feeds and followers.
enum class LogPin : uint8_t { kBackup, kArchive, kMove };
inline constexpr size_t kLogPins{3};

class Journal {
 public:
  // Recovers what `options.directory` holds into `state`, which holds what `content` says, and
  // begins a new log segment. `files`, `clock` and `state` must outlive the journal. Errors:
  // kCorruption with file, offset and record number for damage that is no torn tail; kIo and
  // kNoSpace.
  static Result<std::unique_ptr<Journal>> Open(JournalOptions options, FileSystem& files,
                                               Clock& clock, StateMachine& state,
                                               const LoadProgressCallback& progress,
                                               StateContent content = StateContent::kEmpty);

  virtual ~Journal() = default;  // as Close(), errors ignored

  virtual const RecoveryReport& recovery() const = 0;

  // OK if a record of `payload_bytes` will be accepted: room for it is reserved on disk. Otherwise
  // kMisconf and the reason, and nothing may be changed. Normally one comparison; waits for the
  // sync thread only when the log grows faster than the disk reserves room.
  virtual Status Reserve(size_t payload_bytes) = 0;
  // As Reserve, for what a client changes: TOOLARGE beyond change_bytes_max.
  virtual Status ReserveChange(size_t payload_bytes) = 0;
  // Adds a record, which cannot fail, and returns its number. `changes` is what it counts for in
  // save points (cells or rows changed). The bytes are copied. REQUIRES: a Reserve of at least that
  // size since the last Append. Cost: a copy and a hash of the payload, the hash with the next
  // record. Unless the policy is `always`, what a turn has added is flushed whenever it is some
  // 64 KiB.
  virtual Lsn Append(std::string_view payload, uint64_t changes) = 0;
  // As Append, of a payload that may share a record with those that came just before it in the same
  // turn, in the same way: what each of them begins with, `head_bytes`, is there once, the last
  // one's. Returns the number of that record. Small changes thus take less of the log, and of the
  // time to write it, than with a header and a hash for each.
  // REQUIRES: as Append; head_bytes <= payload.size().
  virtual Lsn AppendJoined(std::string_view payload, size_t head_bytes, uint64_t changes) = 0;
  // Adds a record that another machine has numbered, as it is there. REQUIRES: as Append;
  // head.lsn > last_lsn(), and head.commit_micros above that of all before; or, of a set's member,
  // head.lsn.seq <= last_lsn().seq and another epoch than there: it voids all from its seq on.
  virtual void AppendAt(const RecordHead& head, std::string_view payload, uint64_t changes) = 0;
  // Adds a kBarrier. REQUIRES: a Reserve since the last Append.
  virtual void AppendBarrier() = 0;
  // Of a set's member: adds a kMembers. REQUIRES: as AppendBarrier.
  virtual void AppendMembers(std::string_view payload) = 0;
  // Says in the log that all records up to mark.lsn are committed. REQUIRES: a Reserve of
  // kMarkBytesMax since the last Append; there is a record.
  virtual void AppendMark(const CommitMark& mark) = 0;
  // Of a set's member: all records up to there are committed. A snapshot counts once all that it
  // holds is, and is given up if some of that is voided before.
  virtual void SetCommitted(Lsn lsn) = 0;
  // How many records have been added, over all starts as far as the numbers tell; and how many of
  // these are durable. Where none has been voided, that of the last one is its seq.
  virtual uint64_t appended() const = 0;
  virtual uint64_t durable_appended() const = 0;  // any thread
  // And of how many that holds which released_lsn() says of the last one.
  virtual uint64_t released_appended() const = 0;
  // Of a set's member; once, before TakePending and any record of its own.
  virtual LogShape TakeShape() = 0;
  // Of a set's member: what the log holds and what was not applied at the start, in order.
  virtual std::vector<PendingRecord> TakePending() = 0;
  virtual uint32_t epoch() const = 0;
  // Records from now on have this epoch. REQUIRES: epoch >= that of last_lsn().
  virtual void SetEpoch(uint32_t epoch) = 0;
  // The wall clock of the turn, from which commit times come: one each for what is appended,
  // larger than all before.
  virtual void SetTurnTime(int64_t wall_micros) = 0;
  // Flush tells `sink` of the records too; null: nobody. Borrowed.
  virtual void SetSink(RecordSink* sink) = 0;
  // Up to which records the log's files are complete, but for what their writer still holds.
  virtual Lsn flushed_lsn() const = 0;
  // The epoch of the record with that seq, of those in force. REQUIRES: seq <= last_lsn().seq.
  virtual uint32_t EpochOf(uint64_t seq) const = 0;
  // The last seq of an epoch not above `epoch`; nothing if this log's records do not tell.
  virtual std::optional<uint64_t> LastSeqOf(uint32_t epoch) const = 0;
  // What the manifest names; any thread.
  virtual Manifest CopyManifest() const = 0;
  // As the start has found it, or chosen it by JournalOptions::log_only.
  virtual bool holds_log_only() const = 0;
  // Log that a snapshot covers stays, as much of its end as these bytes: for followers that come
  // back. From the next snapshot on.
  virtual void SetBacklog(uint64_t bytes) = 0;
  // Log behind record `seq` stays too: for followers that are getting a copy. UINT64_MAX: none is.
  virtual void SetRetainBehind(uint64_t seq) = 0;
  // The snapshot of this number is no good: it goes with the next one, and none that is older.
  virtual void SetDamagedSnapshot(uint64_t number) = 0;
  // Of the log that a snapshot covers, segments from this number on stay too (feed_log.h): none
  // until it is said, and with UINT64_MAX. Those that nobody wants any more go soon.
  virtual void RetainFrom(uint64_t segment) = 0;
  // As RetainFrom, for whoever `pin` names; from any thread.
  virtual void PinFrom(LogPin pin, uint64_t segment) = 0;
  // What comes from here on goes to another segment than what was added before, unless one is about
  // to be begun anyway; returns appended().
  // CloseCut, for another thread than the loop's: the record of that ordinal, and what was written
  // behind it by then, is on disk, in segments that the manifest says are closed. UINT64_MAX:
  // whatever there is.
  virtual uint64_t BeginCut() = 0;
  virtual Status CloseCut(uint64_t ordinal) = 0;
  // A number for a file of the store.
  virtual uint64_t TakeFileNumber() = 0;
  // TRYAGAIN where the state of a set's member is not that of last_lsn().
  virtual Status CheckStateIsNewest() const = 0;
  // The next step takes so many microseconds besides one: its commit time is the last of them.
  virtual void SkipMicros(int64_t micros) = 0;
  // What is there now is synced soon, whatever the policy; durable_lsn() tells.
  virtual void RequestSync() = 0;
  // Whether more may be released than is durable: unless the policy is `always`, or there is no
  // log.
  virtual bool releases_undurable() const = 0;
  // The record that was added last is not released before it is on disk, whatever the policy, nor
  // what stands behind it; and it is synced soon.
  virtual void ReleaseWhenDurable() = 0;
  // Hands the records of this turn, or the rest of them, to the sync thread; unless the policy is
  // `always` they are written to the page cache first, if that does not take long. Never waits for
  // a sync.
  virtual void Flush() = 0;
  // Takes in what the other threads have done: a finished snapshot is dropped here. To be called
  // after `wake` and from a timer (about every 100 ms). Cheap when nothing happened.
  virtual void Poll() = 0;

  virtual Lsn last_lsn() const = 0;
  // When the newest step was committed.
  virtual int64_t last_commit_micros() const = 0;
  virtual Lsn durable_lsn() const = 0;  // any thread
  // The newest record that will stay, whatever happens, with all before it: on disk, in force, and
  // in a set's member committed.
  virtual Lsn settled_lsn() const = 0;
  virtual Lsn released_lsn() const = 0;
  // False while accepted records wait for a fresh segment.
  virtual bool healthy() const = 0;

  // Begins a snapshot of this moment; the log goes on in a new segment, and the old ones go when
  // the snapshot is durable. kErr if one is running. TRYAGAIN where the state of a set's member is
  // not that of last_lsn().
  virtual Status StartSnapshot() = 0;
  virtual bool snapshot_running() const = 0;
  // Writes a snapshot in the foreground, after one that is running: returns when it is durable, or
  // why it is not. TRYAGAIN where a set's member would have to wait for others.
  virtual Status SaveNow() = 0;
  // Starts a snapshot if a save point or the growth of the log calls for one (five seconds after a
  // failed one at the earliest). To be called from a timer. True if it started one.
  virtual bool MaybeStartSnapshot() = 0;

  // appendfsync, appendonly, save, auto-aof-rewrite-*, stop-writes-on-bgsave-error at run time.
  virtual void SetSyncPolicy(SyncPolicy policy) = 0;
  // Off: what is there is flushed and synced first (waits). On: a snapshot is started at once; the
  // log counts as durable from when that is finished. kErr if a snapshot is running.
  virtual Status SetLogEnabled(bool enabled) = 0;
  virtual void SetSavePoints(std::vector<SavePoint> save_points) = 0;
  virtual void SetRewriteTrigger(uint32_t percentage, uint64_t bytes_min) = 0;
  virtual void SetStopWritesOnSnapshotError(bool stop) = 0;
  // What is too many goes soon.
  virtual void SetSnapshotsKept(uint32_t count) = 0;

  virtual JournalStats Stats() const = 0;
  // Lives until the next Poll() or SaveNow(); newest_snapshots() counts how often it has changed.
  virtual const NewestSnapshot& newest_snapshot() const = 0;
  virtual uint64_t newest_snapshots() const = 0;

  // Flushes, syncs and ends the threads; a running snapshot is given up. An error means that
  // accepted records may not be on disk. Nothing but the destructor may follow.
  virtual Status Close() = 0;
};

}  // namespace cellar
