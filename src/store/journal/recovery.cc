// What a start does before the first command: see recovery.h.
#include "store/journal/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "store/format/member_name.h"
#include "store/format/store_files.h"
#include "store/journal/diverged.h"
#include "store/log/log_reader.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

constexpr uint64_t kProgressEveryBytes = 256 << 10;

class Recovery {
 public:
  Recovery(FileSystem& files, Clock& clock, const std::string& directory, StateMachine& state,
           const RecoveryTask& task, const LoadProgressCallback& progress)
      : files_(files),
        clock_(clock),
        directory_(directory),
        state_(state),
        task_(task),
        replay_(std::in_place, state, task.up_to),
        progress_callback_(progress) {}

  Result<RecoveredStore> Run();

 private:
  Status FindManifest(const std::vector<std::string>& names);
  void SortOutFiles(const std::vector<std::string>& names);
  Status MeasureFiles();
  Status LoadSnapshots();
  Status LoadEarlier();
  Status LoadOne(const SnapshotEntry& entry);
  void BeginAnew();
  Status CheckReaches();
  Status ChooseContent();
  std::string Advice() const;
  Status ReplayLog();
  Status ReplaySegment(size_t index, uint64_t bytes_before);
  Status Progress(uint64_t bytes_done, bool replaying_log);
  std::string PathOf(StoreFileKind kind, uint64_t number) const {
    return JoinPath(directory_, FormatFileName(kind, number));
  }

  FileSystem& files_;
  Clock& clock_;
  const std::string& directory_;
  StateMachine& state_;
  const RecoveryTask task_;
  std::optional<LogReplay> replay_;
  const LoadProgressCallback& progress_callback_;
  LoadProgress progress_;
  Status stopped_;  // what the callback ended the load with
  RecoveredStore store_;
  std::optional<SnapshotEntry> damaged_{};  // the newest, which is passed over
  std::string damage_;                      // what is wrong with it
  std::vector<uint64_t> segment_bytes_;
  std::unique_ptr<LogReader> log_;
  Lsn last_in_segment_;
  size_t first_segment_{0};             // with records that the snapshot lacks
  uint32_t last_version_{kLogVersion};  // of the last segment
};

