// See backup.h.
// The loop decides and a thread works: one job at a time, begun by the loop and taken in by Poll.
#include "store/history/backup.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "base/os/thread.h"
#include "engine/feeds/feed.h"
#include "store/format/file_copy.h"
#include "store/format/notes.h"
#include "store/format/store_files.h"

namespace cellar {
namespace {

constexpr int64_t kMicrosPerSecond{1'000'000};
constexpr std::string_view kDescriptionName{"cluster.json"};

std::string PartDirectory(const std::string& base, uint64_t set) {
  return JoinPath(base, fmt::format("set-{}", set));
}

Status Refused(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

// What a backup may have made in its folder. EmptyFolder removes these, and nothing else but the
// note.
bool IsBackupFile(const std::string& name) {
  if (ParseFileName(name).has_value() || name == kManifestName || name == kManifestTemporaryName)
    return true;
  return name.starts_with("cellar-") && name.ends_with(".tmp");
}

Status NoWay(Lsn base, Lsn to, Lsn last, const Manifest& manifest) {
  std::string text =
      fmt::format("the log leads from record {} only to {}, not to {}:", FormatLsn(base),
                  FormatLsn(last), FormatLsn(to));
  for (const SegmentEntry& entry : manifest.segments)
    text += fmt::format(" {} after {} {}", entry.number, FormatLsn(entry.after),
                        entry.end ? "to " + FormatLsn(entry.end->last) : std::string("open"));
  return Status::Error(ErrorCode::kErr, text);
}

// When the last record of a closed segment was committed: the next one says that.
Result<int64_t> CommitTimeOf(FileSystem& files, const std::string& directory,
                             const Manifest& manifest, Lsn last) {
  const auto next = std::find_if(manifest.segments.begin(), manifest.segments.end(),
                                 [last](const SegmentEntry& entry) { return entry.after == last; });
  if (next == manifest.segments.end()) return NoWay(last, last, last, manifest);
  const std::string name = FormatFileName(StoreFileKind::kSegment, next->number);
  ASSIGN_OR_RETURN(auto file, files.OpenForReading(JoinPath(directory, name)));
  std::string bytes(kSegmentHeaderBytes, '\0');
  ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, bytes.size(), bytes.data()));
  bytes.resize(n);
  ASSIGN_OR_RETURN(const SegmentHeader header, DecodeSegmentHeader(bytes));
  return header.after_micros;
}

}  // namespace

std::string_view BackupStateName(BackupState state) {
  constexpr std::string_view kNames[] = {"idle",         "pending", "snapshotting",
                                         "incrementing", "sealed",  "failed"};
  CELLAR_ASSERT(static_cast<size_t>(state) < std::size(kNames));
  return kNames[static_cast<size_t>(state)];
}

// What the other thread works on. The loop makes and ends it.
struct Backup::Job {
  enum class Kind : uint8_t { kBase, kSealLog, kSealSnapshot, kInstall, kEmpty, kLook, kDescribe };
  Kind kind{Kind::kBase};
  StateMachine::StateSnapshot snapshot{};
  SnapshotTask task{};
  SnapshotProgress progress{};
  Lsn lsn;  // kSeal..., kInstall: the last record in the backup
  int64_t commit_micros{0};
  uint64_t ordinal{0};  // kSealLog
  SnapshotEntry base{};
  int64_t start_unix_s{0};
  int64_t end_unix_s{0};
  std::thread thread{};

  std::atomic<bool> done{false};  // what follows is the loop's from then on
  Status status{};
  Manifest manifest{};       // kInstall: made by the job before it
  SealedBackup sealed{};     // kLook
  std::string text{};        // kDescribe
  uint64_t cut{0};           // kInstall, of a part
  Whose whose{Whose::kAll};  // kEmpty
  std::string directory{};   // of the backup that it works on
};

Backup::Backup(BackupOptions options, Source source)
    : options_(std::move(options)),
      base_directory_(options_.directory),
      set_(source.set),
      directory_(options_.directory),
      store_directory_(std::move(source.directory)),
      whole_log_(source.whole_log),
      files_(source.files),
      clock_(source.clock),
      journal_(source.journal),
      state_(source.state),
      wake_(std::move(source.wake)) {
  if (!IsObjectPath(directory_)) LookNow();  // else Mount sees to it
}

