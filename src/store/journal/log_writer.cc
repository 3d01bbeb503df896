// The sync thread: how records get from the loop to the disk. See log_writer.h. What happens to the
// manifest is in log_writer_manifest.cc.
#include "store/journal/log_writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "base/os/thread.h"

namespace cellar {
namespace {

// `everysec`, and a bound for `no`: what is not synced is kept in memory, to be written again.
constexpr int64_t kSyncEveryMicros = 1'000'000;
constexpr int64_t kSyncRarelyMicros = 30'000'000;
// Beyond, a sync is due at once: larger ones gain nothing, and each needs buffers of as much until
// it has ended.
constexpr uint64_t kUnsyncedBytesMax = 16 << 20;
// What is written twice for the sake of fast syncs (SegmentFile::ZeroAhead): small commits only.
constexpr size_t kZeroAheadBatchBytesMax = 64 << 10;
// As much is written while the loop may have to wait for it, so that the tail can be opened.
constexpr size_t kCatchUpBytes = 64 << 10;
constexpr size_t kTightPart = 4;  // of a buffer: a batch that fills less is copied out of it
constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kWaitMicrosMax = 3'600'000'000;

Status Misconf(const std::string& why) {
  return Status::Error(ErrorCode::kMisconf, "Errors writing to the log: " + why);
}

}  // namespace

// Members of three kinds stand in the header: of the loop, of the thread, and those under mutex_.
// Before Start all belong to the caller.
LogWriter::LogWriter(const JournalOptions& options, FileSystem& files, Clock& clock,
                     const RecoveredStore& store)
    : options_(options),
      files_(files),
      clock_(clock),
      durable_ordinal_(store.end.last.seq),
      retention_(options.snapshots_kept),
      tail_(clock, options.slow_write_micros),
      spares_(options.spares_kept_micros),
      next_number_(store.next_number),
      policy_(options.sync_policy),
      policy_now_(options.sync_policy),
      lanes_(clock, [this](uint64_t ordinal) { LaneEnded(ordinal); }),
      pacer_(clock),
      base_(store.end),
      base_ordinal_(store.end.last.seq),
      manifest_(store.manifest),
      garbage_(store.dropped),
      room_(options, clock) {
  CELLAR_ASSERT(next_number_ >= manifest_.next);
  PublishManifest();
}

LogWriter::~LogWriter() { (void)Close(); }

Status LogWriter::Start() {
  CELLAR_ASSERT(!thread_.joinable());
  RETURN_IF_ERROR(options_.log_enabled ? StartLog() : StartWithoutLog());
  const std::lock_guard lock(mutex_);
  PublishState();
  ended_ = false;
  thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

// Goes on in the last segment if that is open, as recovery leaves it; else a fresh one is made, in
// the way in which a failure is recovered from.
Status LogWriter::StartLog() {
  enabled_ = true;
  std::vector<SegmentEntry>& entries = manifest_.segments;
  if (!entries.empty() && !entries.back().end) {
    ASSIGN_OR_RETURN(segment_,
                     SegmentFile::Reopen(files_, options_.directory, entries.back(), base_));
    room_.Ensure(segment_.get(), 0);
    PublishGrant();
    return Status::Ok();
  }
  healthy_ = false;
  TryToResume();
  // A full disk is something to wait for; anything else the operator should see now.
  if (healthy() || !room_.failure().empty()) return Status::Ok();
  return Status::Error(ErrorCode::kIo, failure_);
}

Status LogWriter::StartWithoutLog() {
  std::vector<SegmentEntry>& entries = manifest_.segments;
  // Nobody writes to the last segment any more: it ends where recovery has read to.
  if (!entries.empty() && !entries.back().end)
    entries.back().end = SegmentEntry::End{base_.offset, base_.last};
  InstallResult result = Install(manifest_);
  // What is on disk is as good, until there is room.
  const bool is_full = !result.status.ok() && result.status.code() == ErrorCode::kNoSpace;
  if (is_full) return Status::Ok();
  return std::move(result.status);
}

Status LogWriter::Close() {
  if (!thread_.joinable()) return close_status_;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_cv_.notify_one();
  thread_.join();
  return close_status_;
}

// --- loop thread ---

// The loop has come to the end of what is granted: the thread is woken and asked for more, and
// waited for. A disk without room answers too, by room_trouble_.failures.
Status LogWriter::ReserveSlow(uint64_t stream_end) {
  std::unique_lock lock(mutex_);
  if (!healthy()) return Misconf(stats_.error);
  if (!room_trouble_.error.empty()) return RefuseForRoom();
  requested_stream_end_ = stream_end;
  const uint64_t failures = room_trouble_.failures;
  work_cv_.notify_one();
  const bool answered =
      reply_cv_.wait_for(lock, std::chrono::microseconds(kReserveWaitMicros), [&] {
        return granted_ >= stream_end || !healthy() || room_trouble_.failures != failures || ended_;
      });
  if (granted_ >= stream_end) return Status::Ok();
  requested_stream_end_ = 0;
  if (!answered) return Misconf("the disk does not keep up");
  return room_trouble_.error.empty() ? Misconf(stats_.error) : RefuseForRoom();
}

Status LogWriter::RefuseForRoom() {
  CELLAR_ASSERT(!room_trouble_.error.empty());
  room_trouble_.refused = true;
  return Misconf(room_trouble_.error);
}

// What the thread takes at once nothing can join, and it is kept until the next sync, a second or
// half a minute: thousands of buffers that are nearly empty, if they were kept as they are.
LogBatch LogWriter::TightCopy(const LogBatch& batch) {
  LogBatch copy;
  copy.bytes = ByteBuffer::CopyOf(batch.bytes.view());
  copy.last = batch.last;
  copy.ordinal = batch.ordinal;
  copy.last_hash = batch.last_hash;
  copy.last_commit_micros = batch.last_commit_micros;
  copy.stream_end = batch.stream_end;
  copy.submitted_micros = batch.submitted_micros;
  copy.begins_segment = batch.begins_segment;
  copy.is_written = batch.is_written;
  return copy;
}

// Under a lazy policy the bytes are written here, without a change of threads; the batch is queued
// all the same, since the thread has to sync it. Batches that fit into the last one's buffer join
// it. The thread is woken only where it would sleep too long or too much has gathered.
void LogWriter::Submit(LogBatch* batch) {
  CELLAR_ASSERT(!batch->bytes.empty());
  batch->submitted_micros = clock_.MonotonicMicros();
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    const bool lazy = policy_ != SyncPolicy::kAlways;
    // Only the thread writes if each of its writes is synced.
    if (!lazy) tail_.Close();
    batch->is_written = tail_.Write(batch->bytes.view());
    if (batch->is_written) PublishWritten(batch->ordinal);
    queue_bytes_ += batch->bytes.size();
    if (!batch->is_written) queue_unwritten_bytes_ += batch->bytes.size();
    if (oldest_unsynced_micros_ == 0) oldest_unsynced_micros_ = batch->submitted_micros;
    const bool awaited = lazy && !batch->is_written;
    notify = thread_wakes_micros_ != 0 && !waits_for_lane_ && healthy() &&
             (awaited || queue_bytes_ >= (lazy ? kLingerBytes : gathering_.bytes) ||
              thread_wakes_micros_ > batch->submitted_micros + kLingerMicros);
    LogBatch* last = queue_.empty() ? nullptr : &queue_.back();
    CELLAR_ASSERT(last == nullptr || batch->ordinal >= last->ordinal);
    if (last != nullptr && !batch->begins_segment && last->is_written == batch->is_written &&
        last->bytes.capacity() - last->bytes.size() >= batch->bytes.size()) {
      last->bytes.Append(batch->bytes.view());
      last->last = batch->last;
      last->ordinal = batch->ordinal;
      last->last_hash = batch->last_hash;
      last->last_commit_micros = batch->last_commit_micros;
      last->stream_end = batch->stream_end;
    } else if (awaited && batch->bytes.size() <= batch->bytes.capacity() / kTightPart) {
      queue_.push_back(TightCopy(*batch));
    } else {
      const size_t bytes = batch->bytes.size();
      queue_.push_back(std::move(*batch));
      batch->bytes = spares_.Take();
      // The next turn will be much like this one.
      if (batch->bytes.capacity() == 0) batch->bytes.Reserve(bytes + bytes / 4);
    }
    batch->bytes.Clear();
    batch->begins_segment = false;
  }
  if (notify) work_cv_.notify_one();
}

void LogWriter::SetSyncPolicy(SyncPolicy policy) {
  {
    const std::lock_guard lock(mutex_);
    policy_ = policy;
  }
  work_cv_.notify_one();
}

uint64_t LogWriter::TakeNumber() {
  const std::lock_guard lock(mutex_);
  return next_number_++;
}

// The caller waits: `run` may use what it borrows. The thread answers at the end of its round, or
// when it ends.
Status LogWriter::RunOnThread(std::function<Status()> run) {
  Call call{.run = std::move(run), .status = Status::Ok(), .done = false};
  std::unique_lock lock(mutex_);
  if (stop_ || ended_) return Status::Error(ErrorCode::kErr, "the log is being closed");
  calls_.push_back(&call);
  work_cv_.notify_one();
  reply_cv_.wait(lock, [&] { return call.done; });
  return call.status;
}

Status LogWriter::Sync() {
  return RunOnThread([this] {
    if (enabled_ && healthy()) WriteBatches();
    if (enabled_ && healthy() && SyncSegment()) PublishGrant();
    return healthy() ? Status::Ok() : Misconf(failure_);
  });
}

Status LogWriter::EnableLog(const LogPosition& start, uint64_t ordinal, uint64_t stream_begin) {
  return RunOnThread([=, this] { return EnableOnThread(start, ordinal, stream_begin); });
}

Status LogWriter::DisableLog() {
  return RunOnThread([this] { return DisableOnThread(); });
}

Status LogWriter::InstallSnapshot(const SnapshotEntry& entry, uint64_t ordinal,
                                  std::vector<std::string>* superseded) {
  return RunOnThread([&entry, ordinal, superseded, this] {
    return InstallSnapshotOnThread(entry, ordinal, superseded);
  });
}

Status LogWriter::TrimSnapshots(std::vector<std::string>* superseded) {
  return RunOnThread([superseded, this] { return TrimOnThread(superseded); });
}

Manifest LogWriter::CopyManifest() const {
  const std::lock_guard lock(mutex_);
  return manifest_published_;
}

void LogWriter::RetainFrom(uint64_t segment) {
  if (retention_.RetainFrom(segment)) DropBefore(segment);
}

void LogWriter::PinFrom(LogPin pin, uint64_t segment) {
  if (retention_.PinFrom(pin, segment)) DropBefore(segment);
}

// Only wakes the thread if there is something to be dropped: pins move often, segments seldom go.
void LogWriter::DropBefore(uint64_t segment) {
  {
    const std::lock_guard lock(mutex_);
    const auto& segments = manifest_published_.segments;
    const bool has_earlier = !segments.empty() && segments.front().number < segment;
    if (!manifest_published_.snapshot || !has_earlier) return;
    drop_requested_ = true;
  }
  work_cv_.notify_one();
}

Status LogWriter::CloseCut(uint64_t ordinal) {
  return RunOnThread([ordinal, this] { return CloseCutOnThread(ordinal); });
}

void LogWriter::RequestSync() {
  {
    const std::lock_guard lock(mutex_);
    sync_requested_ = true;
  }
  work_cv_.notify_one();
}

LogWriterStats LogWriter::Stats() const {
  const std::lock_guard lock(mutex_);
  LogWriterStats stats = stats_;
  // Of a disk without room the first refusal tells, not the first attempt to reserve more: until
  // what is left is used up, writes go on.
  stats.ok = stats.ok && !room_trouble_.refused;
  stats.sync_in_progress = sync_in_progress_.load(std::memory_order_relaxed) || !lanes_.is_idle();
  const uint64_t unwritten_bytes = queue_unwritten_bytes_ + taken_unwritten_bytes_;
  const uint64_t unsynced_bytes = queue_bytes_ + taken_bytes_;
  stats.unwritten_bytes += unwritten_bytes;
  CELLAR_ASSERT(unwritten_bytes <= unsynced_bytes);
  const uint64_t written_bytes = unsynced_bytes - unwritten_bytes;
  stats.log_bytes += written_bytes;
  stats.room_bytes -= std::min(stats.room_bytes, stats.unwritten_bytes + written_bytes);
  stats.unsynced_bytes += unsynced_bytes;
  stats.spare_bytes = spares_.bytes();
  return stats;
}

// --- the thread ---

// A round: sleep until something is due, take under the lock what the loop has left, work without
// the lock, publish. Calls of other threads are answered when the round is over that has carried
// them out.
void LogWriter::Run() {
  SetThreadName("cellar-sync");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    for (;;) {
      const int64_t now = clock_.MonotonicMicros();
      const int64_t wake = NextWakeMicros();
      if (wake <= now) break;
      thread_wakes_micros_ = wake;
      waits_for_lane_ = LanesAreFull();
      work_cv_.wait_for(lock, std::chrono::microseconds(std::min(wake - now, kWaitMicrosMax)));
      thread_wakes_micros_ = 0;
    }
    std::vector<Call*> calls;
    TakeWork(&calls);
    lock.unlock();
    Work();
    for (Call* call : calls) call->status = call->run();
    if (stopping_) FinishOnThread();
    lock.lock();
    PublishState();
    for (Call* call : calls) call->done = true;
    reply_cv_.notify_all();
  }
  ended_ = true;
  for (Call* call : calls_) {
    call->status = Status::Error(ErrorCode::kErr, "the log is being closed");
    call->done = true;
  }
  calls_.clear();
  reply_cv_.notify_all();
}

