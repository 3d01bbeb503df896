// The loop's side of durability: record buffer, snapshots, triggers, statistics. See journal.h.
#include "store/journal/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/assert.h"
#include "base/inline.h"
#include "base/os/thread.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/journal/log_batch.h"
#include "store/journal/log_writer.h"
#include "store/journal/recovery.h"
#include "store/snapshot/snapshot_writer.h"

namespace cellar {
namespace {

constexpr int64_t kSnapshotRetryMicros = 5'000'000;  // as in Redis
constexpr int64_t kClaimAfterIdleMicros = 1'000'000;
constexpr int64_t kMicrosPerSecond = 1'000'000;
// Room that Reserve asks for beyond the record: a claim must never be what the disk lacks room for.
constexpr uint64_t kReserveSlackBytes = 2 * kRecordHeaderBytes;
// A turn's records are written in pieces of about this size, unless each piece is synced: buffers
// of the same size are used again, however much a turn writes, and are still in the cache when they
// are written.
constexpr size_t kPieceBytes = 64 << 10;
// A record that small changes join grows up to this: its header is one per cent of it then, and its
// hash is taken while all of it is in the nearest cache.
constexpr size_t kJoinedRecordBytesMax = 4 << 10;

[[gnu::cold, gnu::noinline]] Status RecordTooLarge(size_t payload_bytes) {
  return Status::Error(ErrorCode::kTooLarge, "a change of " + std::to_string(payload_bytes) +
                                                 " bytes does not fit into one log record");
}

[[gnu::cold, gnu::noinline]] Status ChangeTooLarge(size_t payload_bytes, size_t bytes_max) {
  if (bytes_max == kRecordPayloadBytesMax) return RecordTooLarge(payload_bytes);
  return Status::Error(ErrorCode::kTooLarge,
                       "a change of " + std::to_string(payload_bytes) +
                           " bytes: a replica set takes " + std::to_string(bytes_max) +
                           " at once, more with a longer replica-election-timeout");
}

[[gnu::cold, gnu::noinline]] Status NoSnapshot(const std::string& why) {
  return Status::Error(ErrorCode::kMisconf,
                       "The last snapshot could not be saved, and there is no log "
                       "(stop-writes-on-bgsave-error): " +
                           why);
}

// A snapshot being written. The loop thread makes and ends it; its thread fills the result.
struct SnapshotJob {
  StateMachine::StateSnapshot state;
  SnapshotTask task;
  SnapshotProgress progress;
  uint64_t cells_total{0};
  uint64_t ordinal{0};  // of the last record in it
  uint64_t changes_before{0};
  int64_t begin_micros{0};
  std::thread thread;

  // Of a set's member: whether what it holds is committed.
  enum class Permit : uint8_t { kAwaited, kGiven, kRefused };
  std::mutex permit_mutex;
  std::condition_variable permit_cv;
  Permit permit{Permit::kGiven};  // under permit_mutex

  bool IsAwaited() {
    const std::lock_guard lock(permit_mutex);
    return permit == Permit::kAwaited;
  }
  void Decide(Permit decision) {
    {
      const std::lock_guard lock(permit_mutex);
      if (permit == Permit::kAwaited) permit = decision;
    }
    permit_cv.notify_one();
  }
  Status WaitForPermit() {
    std::unique_lock lock(permit_mutex);
    permit_cv.wait(lock, [this] { return permit != Permit::kAwaited; });
    if (permit == Permit::kGiven) return Status::Ok();
    return Status::Error(ErrorCode::kErr, "what it holds was never committed");
  }

  std::atomic<bool> done{false};  // what follows is the loop's from then on
  Status status;
  SnapshotEntry entry;
};

// Records of one epoch, one behind the other, from a seq on. Ordinals (log_batch.h) are `ahead` of
// seqs: by what had been voided before.
struct EpochBegin {
  uint64_t first_seq{0};  // 0: it begins before what the log tells
  uint32_t epoch{1};
  uint64_t ahead{0};
  bool in_force{true};  // false: voided from the first record on
};

// The log as recovery has found it: records that are applied, and behind them those that wait (of a
// set's member).
std::vector<EpochBegin> EpochsOf(const RecoveredStore& store) {
  std::vector<EpochBegin> epochs{{.first_seq = 0, .epoch = std::max(store.first_epoch, 1u)}};
  const auto begin = [&epochs](Lsn lsn) {
    if (lsn.epoch != epochs.back().epoch) epochs.push_back({lsn.seq, lsn.epoch});
  };
  for (const Lsn lsn : store.epoch_begins) begin(lsn);
  for (const PendingRecord& record : store.pending) begin(record.head.lsn);
  return epochs;
}

// Where each epoch begins and which records name members, from what recovery has collected on its
// way through the log. O(epochs + pending).
LogShape ShapeOf(const RecoveredStore& store) {
  LogShape shape{.snapshot = store.report.snapshot_lsn,
                 .snapshot_members = store.snapshot_members,
                 .begins = {},
                 .named = store.named,
                 .last = store.end.last,
                 .committed = std::max(store.report.snapshot_lsn, store.mark.lsn),
                 .retention_micros = store.mark.retention_micros};
  if (shape.last == shape.snapshot) return shape;
  const uint64_t first = shape.snapshot.seq + 1;
  // What is applied begins in the epoch of the snapshot, or where that ended.
  const bool applied = store.pending.empty() || store.pending.front().head.lsn.seq > first;
  if (applied && (store.epoch_begins.empty() || store.epoch_begins.front().seq > first))
    shape.begins.push_back({store.first_epoch, first});
  shape.begins.insert(shape.begins.end(), store.epoch_begins.begin(), store.epoch_begins.end());
  for (const PendingRecord& record : store.pending) {
    if (shape.begins.empty() || shape.begins.back().epoch != record.head.lsn.epoch)
      shape.begins.push_back(record.head.lsn);
    if (record.head.kind == RecordKind::kMembers)
      shape.named.push_back({record.head.lsn, record.payload});
  }
  return shape;
}

class JournalImpl final : public Journal {
 public:
  JournalImpl(JournalOptions options, FileSystem& files, Clock& clock, StateMachine& state,
              std::unique_ptr<FileLock> lock, RecoveredStore store);
  ~JournalImpl() override { (void)Close(); }