Backup::~Backup() {
  if (job_ == nullptr) return;
  gives_up_ = true;
  job_->progress.cancelled = true;
  job_->thread.join();
}

Status Backup::Mount() {
  if (!IsObjectPath(base_directory_)) return Status::Ok();
  RETURN_IF_ERROR(files_.Mount(options_.objects, base_directory_));
  files_.SetWatcher(this);
  has_looked_ = false;
  BeginLook();
  return Status::Ok();
}

bool Backup::GoesOn(uint32_t) { return !gives_up_.load(std::memory_order_relaxed); }
void Backup::Failed(const Status&) {}

void Backup::LookNow() {
  job_ = std::make_unique<Job>();
  job_->kind = Job::Kind::kLook;
  job_->status = LookForSealed(&job_->sealed);
  EndJob();
}

// Not beside a job, which may read set_ in the other thread.
void Backup::LookForPart(uint64_t set) {
  if (set_ || job_ != nullptr) return;
  set_ = set;
  if (state_now_ != BackupState::kIdle) return;
  if (!IsObjectPath(base_directory_)) return LookNow();
  has_looked_ = false;
  BeginLook();
}

void Backup::BeginLook() {
  auto job = std::make_unique<Job>();
  job->kind = Job::Kind::kLook;
  (void)BeginJob(std::move(job));
}

// A backup is sealed if there are both a note that says so and a manifest with a snapshot. One that
// was ended before that has a note without an end, or no manifest yet, or none any more. Whatever
// else is there may be a sealed one that was damaged since (kCorruption); and what cannot be read
// now may be one, so an error of the disk or the server is returned too.
Status Backup::ReadSealed(const std::string& directory, SealedBackup* sealed) {
  bool exists = false;
  ASSIGN_OR_RETURN(const BackupNote note, LoadBackupNote(files_, directory, &exists));
  if (!exists) return Status::Ok();
  ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, LoadManifest(files_, directory));
  if (!manifest) return Status::Ok();
  if (note.id.empty() || !manifest->snapshot) {
    return Status::Error(ErrorCode::kCorruption,
                         fmt::format("{}: its {} and its {} do not belong together", directory,
                                     kBackupNoteName, kManifestName));
  }
  sealed->start_unix_s = note.start_unix_s;
  sealed->end_unix_s = note.end_unix_s;
  sealed->id = note.id;
  sealed->names.push_back(FormatFileName(StoreFileKind::kSnapshot, manifest->snapshot->number));
  for (const SegmentEntry& entry : manifest->segments)
    sealed->names.push_back(FormatFileName(StoreFileKind::kSegment, entry.number));
  sealed->names.emplace_back(kManifestName);
  if (manifest->segments.empty()) sealed->snapshot = manifest->snapshot;
  sealed->directory = directory;
  sealed->cut = note.cut;
  sealed->is_there = true;
  return Status::Ok();
}

// A part of a cluster's is looked for first.
Status Backup::LookForSealed(SealedBackup* sealed) {
  if (set_) {
    const std::string part = PartDirectory(base_directory_, *set_);
    RETURN_IF_ERROR(Reach(part));
    RETURN_IF_ERROR(ReadSealed(part, sealed));
    sealed->part = set_;
    if (sealed->is_there) return Status::Ok();
  }
  sealed->part.reset();
  return ReadSealed(base_directory_, sealed);
}

void Backup::TakeSealed(SealedBackup sealed) {
  if (!sealed.is_there) return;
  start_unix_s_ = sealed.start_unix_s;
  end_unix_s_ = sealed.end_unix_s;
  id_ = std::move(sealed.id);
  names_ = std::move(sealed.names);
  directory_ = std::move(sealed.directory);
  part_ = sealed.part;
  sealed_snapshot_ = sealed.snapshot;
  sealed_cut_ = sealed.cut;
  sealed_micros_ = end_unix_s_ * kMicrosPerSecond;
  state_now_ = BackupState::kSealed;
}