// 0: now. Every reason to work has its time here; what is missing here is not done until something
// else wakes the thread.
int64_t LogWriter::NextWakeMicros() const {
  if (stop_ || !calls_.empty()) return 0;
  if (!enabled_) return spares_.has_discarded() ? 0 : SparesDueMicros();
  if (!healthy()) return resume_micros_;
  int64_t wake = kNever;
  if (lane_ended_ || tail_.has_error() || !tail_error_.ok()) return 0;
  if (written_ < unsynced_.size() && !LanesAreFull()) return 0;
  if (!queue_.empty() && !LanesAreFull()) {
    const bool is_always = policy_ == SyncPolicy::kAlways;
    const bool waits = is_always ? queue_bytes_ < gathering_.bytes
                                 : queue_unwritten_bytes_ == 0 && queue_bytes_ < kLingerBytes;
    const int64_t until =
        is_always ? gathering_.until_micros : queue_.front().submitted_micros + kLingerMicros;
    wake = waits ? until : 0;
  }
  if (requested_stream_end_ > granted_ && room_trouble_.error.empty()) wake = 0;
  wake = std::min(wake, room_.due_micros());
  if (policy_ != policy_now_ || sync_requested_ || drop_requested_) wake = 0;
  if (drop_wanted_) wake = std::min(wake, drop_retry_micros_);
  if (spares_.has_discarded()) wake = 0;
  return std::min({wake, SparesDueMicros(), SyncDueMicros()});
}