// Without a manifest the folder is either empty, and a store begins there, or something has been
// lost: then files that nobody names are there, and nothing is begun over them.
Status Recovery::FindManifest(const std::vector<std::string>& names) {
  auto loaded = LoadManifest(files_, directory_);
  if (!loaded.ok() && loaded.status().code() == ErrorCode::kCorruption)
    return Status::Error(
        ErrorCode::kCorruption,
        fmt::format("{}. `cellar --check {} --repair` makes it anew from the files",
                    loaded.status().text(), directory_));
  ASSIGN_OR_RETURN(auto manifest, std::move(loaded));
  if (manifest) {
    store_.manifest = *std::move(manifest);
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(const bool is_archive, IsArchive(files_, directory_));
  if (is_archive) {
    return Status::Error(ErrorCode::kCorruption,
                         fmt::format("{} is an archive: `cellar --recover {} --until TIME --dir "
                                     "NEW` makes a store of it",
                                     directory_, directory_));
  }
  RETURN_IF_ERROR(CheckNoOrphans(directory_, names));
  store_.manifest.holds_log_only = task_.begins_as == StoreContent::kLogOnly;
  // From now on a file without a manifest is damage.
  return InstallManifest(files_, directory_, store_.manifest).status;
}

// Only what this store must have left itself is to be removed: temporary names, and numbers that
// the manifest has gone past. Anything else stays, with a warning.
void Recovery::SortOutFiles(const std::vector<std::string>& names) {
  const Manifest& manifest = store_.manifest;
  store_.next_number = manifest.next;
  for (const std::string& name : names) {
    if (name == kManifestName || name == kLockName || name == kReplicaFileName) continue;
    if (name == kMemberFileName || name == kBackupNoteName || name == kBackupFolderName ||
        name == kStoreIdName)
      continue;
    if (IsDivergedName(name)) continue;
    const auto parsed = ParseFileName(name);
    bool is_named = false;
    if (parsed) {
      store_.next_number = std::max(store_.next_number, parsed->number + 1);
      is_named = manifest.Names(*parsed);
    }
    if (is_named) continue;
    const bool is_leftover =
        name == kManifestTemporaryName || name == kSyncName || name == kNewStoreName ||
        (parsed &&
         (parsed->kind == StoreFileKind::kTemporarySnapshot || parsed->number < manifest.next));
    if (is_leftover) {
      store_.leftovers.push_back(JoinPath(directory_, name));
    } else if (IsRedisFileName(name)) {
      store_.report.warnings.push_back(fmt::format(
          "{} is data of Redis: Cellar does not read it, and leaves it alone. To move the data, "
          "use a client that reads from Redis and writes with CPUT, or a file and cellar-import",
          JoinPath(directory_, name)));
    } else {
      store_.report.warnings.push_back(fmt::format("{} is not part of this store; it is left alone",
                                                   JoinPath(directory_, name)));
    }
  }
}

Status Recovery::MeasureFiles() {
  if (store_.manifest.snapshot) progress_.bytes_total += store_.manifest.snapshot->bytes;
  for (const SegmentEntry& entry : store_.manifest.segments) {
    const std::string path = PathOf(StoreFileKind::kSegment, entry.number);
    ASSIGN_OR_RETURN(const bool exists, files_.Exists(path));
    uint64_t bytes = 0;  // reading it will say that it is missing
    if (exists) {
      ASSIGN_OR_RETURN(auto file, files_.OpenForReading(path));
      ASSIGN_OR_RETURN(bytes, file->Size());
    }
    segment_bytes_.push_back(bytes);
    progress_.bytes_total += bytes;
  }
  return Status::Ok();
}

Status Recovery::Progress(uint64_t bytes_done, bool replaying_log) {
  const bool is_due = bytes_done >= progress_.bytes_done + kProgressEveryBytes;
  if (!is_due && replaying_log == progress_.replaying_log) return Status::Ok();
  progress_.bytes_done = bytes_done;
  progress_.replaying_log = replaying_log;
  // Kept apart from other errors, so that a start which is interrupted is not taken for damage.
  if (progress_callback_) stopped_ = progress_callback_(progress_);
  return stopped_;
}

// What stops a start is told with what can be done about it.
Status Recovery::LoadSnapshots() {
  if (!store_.manifest.snapshot) return Status::Ok();
  const std::string path = PathOf(StoreFileKind::kSnapshot, store_.manifest.snapshot->number);
  Status status = LoadOne(*store_.manifest.snapshot);
  RETURN_IF_ERROR(stopped_);
  if (status.ok()) return status;
  const std::string where = status.text().starts_with(path) ? "" : path + ": ";
  damage_ = where + status.text();
  if (task_.content == StateContent::kEmpty && LoadEarlier().ok()) return Status::Ok();
  RETURN_IF_ERROR(stopped_);
  return Status::Error(status.code(), damage_ + Advice());
}

std::string Recovery::Advice() const {
  return fmt::format(
      ". `cellar --check {}` shows what would be lost; `cellar --check {} --repair` would go on "
      "with what is sound of it",
      directory_, directory_);
}

// From the newest to the oldest, and at last from the first record, if the log reaches back so far.
// Snapshots that are passed over leave the manifest; CheckReaches decides whether that loses
// anything.
Status Recovery::LoadEarlier() {
  Manifest& manifest = store_.manifest;
  damaged_ = manifest.snapshot;
  while (!manifest.earlier.empty()) {
    store_.dropped.push_back(PathOf(StoreFileKind::kSnapshot, manifest.snapshot->number));
    manifest.snapshot = manifest.earlier.back();
    manifest.earlier.pop_back();
    BeginAnew();
    Status status = LoadOne(*manifest.snapshot);
    if (status.ok() || !stopped_.ok()) return status;
    store_.report.warnings.push_back(status.text());
  }
  if (manifest.segments.empty() || manifest.segments.front().after != Lsn{})
    return Status::Error(ErrorCode::kCorruption, "there is no earlier snapshot");
  store_.dropped.push_back(PathOf(StoreFileKind::kSnapshot, manifest.snapshot->number));
  manifest.snapshot.reset();
  BeginAnew();
  return Status::Ok();
}

// Before another snapshot is loaded in place of one that is damaged.
void Recovery::BeginAnew() {
  state_.Reset();
  replay_.emplace(state_, task_.up_to);
  store_.snapshot_members.clear();
  store_.newest = {};
  store_.end = {};
  store_.report.snapshot_cells = 0;
  store_.report.from_earlier = true;
  progress_ = {};
  for (const uint64_t bytes : segment_bytes_) progress_.bytes_total += bytes;
  if (store_.manifest.snapshot) progress_.bytes_total += store_.manifest.snapshot->bytes;
}

// The file must be the one that the manifest means, byte for byte (its hash), before anything of it
// is loaded.
Status Recovery::LoadOne(const SnapshotEntry& entry) {
  const std::string path = PathOf(StoreFileKind::kSnapshot, entry.number);
  const int64_t begin = clock_.MonotonicMicros();
  const auto load = [&]() -> Status {
    ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files_, path));
    RETURN_IF_ERROR(reader->CheckAgainst(entry));
    store_.snapshot_members = reader->footer().members;
    store_.newest = {.catalog = reader->footer().catalog,
                     .trees = reader->footer().trees,
                     .file_bytes = entry.bytes};
    replay_->BeginBehind(entry.lsn, store_.snapshot_members);
    store_.end.commit_micros = reader->header().commit_micros;
    for (const SnapshotTree& tree : reader->footer().trees) {
      if ((tree.tree_id & kDerivedTree) == 0) store_.report.snapshot_cells += tree.entries;
    }
    if (task_.content == StateContent::kSnapshot) return Status::Ok();
    return LoadSnapshot(reader.get(), state_,
                        [this](uint64_t offset) { return Progress(offset, false); });
  };
  RETURN_IF_ERROR(load());
  store_.report.from_snapshot = true;
  store_.report.snapshot_lsn = entry.lsn;
  store_.report.snapshot_micros = clock_.MonotonicMicros() - begin;
  return Status::Ok();
}