  Status Start() { return writer_.Start(); }

  const RecoveryReport& recovery() const override { return report_; }
  Status Reserve(size_t payload_bytes) override;
  Status ReserveChange(size_t payload_bytes) override;
  Lsn Append(std::string_view payload, uint64_t changes) override;
  Lsn AppendJoined(std::string_view payload, size_t head_bytes, uint64_t changes) override;
  void AppendAt(const RecordHead& head, std::string_view payload, uint64_t changes) override;
  void AppendBarrier() override { AppendNote(RecordKind::kBarrier, {}); }
  void AppendMembers(std::string_view payload) override {
    AppendNote(RecordKind::kMembers, payload);
  }
  uint32_t epoch() const override { return epochs_.back().epoch; }
  void SetEpoch(uint32_t epoch) override;
  void SetSink(RecordSink* sink) override { sink_ = sink; }
  Lsn flushed_lsn() const override { return flushed_; }
  uint32_t EpochOf(uint64_t seq) const override;
  std::optional<uint64_t> LastSeqOf(uint32_t epoch) const override;
  Manifest CopyManifest() const override { return writer_.CopyManifest(); }
  bool holds_log_only() const override { return holds_log_only_; }
  void SetBacklog(uint64_t bytes) override { writer_.retention().SetBacklog(bytes); }
  void SetRetainBehind(uint64_t seq) override { writer_.retention().SetRetainBehind(seq); }
  void SetDamagedSnapshot(uint64_t number) override { writer_.retention().SetDamaged(number); }
  void RetainFrom(uint64_t segment) override { writer_.RetainFrom(segment); }
  void PinFrom(LogPin pin, uint64_t segment) override { writer_.PinFrom(pin, segment); }
  uint64_t BeginCut() override;
  Status CloseCut(uint64_t ordinal) override { return writer_.CloseCut(ordinal); }
  uint64_t TakeFileNumber() override { return writer_.TakeNumber(); }
  Status CheckStateIsNewest() const override;
  void SkipMicros(int64_t micros) override { last_commit_micros_ += micros; }
  void RequestSync() override { writer_.RequestSync(); }
  bool releases_undurable() const override {
    return options_.log_enabled && options_.sync_policy != SyncPolicy::kAlways;
  }
  void ReleaseWhenDurable() override;
  void SetTurnTime(int64_t wall_micros) override { turn_micros_ = wall_micros; }
  const NewestSnapshot& newest_snapshot() const override { return newest_; }
  uint64_t newest_snapshots() const override { return saves_; }
  void Flush() override;
  void Poll() override;
  Lsn last_lsn() const override { return last_; }
  int64_t last_commit_micros() const override { return last_commit_micros_; }
  Lsn durable_lsn() const override { return LsnOf(writer_.durable_ordinal()); }
  Lsn settled_lsn() const override;
  void AppendMark(const CommitMark& mark) override;
  void SetCommitted(Lsn lsn) override;
  uint64_t appended() const override { return last_.seq + epochs_.back().ahead; }
  uint64_t durable_appended() const override { return writer_.durable_ordinal(); }
  uint64_t released_appended() const override;
  LogShape TakeShape() override { return std::move(shape_); }
  std::vector<PendingRecord> TakePending() override { return std::move(pending_); }
  Lsn released_lsn() const override;
  bool healthy() const override { return !options_.log_enabled || writer_.healthy(); }
  Status StartSnapshot() override;
  bool snapshot_running() const override { return job_ != nullptr; }
  Status SaveNow() override;
  bool MaybeStartSnapshot() override;
  void SetSyncPolicy(SyncPolicy policy) override;
  Status SetLogEnabled(bool enabled) override;
  void SetSavePoints(std::vector<SavePoint> save_points) override {
    options_.save_points = std::move(save_points);
  }
  void SetRewriteTrigger(uint32_t percentage, uint64_t bytes_min) override {
    options_.rewrite_percentage = percentage;
    options_.rewrite_bytes_min = bytes_min;
  }
  void SetStopWritesOnSnapshotError(bool stop) override {
    options_.stop_writes_on_snapshot_error = stop;
  }
  void SetSnapshotsKept(uint32_t count) override {
    CELLAR_ASSERT(count > 0);
    options_.snapshots_kept = count;
    writer_.retention().SetSnapshotsKept(count);
    trim_.is_due = true;
  }
  JournalStats Stats() const override;
  Status Close() override;

