// See archive.h.
// A thread of its own makes a pass twice a second, and waits longer after failures of an object
// store. The loop only says when the disk is full, and starts the snapshot that a gap asks for.
#include "store/history/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/os/thread.h"
#include "store/format/file_copy.h"
#include "store/format/notes.h"
#include "store/format/snapshot_format.h"
#include "store/format/store_files.h"

namespace cellar {
namespace {

constexpr std::string_view kLockFile{"cellar.archive-lock"};
constexpr int64_t kPauseMs{500};
constexpr int64_t kPauseMaxMs{16'000};
constexpr size_t kGapsMax{1000};  // lines that are kept

std::string RandomId() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// The beginning and the end of the first `bytes` of a file.
Result<std::string> ReadEnds(FileSystem& files, const std::string& path, uint64_t bytes) {
  constexpr uint64_t kPiece{4096};
  ASSIGN_OR_RETURN(auto file, files.OpenForReading(path));
  std::string pieces;
  for (const uint64_t begin : {uint64_t{0}, bytes - std::min(bytes, kPiece)}) {
    std::string piece(static_cast<size_t>(std::min(bytes, kPiece)), '\0');
    ASSIGN_OR_RETURN(const size_t n, file->ReadAt(begin, piece.size(), piece.data()));
    pieces += piece.substr(0, n);
  }
  return pieces;
}

// What the two folders say of whose archive it is.
struct Notes {
  bool is_there{false};
  ArchiveNote archive{};  // if it is
  StoreIdNote own{};
};

Result<Notes> LoadNotes(FileSystem& files, const std::string& directory,
                        const std::string& store_directory) {
  const auto told = [](const Status& status, std::string_view advice) {
    if (status.code() != ErrorCode::kCorruption) return status;
    return Status::Error(ErrorCode::kCorruption, fmt::format("{}. {}", status.text(), advice));
  };
  Notes notes;
  Result<ArchiveNote> archive = LoadArchiveNote(files, directory, &notes.is_there);
  if (!archive.ok())
    return told(archive.status(),
                "Nothing of this archive is touched, and --recover reads it; another one can be "
                "begun in an empty folder");
  bool has_id = false;
  Result<StoreIdNote> own = LoadStoreIdNote(files, store_directory, &has_id);
  if (!own.ok())
    return told(own.status(),
                "It says which archive is this store's: remove it to begin another one in an "
                "empty folder");
  notes.archive = *std::move(archive);
  notes.own = *std::move(own);
  return notes;
}

bool IsClosed(const SegmentEntry& entry) { return entry.end.has_value(); }

}  // namespace

Archive::Archive(ArchiveOptions options, std::string store_directory, FileSystem& files,
                 Clock& clock, Journal& journal)
    : directory_(options.directory),
      store_directory_(std::move(store_directory)),
      files_(files),
      clock_(clock),
      journal_(journal),
      options_(std::move(options)) {
  journal_.PinFrom(LogPin::kArchive, 0);
}

Result<std::unique_ptr<Archive>> Archive::Open(ArchiveOptions options, std::string store_directory,
                                               FileSystem& files, Clock& clock, Journal& journal) {
  std::unique_ptr<Archive> archive(
      new Archive(std::move(options), std::move(store_directory), files, clock, journal));
  const std::string& directory = archive->directory_;
  if (IsObjectPath(directory)) {
    RETURN_IF_ERROR(archive->files_.Mount(archive->options_.objects, directory));
    archive->files_.SetWatcher(archive.get());
  } else {
    // A folder that cannot be reached now may be later; one that is not its own will never be.
    const Status opened = archive->OpenFolder();
    const bool may_pass =
        opened.ok() || opened.code() == ErrorCode::kIo || opened.code() == ErrorCode::kNoSpace;
    if (!may_pass) return opened;
  }
  archive->thread_ = std::thread([self = archive.get()] { self->Run(); });
  return archive;
}

Archive::~Archive() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  journal_.PinFrom(LogPin::kArchive, UINT64_MAX);
}

void Archive::SetLimits(int64_t keep_micros, uint64_t bytes_max, int64_t timeout_micros) {
  const std::lock_guard lock(mutex_);
  options_.keep_micros = keep_micros;
  options_.bytes_max = bytes_max;
  options_.timeout_micros = timeout_micros;
}

void Archive::Poll() {
  const JournalStats journal = journal_.Stats();
  bool wants_snapshot = false;
  {
    const std::lock_guard lock(mutex_);
    const bool was_short = room_is_short_;
    room_is_short_ = !journal.log_room_ok || !journal.log_ok;
    // The thread is woken once when the disk gets full: it has to archive, or to drop.
    hurry_ = hurry_ || (room_is_short_ && !was_short);
    if (hurry_) wake_.notify_all();
    wants_snapshot = wants_snapshot_ && !room_is_short_;
  }
  if (!wants_snapshot || journal_.snapshot_running() || !journal_.StartSnapshot().ok()) return;
  const std::lock_guard lock(mutex_);
  wants_snapshot_ = false;
}

ArchiveStats Archive::Stats() const {
  const Manifest manifest = journal_.CopyManifest();
  const std::lock_guard lock(mutex_);
  ArchiveStats stats = stats_;
  for (const SegmentEntry& entry : manifest.segments) {
    if (IsClosed(entry) && entry.number < stats.next_segment)
      stats.log_bytes += entry.end->offset - kSegmentHeaderBytes;
  }
  return stats;
}

std::string Archive::TakeNews() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

void Archive::Run() {
  SetThreadName("cellar-archive");
  LowerThreadPriority();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    failures_ = Pass().ok() ? 0 : failures_ + 1;
    lock.lock();
    const bool is_patient = IsObjectPath(directory_) && !room_is_short_;
    const int64_t pause_ms =
        is_patient ? std::min(kPauseMs << std::min(failures_, 10U), kPauseMaxMs) : kPauseMs;
    wake_.wait_for(lock, std::chrono::milliseconds(pause_ms), [this] { return stop_ || hurry_; });
    hurry_ = false;
  }
}