void LogWriter::TakeWork(std::vector<Call*>* calls) {
  calls->swap(calls_);
  stopping_ = stop_;
  lane_ended_ = false;
  policy_now_ = policy_;
  sync_wanted_ = sync_wanted_ || sync_requested_;
  sync_requested_ = false;
  drop_wanted_ = drop_wanted_ || drop_requested_;
  drop_requested_ = false;
  stream_requested_ = requested_stream_end_;
  if (tail_.has_error()) tail_error_ = tail_.TakeError();
  TakeQueue();
}

// From the loop's queue to the thread's, still counted as the loop's until PublishState
// (taken_bytes_), so that no moment of Stats misses them.
void LogWriter::TakeQueue() {
  for (LogBatch& batch : queue_) {
    CELLAR_ASSERT(batch.stream_end >= stream_submitted_);
    unsynced_bytes_ += batch.bytes.size();
    stream_submitted_ = batch.stream_end;
    unsynced_.push_back(std::move(batch));
  }
  queue_.clear();
  taken_bytes_ += std::exchange(queue_bytes_, 0);
  taken_unwritten_bytes_ += std::exchange(queue_unwritten_bytes_, 0);
  if (!unsynced_.empty()) oldest_unsynced_micros_ = unsynced_.front().submitted_micros;
}