std::vector<std::string> Backup::Files() const {
  std::vector<std::string> paths;
  for (const std::string& name : names_) paths.push_back(JoinPath(directory_, name));
  return paths;
}

void Backup::Interrupt(std::string why) {
  if (state_now_ == BackupState::kIdle) Fail(std::move(why));
}

// --- what clients ask for

// A backup goes through the states of BackupState, one step at each Poll; each is refused here
// unless the state allows it.
Status Backup::CheckMayStart() {
  if (journal_.holds_log_only()) return Refused("a witness holds no data: ask another node");
  if (!has_looked_) {
    return Status::Error(ErrorCode::kTryAgain,
                         fmt::format("it is not known yet if {} holds a sealed backup{}{}",
                                     directory_, look_error_.empty() ? "" : ": ", look_error_));
  }
  if (!look_error_.empty())
    return Refused(
        fmt::format("a damaged backup is there: {}. BACKUP CLEANUP removes it", look_error_));
  if (state_now_ == BackupState::kSealed)
    return Refused("a sealed backup is there: BACKUP CLEANUP removes it");
  if (state_now_ != BackupState::kIdle && state_now_ != BackupState::kFailed)
    return Refused("a backup is in progress already");
  return Status::Ok();
}

Status Backup::Start() {
  RETURN_IF_ERROR(CheckMayStart());
  part_.reset();
  directory_ = base_directory_;
  return Begin();
}

Status Backup::StartPart(uint64_t set) {
  LookForPart(set);
  if (!set_) return Status::Error(ErrorCode::kTryAgain, "the backup is being worked on");
  RETURN_IF_ERROR(CheckMayStart());
  part_ = set;
  directory_ = PartDirectory(base_directory_, set);
  return Begin();
}

Status Backup::Begin() {
  error_.clear();
  id_.clear();
  names_.clear();
  start_unix_s_ = clock_.WallMicros() / kMicrosPerSecond;
  end_unix_s_ = 0;
  sealed_snapshot_.reset();
  sealed_cut_ = 0;
  cut_.reset();
  base_ = {};
  state_now_ = BackupState::kPending;
  Poll();
  return state_now_ == BackupState::kFailed ? Refused(error_) : Status::Ok();
}

Status Backup::Seal() {
  if (state_now_ != BackupState::kIncrementing || sealing_) {
    return Refused(fmt::format("a backup can be sealed when its state is incrementing, not {}",
                               sealing_ ? "being sealed" : BackupStateName(state_now_)));
  }
  if (part_) return Refused("it is a part of a backup of the cluster, which is sealed at a cut");
  sealing_ = true;
  // Without a log that leads here from the base a second snapshot is the backup.
  if (!UsesLog()) {
    if (const Status begun = BeginSnapshot(); begun.ok() || begun.code() == ErrorCode::kTryAgain)
      return Status::Ok();  // else Poll tries again
    Fail("the state cannot be written");
    return Refused(error_);
  }
  auto job = std::make_unique<Job>();
  job->kind = Job::Kind::kSealLog;
  job->ordinal = journal_.BeginCut();
  job->lsn = journal_.last_lsn();
  job->commit_micros = journal_.last_commit_micros();
  job->base = base_;
  return BeginJob(std::move(job));
}

void Backup::NoteCut(uint64_t cut) {
  if (!part_ || state_now_ != BackupState::kIncrementing || sealing_) return;
  cut_ = CutState{.cut = cut,
                  .snapshot = state_.TakeSnapshotOfCut(cut),
                  .lsn = journal_.last_lsn(),
                  .commit_micros = journal_.last_commit_micros(),
                  .taken_micros = clock_.MonotonicMicros()};
}

Status Backup::SealCut(uint64_t cut) {
  if (!part_) return Refused("it is no part of a backup of the cluster");
  if (state_now_ == BackupState::kSealed && sealed_cut_ == cut) return Status::Ok();
  if (state_now_ != BackupState::kIncrementing || sealing_) {
    return Refused(fmt::format("a backup can be sealed when its state is incrementing, not {}",
                               sealing_ ? "being sealed" : BackupStateName(state_now_)));
  }
  if (!cut_ || cut_->cut != cut)
    return Refused(fmt::format("the state at cut {} has not been kept here", cut));
  sealing_ = true;
  if (const Status begun = BeginSnapshot(); begun.ok() || begun.code() == ErrorCode::kTryAgain)
    return Status::Ok();  // else Poll tries again
  Fail("the state cannot be written");
  return Refused(error_);
}