// What the snapshot holds is not read again; such segments stay for followers, and only their bytes
// are counted. Damage ends the start, while the torn tail of a crash is cut and becomes a warning.
Status Recovery::ReplaySegment(size_t index, uint64_t bytes_before) {
  const SegmentEntry& entry = store_.manifest.segments[index];
  const bool is_last = index + 1 == store_.manifest.segments.size();
  const Lsn snapshot = store_.report.snapshot_lsn;
  CELLAR_ASSERT(index >= first_segment_ || entry.end);
  // Kept for followers: nothing of it is missing here.
  if (index < first_segment_ || (entry.end && entry.end->last <= snapshot)) {
    store_.log_bytes += entry.end->offset - kSegmentHeaderBytes;
    last_in_segment_ = entry.end->last;
    return Status::Ok();
  }
  uint64_t replayed = 0;
  ASSIGN_OR_RETURN(const SegmentReport report,
                   log_->Read(entry, is_last, [&](const LogRecord& record) {
                     if (record.lsn <= snapshot) return Status::Ok();
                     if (record.is_entry()) ++replayed;
                     RETURN_IF_ERROR(Progress(bytes_before + record.offset, true));
                     return replay_->Take(record);
                   }));
  RETURN_IF_ERROR(stopped_);
  store_.report.records_replayed += replayed;
  const std::string path = PathOf(StoreFileKind::kSegment, entry.number);
  if (report.outcome == SegmentOutcome::kDamaged)
    return Status::Error(
        ErrorCode::kCorruption,
        fmt::format("{}: {}. `cellar --check {}` shows more; `cellar --check {} --repair` would "
                    "cut the log there, which loses this record and all after it",
                    path, report.fault, directory_, directory_));
  if (report.outcome == SegmentOutcome::kTorn) {
    store_.report.tail_bytes_cut = report.tail_bytes;
    store_.report.warnings.push_back(
        fmt::format("{}: {}. This is the tail of a crash: {} bytes are cut off, with {} whole "
                    "records, none known to have been on disk",
                    path, report.fault, report.tail_bytes, report.tail_records));
  }
  if (report.has_header) {
    store_.log_bytes += report.end.offset - kSegmentHeaderBytes;
    store_.end.offset = report.end.offset;
    last_version_ = report.end.version;
  } else {
    // Nothing of it is left to go on with.
    store_.manifest.segments.pop_back();
    store_.dropped.push_back(path);
  }
  last_in_segment_ = report.end.last;
  return Status::Ok();
}