// Where the disk is full nothing is tried twice: what cannot be archived now is dropped.
bool Archive::GoesOn(uint32_t attempts) {
  const std::lock_guard lock(mutex_);
  return !stop_ && (attempts == 0 || !room_is_short_);
}

void Archive::Failed(const Status& status) {
  const std::lock_guard lock(mutex_);
  stats_.error = status.text();
  TellError(stats_.error);
}

void Archive::TellError(const std::string& error) {
  if (error.empty() == error_told_.empty() && (error.empty() || IsObjectPath(directory_))) {
    error_told_ = error;  // a server has many ways to say one thing
    return;
  }
  if (error == error_told_) return;
  news_ += news_.empty() ? "" : "; ";
  news_ += error.empty() ? "The archive takes files again"
                         : "The archive lags behind, log stays meanwhile: " + error;
  error_told_ = error;
}

// One round of the thread. Each step is tried even if one before it has failed, where it does not
// need that one; the first failure is what is told.
Status Archive::Pass() {
  Status status = is_open_ ? CheckThere() : OpenFolder();
  const Manifest manifest = journal_.CopyManifest();
  if (status.ok()) status = TakeIn(manifest);
  const Status dropped = DropForRoom(manifest);
  if (status.ok()) status = dropped;
  if (status.ok() && !gaps_are_noted_) {
    status = ReplaceFile(files_, JoinPath(directory_, kArchiveNoteName), NoteText());
    gaps_are_noted_ = status.ok();
  }
  if (status.ok()) status = Expire();
  CloseOldSegment(manifest);
  Publish(status);
  return status;
}