Status Backup::Describe(std::string text) {
  if (!part_ || state_now_ != BackupState::kSealed)
    return Refused(fmt::format("a sealed part of a backup can be described, and the state is {}",
                               BackupStateName(state_now_)));
  if (job_ != nullptr) return Status::Error(ErrorCode::kTryAgain, "the backup is being worked on");
  auto job = std::make_unique<Job>();
  job->kind = Job::Kind::kDescribe;
  job->text = std::move(text);
  ++describing_;
  return BeginJob(std::move(job));
}

Status Backup::Abort(std::string why) {
  if (state_now_ != BackupState::kPending && state_now_ != BackupState::kSnapshotting &&
      state_now_ != BackupState::kIncrementing)
    return Refused(fmt::format("there is no backup to be aborted: the state is {}",
                               BackupStateName(state_now_)));
  Fail(std::move(why));
  return Status::Ok();
}

Status Backup::Cleanup() { return CleanUp(Whose::kAll); }

Status Backup::CleanUp(Whose whose) {
  if (state_now_ != BackupState::kSealed && state_now_ != BackupState::kFailed)
    return Refused(fmt::format("there is no backup to clean up: the state is {}",
                               BackupStateName(state_now_)));
  state_now_ = BackupState::kIdle;
  look_error_.clear();  // what was damaged has been seen
  error_.clear();
  id_.clear();
  names_.clear();
  Status begun = job_ == nullptr ? BeginEmpty(whose) : Status::Ok();  // else files go already
  start_unix_s_ = end_unix_s_ = 0;
  return begun;
}

Status Backup::BeginEmpty(Whose whose) {
  auto job = std::make_unique<Job>();
  job->kind = Job::Kind::kEmpty;
  job->whose = whose;
  return BeginJob(std::move(job));
}

void Backup::Fail(std::string why) {
  state_now_ = BackupState::kFailed;
  error_ = std::move(why);
  sealing_ = false;
  awaits_commit_ = false;
  seal_.reset();
  cut_.reset();
  names_.clear();
  // The log need not stay for it any more.
  journal_.PinFrom(LogPin::kBackup, UINT64_MAX);
  if (job_ != nullptr) {
    gives_up_ = true;
    job_->progress.cancelled = true;  // EndJob sees to the files
    return;
  }
  (void)BeginEmpty(Whose::kOwn);
}

// --- the loop's part of the work

// The log leads from the base to here, and will not be voided.
bool Backup::UsesLog() const {
  return whole_log_ && journal_.Stats().log_enabled && journal_.healthy();
}

// The log is pinned before the state is taken, so that all that the snapshot lacks is still there
// when the backup is sealed.
Status Backup::BeginSnapshot() {
  if (job_ != nullptr || journal_.snapshot_running())
    return Status::Error(ErrorCode::kTryAgain, "another snapshot is being written");
  if (sealing_ && cut_) {
    auto job = std::make_unique<Job>();
    job->kind = Job::Kind::kSealSnapshot;
    job->lsn = cut_->lsn;
    job->commit_micros = cut_->commit_micros;
    job->task = {.directory = directory_,
                 .number = journal_.TakeFileNumber(),
                 .lsn = job->lsn,
                 .created_micros = static_cast<uint64_t>(clock_.WallMicros()),
                 .commit_micros = job->commit_micros};
    job->base = base_;
    job->snapshot = std::move(cut_->snapshot);
    sealed_cut_ = cut_->cut;
    cut_.reset();
    return BeginJob(std::move(job));
  }
  RETURN_IF_ERROR(journal_.CheckStateIsNewest());
  auto job = std::make_unique<Job>();
  job->kind = sealing_ ? Job::Kind::kSealSnapshot : Job::Kind::kBase;
  // From here on what the snapshot lacks stays.
  const Manifest manifest = journal_.CopyManifest();
  journal_.PinFrom(LogPin::kBackup,
                   manifest.segments.empty() ? 0 : manifest.segments.back().number);
  (void)journal_.BeginCut();
  job->lsn = journal_.last_lsn();
  job->commit_micros = journal_.last_commit_micros();
  job->task = {.directory = directory_,
               .number = journal_.TakeFileNumber(),
               .lsn = job->lsn,
               .created_micros = static_cast<uint64_t>(clock_.WallMicros()),
               .commit_micros = job->commit_micros};
  job->base = base_;
  job->snapshot = state_.TakeSnapshot();
  return BeginJob(std::move(job));
}