// Whatever the loop writes from now on follows what is in the segment.
void LogWriter::OpenTail() {
  const bool is_wanted = enabled_ && healthy() && !stop_ && policy_ != SyncPolicy::kAlways;
  if (!is_wanted || tail_.is_open() || tail_.has_error() || !tail_.MayOpen()) return;
  if (written_ != unsynced_.size() || queue_bytes_ > kCatchUpBytes) return;
  if (!queue_.empty()) Wake();
  TakeQueue();
  while (written_ < unsynced_.size()) {
    if (unsynced_[written_].begins_segment) return;
    tail_error_ = WriteBatch(unsynced_[written_]);
    if (!tail_error_.ok()) return;
    ++written_;
  }
  CELLAR_ASSERT(written_ == unsynced_.size());
  tail_.Open(segment_->file(), segment_->end_offset());
}

void LogWriter::CloseTail() {
  const std::lock_guard lock(mutex_);
  tail_.Close();
}

// Puts what the thread knows where the loop may read it. All sums are made anew, which costs
// O(segments + batches that are not synced), instead of being kept up to date at each change.
void LogWriter::PublishState() {
  OpenTail();
  gathering_ = pacer_.Plan(queue_bytes_);
  const std::deque<LogBatch>& oldest = unsynced_.empty() ? queue_ : unsynced_;
  oldest_unsynced_micros_ = oldest.empty() ? 0 : oldest.front().submitted_micros;
  room_trouble_.error = room_.failure();
  if (!room_trouble_.error.empty()) ++room_trouble_.failures;
  if (room_trouble_.error.empty()) room_trouble_.refused = false;
  KeepSpares();

  taken_bytes_ = 0;
  taken_unwritten_bytes_ = 0;
  stats_.syncs = pacer_.syncs();
  stats_.delayed_syncs = pacer_.delayed_syncs();
  stats_.failures = failures_;
  stats_.ok = !enabled_ || healthy();
  stats_.room_ok = !enabled_ || room_trouble_.error.empty();
  stats_.room_bytes = 0;
  stats_.error = healthy() ? room_trouble_.error : failure_;
  stats_.unsynced_bytes = unsynced_bytes_;
  stats_.unwritten_bytes = 0;
  for (size_t i = written_; i < unsynced_.size(); ++i)
    stats_.unwritten_bytes += unsynced_[i].bytes.size();
  stats_.log_segments = manifest_.segments.size();
  stats_.log_bytes = 0;
  stats_.covered_bytes = 0;
  for (const SegmentEntry& entry : manifest_.segments) {
    if (!entry.end) continue;
    const uint64_t bytes = entry.end->offset - kSegmentHeaderBytes;
    stats_.log_bytes += bytes;
    if (manifest_.snapshot && entry.end->last <= manifest_.snapshot->lsn)
      stats_.covered_bytes += bytes;
  }
  stats_.snapshots = manifest_.earlier.size() + (manifest_.snapshot ? 1 : 0);
  stats_.snapshots_bytes = manifest_.snapshot ? manifest_.snapshot->bytes : 0;
  for (const SnapshotEntry& entry : manifest_.earlier) stats_.snapshots_bytes += entry.bytes;
  stats_.log_bytes_allocated = stats_.log_bytes + manifest_.segments.size() * kSegmentHeaderBytes;
  if (segment_ != nullptr && healthy()) {
    stats_.log_bytes += segment_->end_offset() - kSegmentHeaderBytes;
    stats_.log_bytes_allocated += segment_->allocated_offset() - kSegmentHeaderBytes;
    stats_.room_bytes = segment_->allocated_offset() - segment_->end_offset();
  }
}