void Archive::Publish(const Status& status) {
  ArchiveStats stats;
  stats.error = status.ok() ? std::string() : status.text();
  stats.files = kept_.size();
  stats.gaps = gaps_.size();
  stats.next_segment = next_segment_;
  for (const auto& [number, file] : kept_) stats.bytes += file.bytes;
  const std::lock_guard lock(mutex_);
  TellError(stats.error);
  stats_ = std::move(stats);
}

// --- whose folder it is

std::string Archive::NoteText() const { return FormatArchiveNote({.store = id_, .gaps = gaps_}); }

// *note: of this store's archive; empty where a new one may begin, among `names`. A damaged note is
// an error: nothing that is there changes then.
Status Archive::CheckOwner(const std::vector<std::string>& names, std::string* note) {
  ASSIGN_OR_RETURN(const Notes notes, LoadNotes(files_, directory_, store_directory_));
  note->clear();
  if (notes.is_there) {
    *note = FormatArchiveNote(notes.archive);
    if (notes.archive.store == notes.own.store) return Status::Ok();
    return Status::Error(ErrorCode::kErr,
                         fmt::format("archive-dir {} is the archive of another store", directory_));
  }
  const auto other = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return ParseFileName(name).has_value() || name == kManifestName;
  });
  if (other != names.end()) {
    return Status::Error(ErrorCode::kErr, fmt::format("archive-dir {} is in use otherwise: {} is "
                                                      "there",
                                                      directory_, *other));
  }
  if (notes.own.archive == directory_) {
    return Status::Error(
        ErrorCode::kIo,
        fmt::format(
            "archive-dir {} is empty, but this store has had an archive there. {} Remove {} "
            "to begin another archive",
            directory_,
            IsObjectPath(directory_) ? "Is it the right server?" : "Is the disk mounted?",
            JoinPath(store_directory_, kStoreIdName)));
  }
  return Status::Ok();
}

// Is the folder still the one that was opened? Where the archive's disk is gone an empty mount
// point may stand in its place, which would take files and lose them when the disk is back.
Status Archive::CheckThere() {
  CELLAR_ASSERT(is_open_);
  if (IsObjectPath(directory_)) return Status::Ok();
  std::string note;
  Status status = CheckOwner({}, &note);
  if (status.ok() && note.empty()) {
    status = Status::Error(ErrorCode::kIo,
                           fmt::format("archive-dir {} has lost its {}. Is the disk mounted?",
                                       directory_, kArchiveNoteName));
  }
  is_open_ = status.ok();
  return status;
}