Status Backup::BeginJob(std::unique_ptr<Job> job) {
  CELLAR_ASSERT(job_ == nullptr);
  gives_up_ = false;
  job_ = std::move(job);
  if (job_->start_unix_s == 0) job_->start_unix_s = start_unix_s_;
  if (job_->directory.empty()) job_->directory = directory_;
  if (job_->end_unix_s == 0) job_->end_unix_s = clock_.WallMicros() / kMicrosPerSecond;
  job_->thread = std::thread([this, work = job_.get()] { RunJob(work); });
  return Status::Ok();
}

// A record that is there may still be voided in a replica set.
bool Backup::IsSettled(Lsn lsn, bool* is_void) const {
  *is_void = false;
  if (whole_log_ || lsn == Lsn{}) return true;
  *is_void = lsn.seq > journal_.last_lsn().seq || journal_.EpochOf(lsn.seq) != lsn.epoch;
  return journal_.settled_lsn().seq >= lsn.seq;
}

void Backup::TakeBase(Job* job) {
  CELLAR_ASSERT(job->manifest.snapshot.has_value());
  CELLAR_ASSERT(!sealing_);
  base_ = *job->manifest.snapshot;
  names_ = {FormatFileName(StoreFileKind::kSnapshot, base_.number)};
  base_lsn_ = job->lsn;
  awaits_commit_ = true;  // Poll looks at once
}

void Backup::TakeSeal(std::unique_ptr<Job> job) {
  CELLAR_ASSERT(sealing_);
  CELLAR_ASSERT(seal_ == nullptr);
  base_lsn_ = job->lsn;
  seal_ = std::move(job);
  awaits_commit_ = true;
}

// What is to be sealed is committed: now it may be a backup.
Status Backup::BeginInstall() {
  CELLAR_ASSERT(seal_ != nullptr);
  auto job = std::make_unique<Job>();
  job->kind = Job::Kind::kInstall;
  job->lsn = seal_->lsn;
  job->commit_micros = seal_->commit_micros;
  job->base = seal_->base;
  job->end_unix_s = seal_->end_unix_s;
  job->cut = sealed_cut_;
  job->manifest = std::move(seal_->manifest);
  seal_.reset();
  return BeginJob(std::move(job));
}

void Backup::TakeInstalled(const Job& job) {
  names_ = {FormatFileName(StoreFileKind::kSnapshot, job.manifest.snapshot->number)};
  for (const SegmentEntry& entry : job.manifest.segments)
    names_.push_back(FormatFileName(StoreFileKind::kSegment, entry.number));
  names_.emplace_back(kManifestName);
  id_ = FeedId::Of(job.commit_micros, 0).text();
  if (job.manifest.segments.empty()) sealed_snapshot_ = job.manifest.snapshot;
  end_unix_s_ = job.end_unix_s;
  sealing_ = false;
  sealed_micros_ = clock_.WallMicros();
  journal_.PinFrom(LogPin::kBackup, UINT64_MAX);
  state_now_ = BackupState::kSealed;
}