void LogWriter::KeepSpares() {
  const int64_t now = clock_.MonotonicMicros();
  spares_.Keep(now, now >= SparesDueMicros());
}

int64_t LogWriter::SparesDueMicros() const {
  const bool is_idle = queue_.empty() && unsynced_.empty();
  if (!is_idle || !spares_.has_surplus()) return kNever;
  return pacer_.ended_micros() + spares_.kept_micros();
}

// One round without the lock. Each step may find that the disk has failed (Fail), and then nothing
// else is tried before TryToResume.
void LogWriter::Work() {
  spares_.Discard();
  if (!enabled_) return;
  if (!healthy()) {
    TryToResume();
    return;
  }
  if (!SettleLanes()) return;
  if (!tail_error_.ok()) return Fail(std::exchange(tail_error_, Status::Ok()));
  WriteBatches();
  if (healthy()) room_.Ensure(segment_.get(), std::max(stream_submitted_, stream_requested_));
  if (healthy() && SyncDueMicros() <= clock_.MonotonicMicros()) BeginSync();
  if (healthy()) PublishGrant();
  if (healthy()) segment_->DropDurable();
  const bool may_drop = drop_wanted_ && clock_.MonotonicMicros() >= drop_retry_micros_;
  if (healthy() && may_drop) DropUnwanted();
}

