// What the sync thread does to the set of files: new segments, rotation, snapshots, the log
// switched on and off. See log_writer.h; manifest.h says what an installed manifest promises.
//
// Order of every change: the new file is complete, synced, and its name durable; then the manifest
// is installed; only then does anything rely on the file, or is another removed.
#include <algorithm>

#include "base/assert.h"
#include "store/journal/log_writer.h"

namespace cellar {

std::string LogWriter::PathOf(StoreFileKind kind, uint64_t number) const {
  return JoinPath(options_.directory, FormatFileName(kind, number));
}

Result<std::unique_ptr<SegmentFile>> LogWriter::CreateSegment(AllocationSize size) {
  const SegmentHeader header{.number = TakeNumber(),
                             .after = base_.last,
                             .chain = base_.chain,
                             .created_micros = static_cast<uint64_t>(clock_.WallMicros()),
                             .after_micros = base_.commit_micros};
  return SegmentFile::Create(files_, options_.directory, header, stream_durable_, size);
}

// While the log is held (EnableOnThread) the manifest changes in memory alone. Garbage goes only
// when a manifest on the disk no longer names it.
InstallResult LogWriter::Install(Manifest draft) {
  {
    const std::lock_guard lock(mutex_);
    draft.next = next_number_;
  }
  InstallResult result{InstallOutcome::kInstalled, Status::Ok()};
  if (!held()) {
    result = InstallManifest(files_, options_.directory, draft);
    if (result.outcome != InstallOutcome::kInstalled) return result;
    for (const std::string& path : garbage_) (void)files_.Remove(path);
    garbage_.clear();
  }
  manifest_ = std::move(draft);
  PublishManifest();
  return result;
}

void LogWriter::PublishManifest() {
  const std::lock_guard lock(mutex_);
  manifest_published_ = manifest_;
}

InstallResult LogWriter::InstallWithSegment(Manifest draft, SegmentFile* segment) {
  Status status = segment->Sync();
  if (status.ok()) status = files_.SyncDirectory(options_.directory);
  InstallResult result{InstallOutcome::kUnchanged, status};
  if (status.ok()) {
    draft.segments.push_back(segment->OpenEntry());
    result = Install(std::move(draft));
  }
  if (result.outcome == InstallOutcome::kInstalled) return result;
  const std::string path = PathOf(StoreFileKind::kSegment, segment->number());
  if (result.outcome == InstallOutcome::kUnknown) {
    // Nothing is acknowledged any more that one of the two files may lack; and what they hold must
    // stay, whichever of them the next start finds.
    CloseTail();
    segment->Close(SegmentFile::Trim::kNo);
    garbage_.push_back(path);
  } else {
    DropTailCopy();
    segment->Close(SegmentFile::Trim::kYes);
    (void)files_.Remove(path);
  }
  return result;
}

// A segment without durable records is taken out instead of being closed. The caller removes its
// file once a manifest without it is installed.
std::optional<std::string> LogWriter::CloseOpenEntry(Manifest* draft) const {
  if (draft->segments.empty() || draft->segments.back().end) return std::nullopt;
  CELLAR_ASSERT(segment_ != nullptr);
  CELLAR_ASSERT(segment_->number() == draft->segments.back().number);
  if (segment_->holds_durable_records()) {
    draft->segments.back() = segment_->ClosedEntry();
    return std::nullopt;
  }
  draft->segments.pop_back();
  return PathOf(StoreFileKind::kSegment, segment_->number());
}

void LogWriter::AbandonOpenEntry(Manifest* draft) {
  CELLAR_ASSERT(!healthy());
  std::optional<std::string> path = CloseOpenEntry(draft);
  if (path && std::find(garbage_.begin(), garbage_.end(), *path) == garbage_.end())
    garbage_.push_back(*std::move(path));
}

Result<std::unique_ptr<SegmentFile>> LogWriter::ResumeInFreshSegment() {
  ASSIGN_OR_RETURN(auto fresh, CreateSegment(room_.SizeFor(unsynced_bytes_)));
  for (const LogBatch& batch : unsynced_) {
    Status status = fresh->Append(batch.bytes.view(), batch.last);
    if (status.ok()) continue;
    fresh->Close(SegmentFile::Trim::kYes);
    (void)files_.Remove(PathOf(StoreFileKind::kSegment, fresh->number()));
    return status;
  }
  Manifest draft = manifest_;
  AbandonOpenEntry(&draft);
  InstallResult result = InstallWithSegment(std::move(draft), fresh.get());
  if (!result.status.ok()) return std::move(result.status);
  return fresh;
}

// The old segment is synced whole before another one begins, so that only the last segment can ever
// have a torn end. Until the new one is in the manifest nothing changes, and whatever fails until
// then is tried again later.
void LogWriter::Rotate() {
  if (!SyncSegment()) return;
  Wake();
  if (!segment_->holds_durable_records()) return;
  // What is granted must have room in the new segment too.
  const uint64_t granted = granted_.load(std::memory_order_relaxed);
  const uint64_t ahead = std::max(granted, stream_submitted_) - stream_durable_;
  Result<std::unique_ptr<SegmentFile>> fresh = CreateSegment(room_.SizeFor(ahead));
  // Without room for another segment this one just goes on.
  rotate_retry_micros_ = clock_.MonotonicMicros() + options_.retry_delay_micros;
  if (!fresh.ok() || !CopyTail(fresh->get()).ok()) return;
  Manifest draft = manifest_;
  draft.segments.back() = segment_->ClosedEntry();
  const InstallResult result = InstallWithSegment(std::move(draft), fresh->get());
  if (result.outcome == InstallOutcome::kInstalled) {
    CloseLanes();
    {
      const std::lock_guard lock(mutex_);
      tail_.MoveToMirror();
    }
    segment_->DropDurable();
    segment_->Close(SegmentFile::Trim::kYes);
    segment_ = *std::move(fresh);
    Retire(unsynced_.size());  // installing it has synced it
    Wake();
    rotate_retry_micros_ = 0;
  } else if (result.outcome == InstallOutcome::kUnknown) {
    // The manifest may say by now that this segment ends here: no record may be added to it.
    Fail(result.status);
  }
}

// What came since the last sync goes into the new segment, and from here on the loop writes to both
// files. Which of them a crash leaves in force depends on the manifest (tail_writer.h).
Status LogWriter::CopyTail(SegmentFile* fresh) {
  CELLAR_ASSERT(written_ == 0);
  {
    const std::lock_guard lock(mutex_);
    TakeQueue();
    if (tail_.is_open()) tail_.OpenMirror(fresh->file(), fresh->end_offset() + unsynced_bytes_);
  }
  for (const LogBatch& batch : unsynced_) {
    Status status = fresh->Append(batch.bytes.view(), batch.last);
    if (status.ok()) continue;
    DropTailCopy();
    fresh->Close(SegmentFile::Trim::kYes);
    (void)files_.Remove(PathOf(StoreFileKind::kSegment, fresh->number()));
    return status;
  }
  return Status::Ok();
}

void LogWriter::DropTailCopy() {
  const std::lock_guard lock(mutex_);
  tail_.CloseMirror();
}

void LogWriter::Prune(Manifest* draft, std::vector<std::string>* paths) const {
  std::vector<std::string> names;
  retention_.Prune(draft, &names);
  for (const std::string& name : names) paths->push_back(JoinPath(options_.directory, name));
}

Status LogWriter::TrimOnThread(std::vector<std::string>* superseded) {
  if (!manifest_.snapshot || held()) return Status::Ok();  // the next snapshot does it
  Manifest draft = manifest_;
  std::vector<std::string> paths;
  Prune(&draft, &paths);
  if (paths.empty()) return Status::Ok();
  const InstallResult result = Install(std::move(draft));
  if (result.outcome == InstallOutcome::kInstalled) superseded->swap(paths);
  return result.status;
}

void LogWriter::DropUnwanted() {
  std::vector<std::string> paths;
  // If it fails they go another time: on a full disk nothing else may come that has them go.
  drop_wanted_ = !TrimOnThread(&paths).ok();
  drop_retry_micros_ = drop_wanted_ ? clock_.MonotonicMicros() + options_.retry_delay_micros : 0;
  if (drop_wanted_) return;
  for (const std::string& path : paths) (void)files_.Remove(path);
}

// The log comes first: what is written is synced, and its segment closed where a batch up to the
// snapshot may still be in it. Files are removed by the caller, since only a durable manifest makes
// them superfluous.
Status LogWriter::InstallSnapshotOnThread(const SnapshotEntry& entry, uint64_t ordinal,
                                          std::vector<std::string>* superseded) {
  // Records up to the snapshot that stay in the open segment are to be durable in it, as claims
  // say.
  if (enabled_ && healthy()) {
    WriteBatches();
    if (healthy() && SyncSegment()) PublishGrant();
    // Usually the batch behind the snapshot has begun a new segment; a log that is idle has not.
    if (healthy() && base_ordinal_ <= ordinal) Rotate();
  }
  Manifest draft = manifest_;
  // A segment that failed stays as it is named, open: what the kernel has of it may have been
  // acknowledged, and is read by the next start unless a fresh segment has taken it over by then.
  std::vector<std::string> paths;
  if (draft.snapshot) draft.earlier.push_back(*draft.snapshot);
  draft.snapshot = entry;
  Prune(&draft, &paths);
  const bool keeps_log = retention_.keeps_snapshots();

  const bool was_held = held();
  held_ = false;
  InstallResult result = Install(std::move(draft));
  if (result.outcome != InstallOutcome::kInstalled) {
    held_ = was_held;
    const std::string path = PathOf(StoreFileKind::kSnapshot, entry.number);
    // On a full disk the room that it takes may be what the next manifest lacks.
    const bool is_unnamed = result.outcome == InstallOutcome::kUnchanged;
    if (!is_unnamed || !files_.Remove(path).ok()) garbage_.push_back(path);
    return std::move(result.status);
  }
  superseded->swap(paths);
  // Whatever became of the log, records up to here are safe. They are written to it all the same if
  // it is to lead here from the snapshots before.
  if (!healthy() && !keeps_log) {
    size_t covered = 0;
    while (covered < unsynced_.size() && unsynced_[covered].ordinal <= ordinal) ++covered;
    Retire(covered);
  }
  PublishDurable(ordinal);
  if (enabled_) PublishDurable(base_ordinal_);
  Wake();
  return Status::Ok();
}

Status LogWriter::CloseCutOnThread(uint64_t ordinal) {
  if (!enabled_ || held()) return Status::Error(ErrorCode::kErr, "there is no log");
  if (healthy()) WriteBatches();
  if (healthy() && SyncSegment()) PublishGrant();
  // A rotation that was under way may have taken what came behind into the same segment.
  const uint64_t number = healthy() ? segment_->number() : 0;
  const bool holds_records = healthy() && segment_->holds_durable_records();
  if (holds_records) Rotate();
  if (!healthy()) return Status::Error(ErrorCode::kMisconf, failure_);
  CELLAR_ASSERT(ordinal == UINT64_MAX || base_ordinal_ >= ordinal);
  Wake();
  if (!holds_records || segment_->number() != number) return Status::Ok();
  return Status::Error(ErrorCode::kNoSpace, "no room for another segment of the log");
}

// A segment is written from now on, but the manifest on the disk does not name it before a snapshot
// says where the log begins (held_).
Status LogWriter::EnableOnThread(const LogPosition& start, uint64_t ordinal,
                                 uint64_t stream_begin) {
  CELLAR_ASSERT(!enabled_);
  CELLAR_ASSERT(unsynced_.empty());
  base_ = start;
  base_ordinal_ = ordinal;
  stream_submitted_ = stream_begin;
  stream_durable_ = stream_begin;
  stream_requested_ = 0;
  ASSIGN_OR_RETURN(auto fresh, CreateSegment(room_.SizeFor(0)));
  manifest_on_disk_ = manifest_;
  held_ = true;
  InstallResult result = InstallWithSegment(manifest_, fresh.get());
  if (!result.status.ok()) {
    held_ = false;
    return std::move(result.status);
  }
  segment_ = std::move(fresh);
  enabled_ = true;
  healthy_ = true;
  granted_ = 0;
  PublishGrant();
  return Status::Ok();
}

// The manifest that ends the log is installed while the segment is still open: if that fails, the
// log is as it was.
Status LogWriter::DisableOnThread() {
  if (!enabled_) return Status::Ok();
  CloseTail();
  if (healthy()) WriteBatches();
  if (healthy() && SyncSegment()) Wake();
  if (!healthy()) return Status::Error(ErrorCode::kMisconf, failure_);
  Manifest draft = manifest_;
  std::vector<std::string> unused;
  if (auto path = CloseOpenEntry(&draft)) unused.push_back(*std::move(path));
  const bool was_held = held();
  if (was_held) {
    // The manifest on disk has never named this log, and so it goes without a trace.
    const auto& known = manifest_on_disk_.segments;
    for (const SegmentEntry& entry : draft.segments) {
      if (std::find(known.begin(), known.end(), entry) == known.end())
        unused.push_back(PathOf(StoreFileKind::kSegment, entry.number));
    }
    held_ = false;
    draft = manifest_on_disk_;
  }
  InstallResult result = Install(std::move(draft));
  if (result.outcome != InstallOutcome::kInstalled) {
    held_ = was_held;
    // Otherwise the manifest may say that the segment ends here.
    if (result.outcome == InstallOutcome::kUnknown && !was_held) Fail(result.status);
    return std::move(result.status);
  }
  CloseLanes();
  segment_->Close(SegmentFile::Trim::kYes);
  segment_ = nullptr;
  for (const std::string& path : unused) (void)files_.Remove(path);
  enabled_ = false;
  granted_ = 0;
  return Status::Ok();
}

void LogWriter::FinishOnThread() {
  if (!enabled_) return;
  CloseTail();
  if (healthy()) WriteBatches();
  if (healthy() && SyncSegment()) {
    // Its entry stays open: the next start goes on in it.
    CloseLanes();
    segment_->Close(SegmentFile::Trim::kYes);
    segment_ = nullptr;
    enabled_ = false;
    Wake();
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!unsynced_.empty()) close_status_ = Status::Error(ErrorCode::kMisconf, failure_);
}

}  // namespace cellar