// In the loop, behind the other thread's work: what comes next depends on what was done, and on
// whether it is still wanted.
void Backup::EndJob() {
  CELLAR_ASSERT(job_ != nullptr);
  std::unique_ptr<Job> job = std::move(job_);
  if (job->thread.joinable()) job->thread.join();
  if (job->kind == Job::Kind::kEmpty) return;
  if (job->kind == Job::Kind::kDescribe) {
    described_ = {.number = describing_, .status = job->status};
    if (state_now_ == BackupState::kIdle) (void)BeginEmpty(Whose::kAll);  // cleaned up meanwhile
    return;
  }
  if (job->kind == Job::Kind::kLook) {
    constexpr int64_t kLookAgainMicros{5 * kMicrosPerSecond};
    const bool is_damaged = !job->status.ok() && job->status.code() == ErrorCode::kCorruption;
    has_looked_ = job->status.ok() || is_damaged;
    look_error_ = job->status.ok() ? std::string() : job->status.text();
    look_at_micros_ = clock_.MonotonicMicros() + kLookAgainMicros;
    if (state_now_ != BackupState::kIdle) return;
    if (!is_damaged) return TakeSealed(std::move(job->sealed));
    // Neither sealed, as nobody knows since when, nor overwritten by the next.
    state_now_ = BackupState::kFailed;
    error_ = look_error_ + ". It is kept: --check tells more, and BACKUP CLEANUP removes it";
    Log(LogSeverity::kWarning, "A backup that was made before is damaged: " + error_);
    return;
  }
  if (gives_up_ || state_now_ == BackupState::kFailed || state_now_ == BackupState::kIdle) {
    // Given up meanwhile: what it has written goes, also where the next backup waits already.
    auto empty = std::make_unique<Job>();
    empty->kind = Job::Kind::kEmpty;
    empty->whose = Whose::kOwn;
    empty->start_unix_s = job->start_unix_s;
    empty->directory = job->directory;
    (void)BeginJob(std::move(empty));
    return;
  }
  if (!job->status.ok()) return Fail(job->status.text());
  if (job->kind == Job::Kind::kBase) return TakeBase(job.get());
  if (job->kind == Job::Kind::kInstall) return TakeInstalled(*job);
  TakeSeal(std::move(job));
}

// Takes in what the other thread has done, then does the one step that the state allows. A full
// disk ends the backup, since the log behind it could not stay.
void Backup::Poll() {
  if (job_ != nullptr && job_->done.load(std::memory_order_acquire)) EndJob();
  if (!has_looked_ && job_ == nullptr && clock_.MonotonicMicros() >= look_at_micros_) BeginLook();
  if (state_now_ == BackupState::kIdle || state_now_ == BackupState::kFailed) return;
  if (state_now_ == BackupState::kSealed) {
    const int64_t ttl = options_.sealed_ttl_micros;
    if (ttl > 0 && job_ == nullptr && clock_.WallMicros() - sealed_micros_ >= ttl)
      (void)CleanUp(Whose::kOwn);
    return;
  }
  if (!journal_.Stats().log_room_ok)
    return Fail("the disk is full: the log behind the backup could not stay");
  if (awaits_commit_) {
    bool is_void = false;
    const bool is_settled = IsSettled(base_lsn_, &is_void);
    if (is_void) return Fail("what it holds was never committed");
    if (!is_settled) return;
    awaits_commit_ = false;
    if (sealing_) {
      (void)BeginInstall();
    } else {
      state_now_ = BackupState::kIncrementing;
    }
    return;
  }
  if (cut_ && !sealing_ && clock_.MonotonicMicros() - cut_->taken_micros > kCutMicros) cut_.reset();
  const bool waits = state_now_ == BackupState::kPending || (sealing_ && job_ == nullptr);
  if (!waits) return;
  if (const Status begun = BeginSnapshot(); begun.ok()) {
    if (state_now_ == BackupState::kPending) state_now_ = BackupState::kSnapshotting;
  } else if (begun.code() != ErrorCode::kTryAgain) {
    Fail(begun.text());
  }
}

// --- the other thread's part