// Repeated as a whole until it has succeeded: the folder may be on a disk or a server that is not
// there yet. Only then are there files to add to.
Status Archive::OpenFolder() {
  CELLAR_ASSERT(!is_open_);
  ASSIGN_OR_RETURN(const bool exists, files_.Exists(directory_));
  if (!exists) {
    RETURN_IF_ERROR(files_.CreateDirectory(directory_));
    RETURN_IF_ERROR(files_.SyncDirectory(JoinPath(directory_, "..")));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  std::string note;
  RETURN_IF_ERROR(CheckOwner(names, &note));
  ASSIGN_OR_RETURN(const Notes notes, LoadNotes(files_, directory_, store_directory_));
  // In this order an end in between is no hindrance, nor that the data directory gets full before
  // the archive can be reached.
  const std::string id_path = JoinPath(store_directory_, kStoreIdName);
  id_ = notes.own.store;
  if (id_.empty()) {
    id_ = RandomId();
    RETURN_IF_ERROR(ReplaceFile(files_, id_path, FormatStoreIdNote({.store = id_})));
  }
  if (lock_ == nullptr) {
    ASSIGN_OR_RETURN(lock_, files_.Lock(JoinPath(directory_, kLockFile)));
  }
  if (!notes.is_there)
    RETURN_IF_ERROR(ReplaceFile(files_, JoinPath(directory_, kArchiveNoteName), NoteText()));
  // Without it only a disk that is not mounted would not be noticed.
  if (!notes.is_there || notes.own.is_old)
    (void)ReplaceFile(files_, id_path, FormatStoreIdNote({.store = id_, .archive = directory_}));
  if (notes.archive.is_old) gaps_are_noted_ = false;  // it gets its checksum
  // Those that the folder knows of; behind them what an attempt before this one has seen and could
  // not write there.
  std::vector<std::string> gaps = notes.archive.gaps;
  for (std::string& gap : gaps_) {
    if (std::find(gaps.begin(), gaps.end(), gap) == gaps.end()) gaps.push_back(std::move(gap));
  }
  gaps_ = std::move(gaps);
  kept_.clear();
  heads_.clear();
  for (const std::string& name : names) RETURN_IF_ERROR(Learn(name));
  is_open_ = true;
  return Status::Ok();
}

// A file that is there from before.
Status Archive::Learn(const std::string& name) {
  const std::string path = JoinPath(directory_, name);
  if (name.starts_with("cellar-") && name.ends_with(".tmp")) return files_.Remove(path);
  const std::optional<StoreFileName> parsed = ParseFileName(name);
  if (!parsed || parsed->kind == StoreFileKind::kTemporarySnapshot) return Status::Ok();
  Kept file;
  file.kind = parsed->kind;
  ASSIGN_OR_RETURN(auto readable, files_.OpenForReading(path));
  ASSIGN_OR_RETURN(file.bytes, readable->Size());
  kept_[parsed->number] = file;
  return Status::Ok();
}

// --- what comes in

// A file of a number that is there already is the same one.
Status Archive::CheckSame(const std::string& name) {
  CELLAR_ASSERT(kept_.contains(ParseFileName(name)->number));
  // Each record's hash covers those before it: of the end a piece will do.
  ASSIGN_OR_RETURN(const std::string here, ReadEnds(files_, JoinPath(directory_, name),
                                                    kept_.at(ParseFileName(name)->number).bytes));
  ASSIGN_OR_RETURN(const std::string there, ReadEnds(files_, JoinPath(store_directory_, name),
                                                     kept_.at(ParseFileName(name)->number).bytes));
  if (here == there) return Status::Ok();
  return Status::Error(ErrorCode::kErr,
                       fmt::format("archive-dir {} is the archive of another store: its {} is not "
                                   "this one's",
                                   directory_, name));
}

// Linked where the archive is on the same disk, copied elsewhere. A file with that number that is
// there already must be this one: two stores in one archive would be the end of both.
Status Archive::TakeFile(StoreFileKind kind, uint64_t number, uint64_t bytes, bool* came) {
  const std::string name = FormatFileName(kind, number);
  // Of those that are there already a segment comes here once, a snapshot each time.
  const bool is_new = kind == StoreFileKind::kSegment || next_segment_ == 0;
  // No lock keeps a copy of this store away from a bucket, and an object would be replaced.
  if (IsObjectPath(directory_) && !kept_.contains(number)) {
    ASSIGN_OR_RETURN(const bool is_there, files_.Exists(JoinPath(directory_, name)));
    if (is_there) RETURN_IF_ERROR(Learn(name));
  }
  if (const auto there = kept_.find(number); there != kept_.end()) {
    if (there->second.bytes == bytes) return is_new ? CheckSame(name) : Status::Ok();
    return Status::Error(ErrorCode::kErr,
                         fmt::format("archive-dir {} is the archive of another store: its {} has "
                                     "{} bytes, not {}",
                                     directory_, name, there->second.bytes, bytes));
  }
  RETURN_IF_ERROR(
      LinkOrCopy(files_, JoinPath(store_directory_, name), JoinPath(directory_, name), bytes));
  *came = true;
  RETURN_IF_ERROR(Learn(name));
  CELLAR_ASSERT(kept_.contains(number));
  const uint64_t bytes_there = kept_.at(number).bytes;
  if (bytes_there == bytes) return Status::Ok();
  kept_.erase(number);
  return Status::Error(ErrorCode::kIo, fmt::format("{} has {} bytes, not {}",
                                                   JoinPath(directory_, name), bytes_there, bytes));
}

// Snapshots first, then closed segments in order. What has come is on the disk before the log may
// drop it (PinFrom).
Status Archive::TakeIn(const Manifest& manifest) {
  bool came = false;
  std::vector<SnapshotEntry> snapshots = manifest.earlier;
  if (manifest.snapshot) snapshots.push_back(*manifest.snapshot);
  for (const SnapshotEntry& entry : snapshots) {
    Status taken = TakeFile(StoreFileKind::kSnapshot, entry.number, entry.bytes, &came);
    if (taken.ok()) continue;
    // It may have gone for a newer one meanwhile.
    const Manifest now = journal_.CopyManifest();
    if (now.Names({StoreFileKind::kSnapshot, entry.number})) return taken;
  }
  uint64_t next = manifest.segments.empty() ? manifest.next : manifest.segments.back().number + 1;
  for (const SegmentEntry& entry : manifest.segments) {
    if (!IsClosed(entry)) {
      next = entry.number;
      break;
    }
    if (entry.number < next_segment_) continue;
    RETURN_IF_ERROR(TakeFile(StoreFileKind::kSegment, entry.number, entry.end->offset, &came));
  }
  if (came) {
    RETURN_IF_ERROR(files_.SyncDirectory(directory_));
    RETURN_IF_ERROR(CheckThere());  // or what has come is elsewhere
  }
  if (next > next_segment_) {
    next_segment_ = next;
    journal_.PinFrom(LogPin::kArchive, next);
  }
  return Status::Ok();
}

// The disk has no room for writes: of what waits to be archived and no start needs the oldest goes.
Status Archive::DropForRoom(const Manifest& manifest) {
  {
    const std::lock_guard lock(mutex_);
    if (!room_is_short_) return Status::Ok();
  }
  if (!manifest.snapshot) return Status::Ok();
  for (const SegmentEntry& entry : manifest.segments) {
    if (!IsClosed(entry) || entry.end->last > manifest.snapshot->lsn) break;
    if (entry.number < next_segment_ || kept_.contains(entry.number)) continue;
    gaps_.push_back(
        fmt::format("gap after {} to {}", FormatLsn(entry.after), FormatLsn(entry.end->last)));
    if (gaps_.size() > kGapsMax) gaps_.erase(gaps_.begin());
    gaps_are_noted_ = false;
    next_segment_ = entry.number + 1;
    journal_.PinFrom(LogPin::kArchive, next_segment_);
    const std::lock_guard lock(mutex_);
    // Nothing leads over the gap, so a base is needed behind it.
    wants_snapshot_ = true;
    news_ += news_.empty() ? "" : "; ";
    news_ += fmt::format(
        "THE ARCHIVE HAS A GAP: the disk is full, and {} was dropped before it was "
        "archived",
        FormatFileName(StoreFileKind::kSegment, entry.number));
    break;  // one at a time
  }
  return Status::Ok();
}

void Archive::CloseOldSegment(const Manifest& manifest) {
  // A segment goes into the archive when it is closed. A quiet log would keep its last changes out
  // of it, so the open segment is closed when it has become old enough.
  int64_t timeout_micros = 0;
  {
    const std::lock_guard lock(mutex_);
    timeout_micros = options_.timeout_micros;
  }
  if (manifest.segments.empty() || IsClosed(manifest.segments.back())) return;
  const int64_t now = clock_.MonotonicMicros();
  const uint64_t number = manifest.segments.back().number;
  if (number != open_segment_) {
    open_segment_ = number;
    open_since_micros_ = now;
  }
  if (timeout_micros == 0 || now - open_since_micros_ < timeout_micros) return;
  open_since_micros_ = now;
  (void)journal_.CloseCut(UINT64_MAX);  // without records it stays
}

// --- what goes

// Read once, when it is asked for: a server of objects takes its time.
Result<Archive::Head> Archive::HeadOf(uint64_t number) {
  if (const auto known = heads_.find(number); known != heads_.end()) return known->second;
  CELLAR_ASSERT(kept_.contains(number));
  const StoreFileKind kind = kept_.at(number).kind;
  const std::string path = JoinPath(directory_, FormatFileName(kind, number));
  ASSIGN_OR_RETURN(auto file, files_.OpenForReading(path));
  std::string front(std::max(kSegmentHeaderBytes, kSnapshotHeaderBytes), '\0');
  ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, front.size(), front.data()));
  front.resize(n);
  Head head;
  if (kind == StoreFileKind::kSegment) {
    if (const auto header = DecodeSegmentHeader(front); header.ok())
      head = {.lsn = header->after, .commit_micros = header->after_micros, .is_known = true};
  } else if (const auto header = DecodeSnapshotHeader(front); header.ok()) {
    head = {.lsn = header->lsn, .commit_micros = header->commit_micros, .is_known = true};
  }
  heads_[number] = head;
  return head;
}