 private:
  Lsn LsnOf(uint64_t ordinal) const {
    if (ordinal == 0) [[unlikely]]
      return {};
    size_t i = epochs_.size() - 1;
    while (i > 0 && epochs_[i].first_seq + epochs_[i].ahead > ordinal) --i;
    CELLAR_DEBUG_ASSERT(ordinal > epochs_[i].ahead);
    return {epochs_[i].epoch, ordinal - epochs_[i].ahead};
  }
  // Makes `lsn`, which another machine has given, the number of the next record: the last one, or
  // one that voids what stands from there on.
  void TakeNumber(Lsn lsn);
  // A record of its own number that is no command.
  void AppendNote(RecordKind kind, std::string_view payload);
  // The next record gets its number.
  void CountRecord(std::string_view payload, uint64_t changes);
  void FlushTurn();
  uint64_t ReleasedByPolicy() const;
  // AppendJoined with a log. Not inlined: without one the registers that it uses need no saving.
  [[gnu::noinline]] Lsn JoinOrAdd(std::string_view payload, size_t head_bytes, uint64_t changes);
  void AddRecord(const RecordHead& head, std::string_view payload);
  void AddCommand(std::string_view payload) {
    AddRecord({.lsn = last_, .commit_micros = last_commit_micros_}, payload);
  }
  void AddClaim() {
    AddRecord({.lsn = last_, .commit_micros = last_commit_micros_, .kind = RecordKind::kClaim}, {});
  }
  // Commit times ascend strictly, even if the clock stands still or goes back: ids of feed entries
  // are made of them.
  void CountStep() { last_commit_micros_ = std::max(turn_micros_, last_commit_micros_ + 1); }
  // The last record of the turn gets its hash: when the next one is added, or the turn ends.
  void SealLastRecord();
  void ClaimIfIdle();
  Status ReserveRoom(size_t payload_bytes);
  // Waits for the snapshot thread.
  Status FinishSnapshot();
  // What that thread does.
  void RunSnapshot(SnapshotJob* job);
  void JoinEndedThread() {
    if (ended_thread_.joinable()) ended_thread_.join();
  }
  // Snapshots that are too many go, in a thread: to remove a large file takes a while.
  void TrimIfDue();
  uint64_t BytesToLoad() const;
  bool SavePointIsDue() const;
  bool RewriteIsDue() const;

  JournalOptions options_;
  FileSystem& files_;
  Clock& clock_;
  StateMachine& state_;
  const std::unique_ptr<FileLock> lock_;
  const RecoveryReport report_;
  std::vector<EpochBegin> epochs_;  // that the log tells of, as they were written, never empty
  bool holds_log_only_{false};
  LogShape shape_;
  std::vector<PendingRecord> pending_;
  Lsn committed_;  // of a set's member
  const uint64_t committed_seq_at_start_;
  bool closed_{false};
  Status close_status_;

  RecordSink* sink_{nullptr};
  Lsn flushed_;
  // The records of this turn that have not been handed over, and what the next one follows.
  LogBatch turn_;
  static constexpr size_t kSealed{SIZE_MAX};
  size_t unsealed_at_{kSealed};  // where its last record begins, if that has no hash yet
  bool may_be_joined_{false};    // the last one
  // Ordinals of ReleaseWhenDurable: the first that may not be durable yet, and the last. 0: none.
  uint64_t held_first_{0};
  uint64_t held_last_{0};
  bool sync_due_{false};  // once what they are of is with the writer
  Lsn last_;
  uint64_t chain_;  // of the last record that has one
  int64_t turn_micros_{0};
  int64_t last_commit_micros_;
  uint64_t stream_end_{0};
  bool begin_segment_{false};
  uint64_t claimed_seq_;  // the newest claim in the log
  uint64_t idle_seq_{0};
  int64_t idle_since_micros_{0};

  uint64_t changes_{0};
  uint64_t changes_saved_{0};
  std::unique_ptr<SnapshotJob> job_;
  // Of the last job, which is done. The thread has a low priority: the loop does not wait until it
  // has a processor once more to end on, but joins it when the next one is made.
  std::thread ended_thread_;
  struct Trim {
    std::thread thread;
    std::atomic<bool> done{false};
    std::atomic<bool> failed{false};
    bool is_due{false};
    int64_t retry_micros{0};
  };
  Trim trim_;
  uint64_t snapshot_bytes_{0};
  NewestSnapshot newest_;
  Lsn snapshot_lsn_;
  uint64_t base_bytes_{0};
  uint64_t saves_{0};
  int64_t last_save_unix_s_;
  int64_t last_save_micros_;  // monotonic
  int64_t last_attempt_micros_{0};
  int64_t last_save_s_{-1};
  std::string last_save_error_;  // empty: the last one went well