void Backup::RunJob(Job* job) {
  SetThreadName("cellar-backup");
  LowerThreadPriority();
  const auto run = [&]() -> Status {
    RETURN_IF_ERROR(Reach(job->directory));
    if (job->kind == Job::Kind::kEmpty)
      return job->whose == Whose::kOwn ? EmptyOwn(*job) : EmptyFolder(job->directory);
    if (job->kind == Job::Kind::kLook) return LookForSealed(&job->sealed);
    if (job->kind == Job::Kind::kDescribe) return WriteDescription(job->text);
    if (job->kind == Job::Kind::kBase) RETURN_IF_ERROR(MakeFolder(*job));
    if (job->kind == Job::Kind::kSealLog) return SealFiles(job);
    if (job->kind == Job::Kind::kInstall) return Install(*job);
    ASSIGN_OR_RETURN(job->manifest.snapshot,
                     WriteSnapshot(files_, job->task, job->snapshot, &job->progress));
    job->manifest.next = job->task.number + 1;
    return Status::Ok();
  };
  job->status = run();
  job->done.store(true, std::memory_order_release);
  if (wake_) wake_();
}

// The folder of a part in an object store, of which nobody knows before the part is begun. By the
// thread that works on it: files_ is for one at a time.
Status Backup::Reach(const std::string& directory) {
  if (!IsObjectPath(directory) || files_.IsMounted(directory)) return Status::Ok();
  return files_.Mount(options_.objects, directory);
}

// Files of a store that nobody has said to be a backup are another's.
Status Backup::MakeFolder(const Job& job) {
  const std::string& directory = job.directory;
  if (directory != base_directory_) {
    ASSIGN_OR_RETURN(const bool base_exists, files_.Exists(base_directory_));
    if (!base_exists) {
      RETURN_IF_ERROR(files_.CreateDirectory(base_directory_));
      RETURN_IF_ERROR(files_.SyncDirectory(JoinPath(base_directory_, "..")));
    }
  }
  ASSIGN_OR_RETURN(const bool exists, files_.Exists(directory));
  if (!exists) {
    RETURN_IF_ERROR(files_.CreateDirectory(directory));
    RETURN_IF_ERROR(files_.SyncDirectory(JoinPath(directory, "..")));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory));
  const bool is_ours = std::find(names.begin(), names.end(), kBackupNoteName) != names.end();
  const auto other = std::find_if(names.begin(), names.end(), IsBackupFile);
  if (!is_ours && other != names.end()) {
    return Status::Error(ErrorCode::kIo,
                         fmt::format("{} is in use otherwise: {} is there", directory, *other));
  }
  ASSIGN_OR_RETURN(const bool is_archive, IsArchive(files_, directory));
  if (is_archive) {
    return Status::Error(
        ErrorCode::kIo,
        fmt::format("{} is an archive: a backup needs a folder of its own", directory));
  }
  // Of another node of the set, which has sealed it since this one has looked.
  SealedBackup sealed;
  RETURN_IF_ERROR(ReadSealed(directory, &sealed));
  if (sealed.is_there)
    return Refused(fmt::format("{} holds a sealed backup: BACKUP CLEANUP removes it", directory));
  if (directory != base_directory_) RETURN_IF_ERROR(RemoveDescription());
  RETURN_IF_ERROR(EmptyFolder(directory));
  return WriteNote(job, Sealed::kNo);
}

Status Backup::EmptyFolder(const std::string& directory) {
  ASSIGN_OR_RETURN(const bool exists, files_.Exists(directory));
  if (!exists) return Status::Ok();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory));
  if (directory != base_directory_) RETURN_IF_ERROR(RemoveDescription());
  const bool is_ours = std::find(names.begin(), names.end(), kBackupNoteName) != names.end();
  // An archive's files look the same, and are not to be touched whoever has let them in.
  ASSIGN_OR_RETURN(const bool is_archive, IsArchive(files_, directory));
  if (!is_ours || is_archive) return Status::Ok();
  // Without its manifest it is none any more, whenever this ends.
  const std::string manifest = JoinPath(directory, kManifestName);
  ASSIGN_OR_RETURN(const bool is_sealed, files_.Exists(manifest));
  if (is_sealed) {
    RETURN_IF_ERROR(files_.Remove(manifest));
    RETURN_IF_ERROR(files_.SyncDirectory(directory));
  }
  for (const std::string& name : names) {
    if (IsBackupFile(name) && name != kManifestName)
      RETURN_IF_ERROR(files_.Remove(JoinPath(directory, name)));
  }
  // The note goes last: what an end in between leaves would otherwise be taken for another's.
  return files_.Remove(JoinPath(directory, kBackupNoteName));
}