// Segment by segment, the reader carrying the chain of hashes from one to the next. In the end
// store_.end is where the writer goes on.
Status Recovery::ReplayLog() {
  const int64_t begin = clock_.MonotonicMicros();
  if (store_.manifest.holds_log_only) replay_->SetContent(StoreContent::kLogOnly);
  log_ = std::make_unique<LogReader>(files_, directory_, store_.report.snapshot_lsn);
  uint64_t bytes = store_.manifest.snapshot ? store_.manifest.snapshot->bytes : 0;
  const size_t segments = store_.manifest.segments.size();
  // What goes on from the snapshot, as a rule in a segment of its own: what stands before that is
  // in it, whatever the numbers say of records that were voided.
  for (size_t i = 0; i < segments; ++i) {
    if (i > 0 && store_.manifest.segments[i].after == store_.report.snapshot_lsn &&
        store_.manifest.segments[i - 1].end)
      first_segment_ = i;
  }
  for (size_t i = 0; i < segments; ++i) {
    RETURN_IF_ERROR(ReplaySegment(i, bytes));
    bytes += segment_bytes_[i];
  }
  store_.end.last = log_->last();
  store_.end.chain = log_->chain();
  store_.members = replay_->members();
  store_.named = replay_->named();
  store_.mark = replay_->mark();
  store_.first_epoch = replay_->first_epoch();
  store_.epoch_begins = replay_->epoch_begins();
  store_.pending = replay_->TakePending();
  store_.end.commit_micros = std::max(store_.end.commit_micros, log_->commit_micros());
  // A log that ends before its snapshot has lost its tail, which the snapshot covers: a new segment
  // goes on from there; so it does behind a segment of an older format.
  std::vector<SegmentEntry>& entries = store_.manifest.segments;
  if (!entries.empty() && !entries.back().end &&
      (last_in_segment_ != store_.end.last || last_version_ != kLogVersion))
    entries.back().end = SegmentEntry::End{store_.end.offset, last_in_segment_};
  store_.report.replay_micros = clock_.MonotonicMicros() - begin;
  return Status::Ok();
}

// Of a store that has never held anything it can still be said what it is to hold.
Status Recovery::ChooseContent() {
  const bool wanted = task_.begins_as == StoreContent::kLogOnly;
  const bool is_empty = store_.end.last == Lsn{} && !store_.manifest.snapshot;
  if (!is_empty || store_.manifest.holds_log_only == wanted) return Status::Ok();
  store_.manifest.holds_log_only = wanted;
  return InstallManifest(files_, directory_, store_.manifest).status;
}

// With the log alone nothing is lost only if that leads to where the damaged snapshot was.
Status Recovery::CheckReaches() {
  if (!damaged_) return Status::Ok();
  const auto& snapshot = store_.manifest.snapshot;
  const std::string from =
      snapshot ? FormatFileName(StoreFileKind::kSnapshot, snapshot->number) : "nothing";
  if (store_.end.last < damaged_->lsn)
    return Status::Error(
        ErrorCode::kCorruption,
        fmt::format("{}; and from {}, which is sound, the log leads only to record {} of {}{}",
                    damage_, from, FormatLsn(store_.end.last), FormatLsn(damaged_->lsn), Advice()));
  store_.report.warnings.push_back(fmt::format(
      "THE NEWEST SNAPSHOT IS DAMAGED: {}. The start went on from {} with the log "
      "behind it, and nothing is lost. Another snapshot is written now, and the damaged "
      "one goes then. Look after the disk",
      damage_, snapshot ? "the earlier one, " + from : "the first record of the log"));
  return Status::Ok();
}

Result<RecoveredStore> Recovery::Run() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  RETURN_IF_ERROR(FindManifest(names));
  SortOutFiles(names);
  RETURN_IF_ERROR(MeasureFiles());
  RETURN_IF_ERROR(LoadSnapshots());
  if (const Status replayed = ReplayLog(); !replayed.ok()) {
    RETURN_IF_ERROR(stopped_);
    return damaged_ ? Status::Error(replayed.code(), fmt::format("{}; and the log behind the "
                                                                 "earlier one: {}",
                                                                 damage_, replayed.text()))
                    : replayed;
  }
  RETURN_IF_ERROR(CheckReaches());
  RETURN_IF_ERROR(ChooseContent());
  return std::move(store_);
}

}  // namespace

Result<RecoveredStore> RecoverStore(FileSystem& files, Clock& clock, const std::string& directory,
                                    StateMachine& state, const RecoveryTask& task,
                                    const LoadProgressCallback& progress) {
  return Recovery(files, clock, directory, state, task, progress).Run();
}

}  // namespace cellar