  LogWriter writer_;  // last: its thread goes first
};

JournalImpl::JournalImpl(JournalOptions options, FileSystem& files, Clock& clock,
                         StateMachine& state, std::unique_ptr<FileLock> lock, RecoveredStore store)
    : options_(std::move(options)),
      files_(files),
      clock_(clock),
      state_(state),
      lock_(std::move(lock)),
      report_(std::move(store.report)),
      epochs_(EpochsOf(store)),
      shape_(ShapeOf(store)),
      pending_(std::move(store.pending)),
      committed_seq_at_start_(shape_.committed.seq),
      flushed_(store.end.last),
      last_(store.end.last),
      chain_(store.end.chain),
      last_commit_micros_(store.end.commit_micros),
      claimed_seq_(store.end.last.seq),
      last_save_unix_s_(clock.WallMicros() / kMicrosPerSecond),
      last_save_micros_(clock.MonotonicMicros()),
      writer_(options_, files, clock, store) {
  if (store.manifest.snapshot) {
    snapshot_bytes_ = store.manifest.snapshot->bytes;
    newest_ = std::move(store.newest);
    snapshot_lsn_ = store.manifest.snapshot->lsn;
  }
  base_bytes_ = snapshot_bytes_;
  holds_log_only_ = store.manifest.holds_log_only;
  trim_.is_due = store.manifest.earlier.size() >= options_.snapshots_kept;
  // One that cannot be removed is a leftover again at the next start.
  for (const std::string& path : store.leftovers) (void)files_.Remove(path);
}

// Without a log there is nothing to reserve. Then save points are what durability there is, and a
// failed one stops writes if it is to (stop-writes-on-bgsave-error).
CELLAR_INLINE Status JournalImpl::ReserveRoom(size_t payload_bytes) {
  if (options_.log_enabled)
    return writer_.Reserve(stream_end_ + kRecordHeaderBytes + payload_bytes + kReserveSlackBytes);
  if (!last_save_error_.empty() && options_.stop_writes_on_snapshot_error &&
      !options_.save_points.empty()) [[unlikely]]
    return NoSnapshot(last_save_error_);
  return Status::Ok();
}

Status JournalImpl::Reserve(size_t payload_bytes) {
  if (payload_bytes > kRecordPayloadBytesMax) [[unlikely]]
    return RecordTooLarge(payload_bytes);
  return ReserveRoom(payload_bytes);
}

Status JournalImpl::ReserveChange(size_t payload_bytes) {
  if (payload_bytes > options_.change_bytes_max) [[unlikely]]
    return ChangeTooLarge(payload_bytes, options_.change_bytes_max);
  return ReserveRoom(payload_bytes);
}

// The claim says how far the log was known to be durable when the record was written: at recovery a
// tear in the middle of what is claimed is damage, and no torn tail. The hash of this record is
// taken when the next one comes, since a small change may still join it.
void JournalImpl::AddRecord(const RecordHead& head, std::string_view payload) {
  CELLAR_DEBUG_ASSERT(payload.size() <= kRecordPayloadBytesMax);
  const size_t bytes = kRecordHeaderBytes + payload.size();
  const Lsn claim = durable_lsn();
  SealLastRecord();
  unsealed_at_ = turn_.bytes.size();
  RecordHead claiming = head;
  claiming.claim = std::min(claim, head.lsn);
  LayOutRecord(turn_.bytes.Grow(bytes), chain_, claiming, payload);
  claimed_seq_ = claim.seq;
  stream_end_ += bytes;
  if (turn_.bytes.size() >= kPieceBytes && options_.sync_policy != SyncPolicy::kAlways) Flush();
}

void JournalImpl::SealLastRecord() {
  if (unsealed_at_ == kSealed) return;
  CELLAR_DEBUG_ASSERT(unsealed_at_ + kRecordHeaderBytes <= turn_.bytes.size());
  chain_ = SealRecord(turn_.bytes.data() + unsealed_at_);
  unsealed_at_ = kSealed;
}

CELLAR_INLINE void JournalImpl::CountRecord(std::string_view payload, uint64_t changes) {
  CELLAR_ASSERT(!closed_);
  CELLAR_ASSERT(!payload.empty());
  last_ = {epochs_.back().epoch, last_.seq + 1};
  CountStep();
  changes_ += changes;
}

Lsn JournalImpl::Append(std::string_view payload, uint64_t changes) {
  CountRecord(payload, changes);
  if (options_.log_enabled) AddCommand(payload);
  may_be_joined_ = false;
  return last_;
}

Lsn JournalImpl::AppendJoined(std::string_view payload, size_t head_bytes, uint64_t changes) {
  if (options_.log_enabled) return JoinOrAdd(payload, head_bytes, changes);
  CountRecord(payload, changes);
  return last_;
}

// Small changes of one turn share a record while it is small: one header and one hash for many of
// them. Nothing of a turn is acknowledged before its flush, so a record may grow until then.
Lsn JournalImpl::JoinOrAdd(std::string_view payload, size_t head_bytes, uint64_t changes) {
  CELLAR_ASSERT(head_bytes <= payload.size());
  const size_t more_bytes = payload.size() - head_bytes;
  // Its steps are told to be a microsecond apart (FeedDecoder): one at a later time begins another.
  const bool is_later = turn_micros_ > last_commit_micros_ + 1;
  if (unsealed_at_ == kSealed || !may_be_joined_ || is_later ||
      turn_.bytes.size() - unsealed_at_ + more_bytes > kJoinedRecordBytesMax) {
    CountRecord(payload, changes);
    AddCommand(payload);
    may_be_joined_ = true;
    return last_;
  }
  CELLAR_ASSERT(!closed_);
  std::memcpy(turn_.bytes.Grow(more_bytes), payload.data() + head_bytes, more_bytes);
  char* const record = turn_.bytes.data() + unsealed_at_;
  std::memcpy(record + kRecordHeaderBytes, payload.data(), head_bytes);
  CountStep();
  ExtendRecord(record, more_bytes, last_commit_micros_);
  stream_end_ += more_bytes;
  changes_ += changes;
  return last_;
}

void JournalImpl::AppendAt(const RecordHead& head, std::string_view payload, uint64_t changes) {
  CELLAR_ASSERT(!closed_);
  CELLAR_ASSERT(head.is_entry());
  const bool voids = head.lsn.seq <= last_.seq;
  CELLAR_ASSERT(voids ? options_.set_member : head.lsn > last_);
  CELLAR_ASSERT(voids || head.commit_micros > last_commit_micros_);
  TakeNumber(head.lsn);
  last_commit_micros_ = head.commit_micros;
  changes_ += changes;
  if (options_.log_enabled) AddRecord(head, payload);
  may_be_joined_ = false;
}

// A number that is not behind the last one voids all from there on, as a new leader may ask. The
// records stay in the log, and ordinals go on counting: a snapshot that holds a voided record must
// not be installed.
void JournalImpl::TakeNumber(Lsn lsn) {
  uint64_t ahead = epochs_.back().ahead;
  if (lsn.seq <= last_.seq) {
    CELLAR_ASSERT(lsn.epoch != last_.epoch);
    CELLAR_ASSERT(lsn.seq > committed_.seq);
    if (job_ && lsn.seq <= job_->task.lsn.seq) job_->Decide(SnapshotJob::Permit::kRefused);
    ahead += last_.seq - lsn.seq + 1;
    for (EpochBegin& begin : epochs_) begin.in_force = begin.in_force && begin.first_seq < lsn.seq;
    epochs_.push_back({lsn.seq, lsn.epoch, ahead});
  } else if (lsn.epoch != epochs_.back().epoch) {
    epochs_.push_back({lsn.seq, lsn.epoch, ahead});
  }
  last_ = lsn;
}

void JournalImpl::AppendMark(const CommitMark& mark) {
  CELLAR_ASSERT(!closed_);
  CELLAR_ASSERT(last_ != Lsn{});
  if (!options_.log_enabled) return;
  AddRecord({.lsn = last_, .commit_micros = last_commit_micros_, .kind = RecordKind::kCommit},
            EncodeCommitMark(mark));
  may_be_joined_ = false;
}

void JournalImpl::SetCommitted(Lsn lsn) {
  CELLAR_ASSERT(lsn >= committed_);
  committed_ = lsn;
  if (job_ && job_->task.lsn.seq <= lsn.seq) job_->Decide(SnapshotJob::Permit::kGiven);
}

void JournalImpl::AppendNote(RecordKind kind, std::string_view payload) {
  CELLAR_ASSERT(!closed_);
  last_ = {epochs_.back().epoch, last_.seq + 1};
  CountStep();
  if (options_.log_enabled)
    AddRecord({.lsn = last_, .commit_micros = last_commit_micros_, .kind = kind}, payload);
  may_be_joined_ = false;
}

void JournalImpl::SetEpoch(uint32_t epoch) {
  CELLAR_ASSERT(epoch >= epochs_.back().epoch);
  if (epoch == epochs_.back().epoch) return;
  epochs_.push_back({last_.seq + 1, epoch, epochs_.back().ahead});
  may_be_joined_ = false;
}

// The newest record that is durable, in force and, in a set, committed. Epochs are looked through
// from the newest on; those that have been voided do not count.
Lsn JournalImpl::settled_lsn() const {
  const uint64_t durable = writer_.durable_ordinal();
  uint64_t seq = 0;
  uint64_t end = last_.seq;  // of the records in force of the epoch at hand
  for (auto begin = epochs_.rbegin(); begin != epochs_.rend(); ++begin) {
    if (!begin->in_force) continue;
    if (begin->first_seq + begin->ahead <= durable) {
      seq = std::min(durable - begin->ahead, end);
      break;
    }
    end = begin->first_seq - 1;
  }
  if (options_.set_member) seq = std::min(seq, std::max(committed_.seq, committed_seq_at_start_));
  return seq == 0 ? Lsn{} : Lsn{EpochOf(seq), seq};
}

uint32_t JournalImpl::EpochOf(uint64_t seq) const {
  CELLAR_ASSERT(seq <= last_.seq);
  size_t i = epochs_.size() - 1;
  while (i > 0 && (!epochs_[i].in_force || epochs_[i].first_seq > seq)) --i;
  return epochs_[i].epoch;
}

std::optional<uint64_t> JournalImpl::LastSeqOf(uint32_t epoch) const {
  if (epoch < epochs_.front().epoch) return std::nullopt;
  for (const EpochBegin& begin : epochs_) {
    if (begin.in_force && begin.epoch > epoch) return begin.first_seq - 1;
  }
  return last_.seq;
}

// The sink, if there is one, gets the records before the sync thread: followers may have them while
// the disk is still busy.
void JournalImpl::Flush() {
  FlushTurn();
  if (!std::exchange(sync_due_, false)) return;
  writer_.RequestSync();
}

void JournalImpl::FlushTurn() {
  if (turn_.bytes.empty()) return;
  SealLastRecord();
  turn_.last = last_;
  turn_.ordinal = appended();
  turn_.last_hash = chain_;
  turn_.last_commit_micros = last_commit_micros_;
  turn_.stream_end = stream_end_;
  turn_.begins_segment = begin_segment_;
  begin_segment_ = false;
  flushed_ = last_;
  if (sink_ != nullptr) [[unlikely]]
    sink_->OnRecords(turn_.bytes.view(), last_);
  writer_.Submit(&turn_);
}

// Once the log is quiet, one record without payload says that all before it is on disk: from then
// on a flipped bit anywhere in them is known to be damage.
void JournalImpl::ClaimIfIdle() {
  if (!options_.log_enabled || claimed_seq_ == last_.seq) return;
  const int64_t now = clock_.MonotonicMicros();
  if (idle_seq_ != last_.seq) {
    idle_seq_ = last_.seq;
    idle_since_micros_ = now;
  }
  if (now - idle_since_micros_ < kClaimAfterIdleMicros || durable_lsn() != last_) return;
  if (!writer_.healthy() || !Reserve(0).ok()) return;
  AddClaim();
  Flush();
}

// A trim that fails is tried again after a pause. One runs at a time.
void JournalImpl::TrimIfDue() {
  if (trim_.thread.joinable()) {
    if (!trim_.done.load(std::memory_order_acquire)) return;
    trim_.thread.join();
    if (trim_.failed) {
      trim_.is_due = true;
      trim_.retry_micros = clock_.MonotonicMicros() + kSnapshotRetryMicros;
    }
  }
  if (!trim_.is_due || clock_.MonotonicMicros() < trim_.retry_micros) return;
  trim_.is_due = false;
  trim_.done = false;
  trim_.thread = std::thread([this] {
    SetThreadName("cellar-trim");
    LowerThreadPriority();
    std::vector<std::string> superseded;
    trim_.failed = !writer_.TrimSnapshots(&superseded).ok();
    for (const std::string& path : superseded) (void)files_.Remove(path);
    trim_.done.store(true, std::memory_order_release);
  });
}

void JournalImpl::Poll() {
  ClaimIfIdle();
  TrimIfDue();
  if (job_ && job_->done.load(std::memory_order_acquire)) (void)FinishSnapshot();
}

// Replies that depend on no newer record may leave; journal.h says what each policy promises by
// that.
Lsn JournalImpl::released_lsn() const {
  if (!options_.log_enabled) return kLsnMax;  // and no reply needs a gate
  if (writer_.held()) return last_;
  return LsnOf(released_appended());
}

// Of several such records the first one holds back what is behind it, until it is durable; then,
// for a moment, whatever is not durable until the last one is.
void JournalImpl::ReleaseWhenDurable() {
  if (!releases_undurable()) return;
  if (writer_.durable_ordinal() >= held_last_) held_first_ = appended();
  held_last_ = appended();
  may_be_joined_ = false;
  sync_due_ = true;
}

uint64_t JournalImpl::released_appended() const {
  const uint64_t durable = writer_.durable_ordinal();
  if (durable < held_last_) [[unlikely]] {
    if (durable >= held_first_) return durable;
    return std::max(durable, std::min(ReleasedByPolicy(), held_first_ - 1));
  }
  return ReleasedByPolicy();
}

uint64_t JournalImpl::ReleasedByPolicy() const {
  if (options_.sync_policy == SyncPolicy::kAlways || !writer_.healthy())
    return writer_.durable_ordinal();
  if (options_.sync_policy == SyncPolicy::kNo) return writer_.written_ordinal();
  const int64_t oldest = writer_.oldest_unsynced_micros();
  const bool lags = oldest != 0 && clock_.MonotonicMicros() - oldest > kReleaseLagMicros;
  return lags ? writer_.durable_ordinal() : writer_.written_ordinal();
}

uint64_t JournalImpl::BeginCut() {
  CELLAR_ASSERT(!closed_);
  Flush();
  // Only a mark: the sync thread begins the segment when it comes to the next batch.
  begin_segment_ = true;
  return appended();
}

Status JournalImpl::CheckStateIsNewest() const {
  if (!options_.set_member || !options_.state_is_newest || options_.state_is_newest())
    return Status::Ok();
  return Status::Error(ErrorCode::kTryAgain, "the newest changes are not applied yet");
}

// The log is cut first, so that the segment behind the cut holds exactly what the snapshot lacks.
// Taking the state costs O(trees); all writing is the thread's.
Status JournalImpl::StartSnapshot() {
  CELLAR_ASSERT(!closed_);
  if (job_) return Status::Error(ErrorCode::kErr, "Background save already in progress");
  RETURN_IF_ERROR(CheckStateIsNewest());
  (void)BeginCut();
  CELLAR_ASSERT(turn_.bytes.empty());  // what the snapshot holds is not in the next segment
  job_ = std::make_unique<SnapshotJob>();
  SnapshotJob* job = job_.get();
  job->task = {.directory = options_.directory,
               .number = writer_.TakeNumber(),
               .lsn = last_,
               .created_micros = static_cast<uint64_t>(clock_.WallMicros()),
               .commit_micros = last_commit_micros_,
               .members = options_.members ? options_.members() : std::string()};
  if (options_.set_member && committed_.seq < last_.seq)
    job->permit = SnapshotJob::Permit::kAwaited;
  job->ordinal = appended();
  job->changes_before = changes_;
  job->begin_micros = clock_.MonotonicMicros();
  last_attempt_micros_ = job->begin_micros;
  JoinEndedThread();
  job->state = state_.TakeSnapshot();
  for (const auto& tree : job->state.trees) job->cells_total += tree.snapshot.entries();
  job->thread = std::thread([this, job] { RunSnapshot(job); });
  return Status::Ok();
}

// A member's snapshot may hold records that are not committed yet. The file is written all the
// same, and installed when they are, or removed when they never will be.
void JournalImpl::RunSnapshot(SnapshotJob* job) {
  SetThreadName("cellar-snapshot");
  LowerThreadPriority();
  Result<SnapshotEntry> entry = WriteSnapshot(files_, job->task, job->state, &job->progress);
  job->status = entry.status();
  if (entry.ok()) {
    job->entry = *entry;
    job->status = job->WaitForPermit();
    std::vector<std::string> superseded;
    if (job->status.ok()) {
      job->status = writer_.InstallSnapshot(*entry, job->ordinal, &superseded);
    } else {
      superseded.push_back(
          JoinPath(options_.directory, FormatFileName(StoreFileKind::kSnapshot, entry->number)));
    }
    for (const std::string& path : superseded) (void)files_.Remove(path);
  }
  job->done.store(true, std::memory_order_release);
  if (options_.wake) options_.wake();
}

// In the loop: takes over what the thread has found. A failure leaves everything as it was; the
// next attempt comes after kSnapshotRetryMicros.
Status JournalImpl::FinishSnapshot() {
  CELLAR_ASSERT(job_ != nullptr);
  const std::unique_ptr<SnapshotJob> job = std::move(job_);
  CELLAR_ASSERT(!ended_thread_.joinable());
  ended_thread_ = std::move(job->thread);
  if (!job->done.load(std::memory_order_acquire)) JoinEndedThread();
  const int64_t now = clock_.MonotonicMicros();
  last_save_s_ = (now - job->begin_micros) / kMicrosPerSecond;
  if (!job->status.ok()) {
    last_save_error_ = job->status.text();
    return job->status;
  }
  last_save_error_.clear();
  last_save_unix_s_ = clock_.WallMicros() / kMicrosPerSecond;
  last_save_micros_ = now;
  changes_saved_ = job->changes_before;
  snapshot_bytes_ = job->entry.bytes;
  newest_ = {.catalog = std::move(job->state.catalog),
             .trees = std::move(job->progress.trees),
             .file_bytes = job->entry.bytes,
             .logged = std::move(job->state.logged)};
  snapshot_lsn_ = job->entry.lsn;
  base_bytes_ = BytesToLoad();
  ++saves_;
  return Status::Ok();
}

Status JournalImpl::SaveNow() {
  // This waits in the loop, and only the loop can learn of a commit.
  const bool would_wait = (job_ && job_->IsAwaited()) ||
                          (options_.set_member && !closed_ && committed_.seq < last_.seq);
  if (would_wait)
    return Status::Error(ErrorCode::kTryAgain, "the newest changes are not committed yet");
  if (job_) (void)FinishSnapshot();  // of an earlier moment: not what is asked for
  RETURN_IF_ERROR(StartSnapshot());
  return FinishSnapshot();
}

bool JournalImpl::SavePointIsDue() const {
  CELLAR_ASSERT(changes_ >= changes_saved_);
  const uint64_t changes = changes_ - changes_saved_;
  const int64_t micros = clock_.MonotonicMicros() - last_save_micros_;
  return changes > 0 && std::any_of(options_.save_points.begin(), options_.save_points.end(),
                                    [&](const SavePoint& point) {
                                      return changes >= point.changes &&
                                             micros > int64_t{point.seconds} * kMicrosPerSecond;
                                    });
}

// By a start: what is kept of the log for other ends does not count.
uint64_t JournalImpl::BytesToLoad() const {
  const LogWriterStats log = writer_.Stats();
  CELLAR_ASSERT(log.log_bytes >= log.covered_bytes);
  return snapshot_bytes_ + log.log_bytes - log.covered_bytes;
}

bool JournalImpl::RewriteIsDue() const {
  if (!options_.log_enabled || options_.rewrite_percentage == 0) return false;
  const uint64_t bytes = BytesToLoad();
  if (bytes < options_.rewrite_bytes_min || bytes <= base_bytes_) return false;
  const uint64_t growth = bytes - base_bytes_;
  return growth / std::max<uint64_t>(base_bytes_ / 100, 1) >= options_.rewrite_percentage;
}

// Four reasons, any of which is enough: a log that counts only from the next snapshot on, a start
// from an older one, save points, and a log that has grown.
bool JournalImpl::MaybeStartSnapshot() {
  if (job_ || closed_) return false;
  const bool retries = !last_save_error_.empty();
  if (retries && clock_.MonotonicMicros() - last_attempt_micros_ < kSnapshotRetryMicros)
    return false;
  const bool log_needs_one = options_.log_enabled && writer_.held();
  // The newest one on disk is damaged.
  const bool start_needs_one = report_.from_earlier && saves_ == 0;
  if (!log_needs_one && !start_needs_one && !SavePointIsDue() && !RewriteIsDue()) return false;
  return StartSnapshot().ok();
}

void JournalImpl::SetSyncPolicy(SyncPolicy policy) {
  options_.sync_policy = policy;
  writer_.SetSyncPolicy(policy);
}

// A log that is turned on does not count before a snapshot says from where: until then replies do
// not wait for it (held).
Status JournalImpl::SetLogEnabled(bool enabled) {
  if (enabled == options_.log_enabled) return Status::Ok();
  if (job_) return Status::Error(ErrorCode::kErr, "Background save in progress, try again later");
  if (!enabled) {
    Flush();
    RETURN_IF_ERROR(writer_.DisableLog());
    options_.log_enabled = false;
    return Status::Ok();
  }
  RETURN_IF_ERROR(
      writer_.EnableLog({.last = last_, .chain = chain_, .commit_micros = last_commit_micros_},
                        appended(), stream_end_));
  options_.log_enabled = true;
  claimed_seq_ = last_.seq;
  return StartSnapshot();
}

// What the loop knows itself, and what the log's thread has published last, which may be a moment
// older. Records of this turn are not the thread's yet, and count as unwritten.
JournalStats JournalImpl::Stats() const {
  JournalStats stats;
  stats.log_enabled = options_.log_enabled;
  stats.sync_policy = options_.sync_policy;
  stats.changes_since_save = changes_ - changes_saved_;
  stats.save_in_progress = job_ != nullptr;
  stats.last_save_unix_s = last_save_unix_s_;
  stats.last_save_ok = last_save_error_.empty();
  stats.last_save_error = last_save_error_;
  stats.last_save_s = last_save_s_;
  stats.saves = saves_;
  if (job_) {
    stats.current_save_s = (clock_.MonotonicMicros() - job_->begin_micros) / kMicrosPerSecond;
    stats.save_cells_done = job_->progress.cells_done.load(std::memory_order_relaxed);
    stats.save_cells_total = job_->cells_total;
  }
  const LogWriterStats log = writer_.Stats();
  stats.snapshot_bytes = snapshot_bytes_;
  stats.snapshot_lsn = snapshot_lsn_;
  stats.snapshots = log.snapshots;
  stats.snapshots_bytes = log.snapshots_bytes;
  stats.log_bytes = log.log_bytes;
  stats.log_bytes_allocated = log.log_bytes_allocated;
  stats.log_segments = log.log_segments;
  stats.appended_bytes = stream_end_;
  stats.base_bytes = base_bytes_;
  stats.current_bytes = BytesToLoad();
  stats.buffer_bytes = log.unwritten_bytes + turn_.bytes.size();
  stats.unsynced_bytes = log.unsynced_bytes + turn_.bytes.size();
  stats.spare_bytes = log.spare_bytes;
  stats.sync_in_progress = log.sync_in_progress;
  stats.syncs = log.syncs;
  stats.delayed_syncs = log.delayed_syncs;
  stats.log_ok = log.ok;
  stats.log_room_ok = log.room_ok;
  stats.log_room_bytes = log.room_bytes;
  stats.log_error = log.error;
  stats.log_failures = log.failures;
  stats.last_lsn = last_;
  stats.durable_lsn = durable_lsn();
  return stats;
}

// In this order: what the loop still holds, then the snapshot's thread, then a last claim, if all
// is on the disk, and the sync thread.
Status JournalImpl::Close() {
  if (closed_) return close_status_;
  Flush();
  // A log that no manifest names yet would go: the snapshot that makes it count is waited for.
  if (options_.log_enabled && writer_.held() && job_) (void)FinishSnapshot();
  if (options_.log_enabled && writer_.held()) (void)SaveNow();
  if (job_) {
    job_->progress.cancelled = true;
    job_->Decide(SnapshotJob::Permit::kRefused);
    job_->thread.join();
    job_ = nullptr;
  }
  JoinEndedThread();
  if (trim_.thread.joinable()) trim_.thread.join();
  if (options_.log_enabled && writer_.Sync().ok() && durable_lsn() == last_ &&
      claimed_seq_ != last_.seq) {
    AddClaim();
    Flush();
  }
  CELLAR_ASSERT(job_ == nullptr);
  closed_ = true;
  close_status_ = writer_.Close();
  return close_status_;
}

}  // namespace

namespace {

// Refuses to begin a store where one may be expected: a name that is mistyped and a disk that is
// not mounted both look like a first start.
Status CheckMayBegin(FileSystem& files, const std::string& directory, bool exists) {
  const auto refuse = [&](std::string_view what) {
    return Status::Error(
        ErrorCode::kIo,
        fmt::format(
            "the data directory {} {}. Is the name right, and the disk mounted? A new store "
            "is begun there with --create-dir yes",
            directory, what));
  };
  if (!exists) return refuse("does not exist");
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  const bool may_open = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name == kManifestName || name == kNewStoreName || ParseFileName(name).has_value();
  });
  return may_open ? Status::Ok() : refuse("holds no store");
}

}  // namespace