// The note says when what is there was begun. One that cannot be read is nobody's; and who does not
// know any more what it had begun has sealed nothing.
Status Backup::EmptyOwn(const Job& job) {
  bool exists = false;
  const Result<BackupNote> note = LoadBackupNote(files_, job.directory, &exists);
  const bool is_anothers =
      note.ok() && exists &&
      (job.start_unix_s == 0 ? !note->id.empty() : note->start_unix_s != job.start_unix_s);
  return is_anothers ? Status::Ok() : EmptyFolder(job.directory);
}

// Without it the folders beside it are no backup of the cluster.
Status Backup::RemoveDescription() {
  const std::string path = JoinPath(base_directory_, std::string(kDescriptionName));
  ASSIGN_OR_RETURN(const bool exists, files_.Exists(path));
  if (!exists) return Status::Ok();
  RETURN_IF_ERROR(files_.Remove(path));
  return files_.SyncDirectory(base_directory_);
}

Status Backup::WriteDescription(const std::string& text) {
  return ReplaceFile(files_, JoinPath(base_directory_, std::string(kDescriptionName)), text);
}

Status Backup::WriteNote(const Job& job, Sealed is_sealed) {
  BackupNote note{.start_unix_s = job.start_unix_s};
  if (is_sealed == Sealed::kYes) {
    // A clock that was set back meanwhile would give a note that cannot be right.
    note.end_unix_s = std::max(job.end_unix_s, job.start_unix_s);
    note.id = FeedId::Of(job.commit_micros, 0).text();
    note.cut = job.cut;
  }
  return ReplaceFile(files_, JoinPath(job.directory, kBackupNoteName), FormatBackupNote(note));
}

// The log from the base to the cut, and what the manifest will say.
// Segments must follow one another from the base to the cut without a gap. They are linked where
// that is possible, since closed ones never change.
Status Backup::SealFiles(Job* job) {
  const std::string& directory = job->directory;
  RETURN_IF_ERROR(journal_.CloseCut(job->ordinal));
  const Manifest live = journal_.CopyManifest();
  Manifest& manifest = job->manifest;
  manifest = {.next = live.next, .snapshot = job->base, .earlier = {}, .segments = {}};
  Lsn last = job->base.lsn;
  for (const SegmentEntry& entry : live.segments) {
    if (last >= job->lsn) break;
    if (entry.end && entry.end->last <= job->base.lsn) continue;
    // The first one may begin before the base: records that the base holds do no harm.
    const bool follows = entry.after == last || (manifest.segments.empty() && entry.after < last);
    if (!follows || !entry.end) return NoWay(job->base.lsn, job->lsn, last, live);
    const std::string name = FormatFileName(StoreFileKind::kSegment, entry.number);
    RETURN_IF_ERROR(LinkOrCopy(files_, JoinPath(store_directory_, name), JoinPath(directory, name),
                               entry.end->offset));
    manifest.segments.push_back(entry);
    last = entry.end->last;
  }
  if (last < job->lsn) return NoWay(job->base.lsn, job->lsn, last, live);
  if (last != job->lsn) {
    // A few records from behind the cut are in it too.
    job->lsn = last;
    ASSIGN_OR_RETURN(job->commit_micros, CommitTimeOf(files_, store_directory_, live, last));
  }
  return files_.SyncDirectory(directory);
}

// The files become a backup, by their manifest; a base that another snapshot replaces goes.
Status Backup::Install(const Job& job) {
  const std::string& directory = job.directory;
  // The manifest comes last, as it is what makes a backup of the folder.
  RETURN_IF_ERROR(WriteNote(job, Sealed::kYes));
  RETURN_IF_ERROR(InstallManifest(files_, directory, job.manifest).status);
  if (job.base.number == 0 || job.base.number == job.manifest.snapshot->number) return Status::Ok();
  const std::string base = FormatFileName(StoreFileKind::kSnapshot, job.base.number);
  (void)files_.Remove(JoinPath(directory, base));
  return Status::Ok();
}

}  // namespace cellar