// Under `always` syncs may overlap on a disk for which that pays (SyncTrial finds out): each goes
// to a free lane. Else the thread syncs by itself.
void LogWriter::BeginSync() {
  const bool may_overlap = policy_now_ == SyncPolicy::kAlways &&
                           pacer_.typical_micros() >= options_.overlap_sync_micros_min;
  if (may_overlap && !lanes_.is_open()) OpenLanes();
  pacer_.AllowOverlap(may_overlap && lanes_.is_open());
  if (LanesAreFull()) return;
  CELLAR_ASSERT(written_ > 0);  // or no sync would be due
  if (pacer_.way() == SyncWay::kOverlapped) {
    const uint64_t ordinal = unsynced_[written_ - 1].ordinal;
    in_lanes_.push_back({segment_->end(), ordinal});
    lanes_.Begin(ordinal);
  } else if (SyncSegment()) {
    Wake();
  }
}

void LogWriter::OpenLanes() {
  // Without them it is slower, and no worse.
  (void)lanes_.Open(files_, PathOf(StoreFileKind::kSegment, segment_->number()));
}

void LogWriter::CloseLanes() {
  lanes_.Close();
  in_lanes_.clear();
}

bool LogWriter::LanesAreFull() const {
  if (!lanes_.is_open()) return false;
  return pacer_.way() == SyncWay::kOverlapped ? !lanes_.has_free_lane() : !lanes_.is_idle();
}