// The lock comes before the first look into the files: two processes that recover the same folder
// would destroy it. What belongs to a replica set is refused where the configuration names none.
Result<std::unique_ptr<Journal>> Journal::Open(JournalOptions options, FileSystem& files,
                                               Clock& clock, StateMachine& state,
                                               const LoadProgressCallback& progress,
                                               StateContent content) {
  const std::string& directory = options.directory;
  ASSIGN_OR_RETURN(const bool exists, files.Exists(directory));
  if (!options.may_create) RETURN_IF_ERROR(CheckMayBegin(files, directory, exists));
  if (!exists) {
    if (const Status made = files.CreateDirectory(directory); !made.ok()) {
      return Status::Error(made.code(), "cannot create the data directory: " + made.text());
    }
    // Else a crash could take the folder itself, with all that was acknowledged in it.
    RETURN_IF_ERROR(files.SyncDirectory(JoinPath(directory, "..")));
  }
  ASSIGN_OR_RETURN(auto lock, files.Lock(JoinPath(directory, kLockName)));
  ASSIGN_OR_RETURN(
      RecoveredStore store,
      RecoverStore(files, clock, directory, state,
                   {.content = content,
                    .up_to = options.set_member ? ApplyUpTo::kCommitMark : ApplyUpTo::kEnd,
                    .begins_as = options.log_only ? StoreContent::kLogOnly : StoreContent::kState},
                   progress));
  if (!options.set_member && store.manifest.holds_log_only) {
    return Status::Error(ErrorCode::kIo,
                         fmt::format("{} belongs to a witness: it holds the log of a replica set, "
                                     "and no data. Say which set with cluster-nodes, or empty it",
                                     directory));
  }
  // What a member's log holds may yet be voided by others, and nothing else may be added to it.
  ASSIGN_OR_RETURN(const bool has_identity, files.Exists(JoinPath(directory, kReplicaFileName)));
  if (!options.set_member && !store.members.empty() && has_identity) {
    return Status::Error(
        ErrorCode::kIo,
        fmt::format("{} belongs to a member of a replica set: say which with cluster-nodes",
                    directory));
  }
  store.report.directory_created = !exists;
  auto journal = std::make_unique<JournalImpl>(std::move(options), files, clock, state,
                                               std::move(lock), std::move(store));
  RETURN_IF_ERROR(journal->Start());
  return std::unique_ptr<Journal>(std::move(journal));
}

}  // namespace cellar