// What is not needed for a base: snapshots before it, and segments that end where it begins.
Result<std::vector<uint64_t>> Archive::Superseded(uint64_t base) {
  CELLAR_ASSERT(kept_.contains(base));
  std::vector<uint64_t> go;
  std::vector<uint64_t> segments;
  for (const auto& [number, file] : kept_) {
    if (number >= base) break;
    (file.kind == StoreFileKind::kSnapshot ? go : segments).push_back(number);
  }
  // The last one before it may hold records that it lacks, unless the next one begins with it.
  const auto next = std::find_if(kept_.begin(), kept_.end(), [&](const auto& file) {
    return file.first > base && file.second.kind == StoreFileKind::kSegment;
  });
  bool is_exact = false;
  if (next != kept_.end() && !segments.empty()) {
    ASSIGN_OR_RETURN(const Head behind, HeadOf(next->first));
    ASSIGN_OR_RETURN(const Head own, HeadOf(base));
    is_exact = behind.lsn == own.lsn;
  }
  if (!is_exact && !segments.empty()) segments.pop_back();
  go.insert(go.end(), segments.begin(), segments.end());
  return go;
}

// The newest snapshot that is old enough stays, and all behind it; of several that are not, as many
// as there is room for.
Status Archive::Expire() {
  int64_t keep_micros = 0;
  uint64_t bytes_max = 0;
  {
    const std::lock_guard lock(mutex_);
    keep_micros = options_.keep_micros;
    bytes_max = options_.bytes_max;
  }
  const int64_t horizon = clock_.WallMicros() - keep_micros;
  uint64_t bytes = 0;
  for (const auto& [number, file] : kept_) bytes += file.bytes;
  std::vector<uint64_t> bases;
  for (const auto& [number, file] : kept_) {
    if (file.kind == StoreFileKind::kSnapshot) bases.push_back(number);
  }
  std::set<uint64_t> go;
  for (size_t i = 1; i < bases.size(); ++i) {
    ASSIGN_OR_RETURN(const Head base, HeadOf(bases[i]));
    // One that is damaged replaces none; of old formats it is not known of when they are.
    if (!base.is_known) continue;
    const bool is_old = base.commit_micros > 0 && base.commit_micros <= horizon;
    const bool is_too_much = bytes_max != 0 && bytes > bytes_max;
    if (!is_old && !is_too_much) continue;
    ASSIGN_OR_RETURN(const std::vector<uint64_t> superseded, Superseded(bases[i]));
    for (const uint64_t number : superseded) {
      if (go.insert(number).second) bytes -= kept_.at(number).bytes;
    }
  }
  for (const uint64_t number : go) {
    RETURN_IF_ERROR(
        files_.Remove(JoinPath(directory_, FormatFileName(kept_.at(number).kind, number))));
    kept_.erase(number);
    heads_.erase(number);
  }
  return go.empty() ? Status::Ok() : files_.SyncDirectory(directory_);
}

}  // namespace cellar