// Takes in what lanes have ended. They may end out of order; only what all before it has ended too
// is durable (Outcome::tag).
bool LogWriter::SettleLanes() {
  if (!lanes_.is_open()) return true;
  const SyncLanes::Outcome outcome = lanes_.TakeOutcome();
  if (outcome.syncs > 0)
    pacer_.NoteLanes(outcome.syncs, outcome.took_micros_max, clock_.MonotonicMicros());
  while (!in_lanes_.empty() && in_lanes_.front().ordinal <= outcome.tag) {
    segment_->SetDurable(in_lanes_.front().end);
    in_lanes_.pop_front();
  }
  size_t durable = 0;
  while (durable < written_ && unsynced_[durable].ordinal <= outcome.tag) ++durable;
  const uint64_t durable_before = stream_durable_;
  Retire(durable);
  if (durable > 0) pacer_.CountLanes(stream_durable_ - durable_before);
  if (outcome.status.ok()) return true;
  Fail(outcome.status);
  return false;
}

void LogWriter::LaneEnded(uint64_t ordinal) {
  // As long as the manifest does not know the log, what is in it does not count.
  if (ordinal != 0 && !held()) {
    PublishDurable(ordinal);
    Wake();
  }
  {
    const std::lock_guard lock(mutex_);
    lane_ended_ = true;
  }
  work_cv_.notify_one();
}

// A batch that the loop has written (is_written) is only noted. A new segment begins between
// batches: where the size is reached, or where a snapshot has cut.
void LogWriter::WriteBatches() {
  bool is_awaited = false;
  while (healthy() && written_ < unsynced_.size()) {
    const bool is_full = segment_->end_offset() >= options_.segment_bytes_max &&
                         clock_.MonotonicMicros() >= rotate_retry_micros_;
    if (is_full || unsynced_[written_].begins_segment) {
      unsynced_[written_].begins_segment = false;
      Rotate();
      continue;
    }
    const LogBatch& batch = unsynced_[written_];
    if (const Status status = WriteBatch(batch); !status.ok()) return Fail(status);
    if (!batch.is_written) is_awaited = policy_now_ != SyncPolicy::kAlways;
    ++written_;
  }
  if (is_awaited) Wake();
}

Status LogWriter::WriteBatch(const LogBatch& batch) {
  if (batch.is_written) {
    segment_->NoteAppended(batch.bytes.size(), batch.last);
    return Status::Ok();
  }
  if (policy_now_ == SyncPolicy::kAlways && batch.bytes.size() <= kZeroAheadBatchBytesMax)
    RETURN_IF_ERROR(segment_->ZeroAhead(batch.bytes.size()));
  RETURN_IF_ERROR(segment_->Append(batch.bytes.view(), batch.last));
  PublishWritten(batch.ordinal);
  return Status::Ok();
}

int64_t LogWriter::SyncDueMicros() const {
  if (written_ == 0) return kNever;
  // Nothing new, or nobody to sync it before a lane is done.
  const bool is_begun = !in_lanes_.empty() && in_lanes_.back().end.offset == segment_->end_offset();
  if (is_begun || LanesAreFull()) return kNever;
  if (policy_now_ == SyncPolicy::kAlways || unsynced_bytes_ >= kUnsyncedBytesMax || sync_wanted_)
    return 0;
  if (stream_requested_ > GrantLimit()) return 0;
  return pacer_.ended_micros() +
         (policy_now_ == SyncPolicy::kEverySecond ? kSyncEveryMicros : kSyncRarelyMicros);
}

// False: it failed, and the segment has been given up.
bool LogWriter::SyncSegment() {
  CELLAR_ASSERT(healthy());
  if (lanes_.is_open()) {
    // What the lanes have begun comes first, so that batches become durable in their order.
    lanes_.Drain();
    if (!SettleLanes()) return false;
  }
  // Whoever wants it has handed in what is not written yet as well: a segment may end before that.
  sync_wanted_ = sync_wanted_ && written_ < unsynced_.size();
  if (!segment_->has_unsynced()) return true;
  const int64_t begin = clock_.MonotonicMicros();
  sync_in_progress_.store(true, std::memory_order_relaxed);
  const Status status = segment_->Sync();
  sync_in_progress_.store(false, std::memory_order_relaxed);
  pacer_.NoteSync(begin, clock_.MonotonicMicros());
  if (!status.ok()) {
    Fail(status);
    return false;
  }
  const uint64_t durable_before = stream_durable_;
  Retire(written_);
  pacer_.CountSync(stream_durable_ - durable_before);
  return true;
}

// The first `count` batches are durable: their memory is for others, and base_ is where a fresh
// segment would have to begin.
void LogWriter::Retire(size_t count) {
  CELLAR_ASSERT(count <= unsynced_.size());
  for (size_t i = 0; i < count; ++i) {
    LogBatch& batch = unsynced_.front();
    CELLAR_ASSERT(unsynced_bytes_ >= batch.bytes.size());
    CELLAR_ASSERT(batch.ordinal >= base_ordinal_);
    unsynced_bytes_ -= batch.bytes.size();
    stream_durable_ = batch.stream_end;
    base_ = {.offset = 0,
             .last = batch.last,
             .chain = batch.last_hash,
             .commit_micros = batch.last_commit_micros};
    base_ordinal_ = batch.ordinal;
    spares_.Retire(std::move(batch.bytes));
    unsynced_.pop_front();
  }
  written_ -= std::min(written_, count);
  if (!held()) PublishDurable(base_ordinal_);
}

void LogWriter::PublishDurable(uint64_t ordinal) { Raise(&durable_ordinal_, ordinal); }

void LogWriter::Raise(std::atomic<uint64_t>* number, uint64_t to) {
  uint64_t now = number->load(std::memory_order_relaxed);
  while (now < to && !number->compare_exchange_weak(now, to, std::memory_order_release)) {
  }
}

// How far the stream may run ahead of the disk. A single record may be larger than the bound: it is
// let through when nothing else waits.
uint64_t LogWriter::GrantLimit() const {
  const uint64_t limit = stream_durable_ + options_.queue_bytes_max;
  return stream_durable_ == stream_submitted_ ? std::max(limit, stream_requested_) : limit;
}

void LogWriter::PublishGrant() {
  CELLAR_ASSERT(healthy());
  CELLAR_ASSERT(stream_durable_ <= stream_submitted_);
  // A grant is a promise to the loop that there is room. While the log is well it only grows; Fail
  // takes it back.
  const uint64_t grant = std::min(segment_->stream_allocated(), GrantLimit());
  if (grant > granted_.load(std::memory_order_relaxed))
    granted_.store(grant, std::memory_order_release);
}

// Keeps what is not durable in unsynced_; all of it goes to the next segment. Written ones count as
// unwritten again.
void LogWriter::Fail(const Status& status) {
  CELLAR_ASSERT(healthy());
  CELLAR_ASSERT(!status.ok());
  CloseTail();
  // Without a grant the next Reserve takes the slow way, which refuses.
  granted_ = 0;
  healthy_ = false;
  failure_ = status.text();
  ++failures_;
  written_ = 0;
  resume_micros_ = 0;
  // Nothing more is ever written to this file: after a failed sync nobody knows what it holds.
  CloseLanes();
  segment_->Close(SegmentFile::Trim::kNo);
  Wake();
}

// Makes a fresh segment with everything that is not known to be durable, and syncs it, before a
// single write is accepted again.
void LogWriter::TryToResume() {
  CELLAR_ASSERT(!healthy());
  if (clock_.MonotonicMicros() < resume_micros_ && !stopping_) return;
  Result<std::unique_ptr<SegmentFile>> fresh = ResumeInFreshSegment();
  if (!fresh.ok()) {
    failure_ = fresh.status().text();
    room_.SetFailure(fresh.status().code() == ErrorCode::kNoSpace ? failure_ : std::string());
    resume_micros_ = clock_.MonotonicMicros() + options_.retry_delay_micros;
    return;
  }
  segment_ = *std::move(fresh);
  Retire(unsynced_.size());
  pacer_.NoteSegment(clock_.MonotonicMicros());
  failure_.clear();
  room_.SetFailure({});
  healthy_ = true;
  PublishGrant();
  Wake();
}

}  // namespace cellar
