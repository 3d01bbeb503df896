// --check and --repair: see check.h.
#include "store/offline/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "base/os/object_store.h"
#include "base/text/sealed_text.h"
#include "cellar/clock.h"
#include "store/format/manifest.h"
#include "store/format/member_name.h"
#include "store/format/notes.h"
#include "store/format/store_files.h"
#include "store/log/log_reader.h"
#include "store/log/log_replay.h"
#include "store/offline/archive_check.h"
#include "store/offline/manifest_rebuild.h"
#include "store/offline/repair.h"
#include "store/snapshot/snapshot_reader.h"
#include "store/snapshot/snapshot_salvage.h"
#include "store/snapshot/snapshot_writer.h"

namespace cellar {
namespace {

std::string CountOf(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

class Check {
 public:
  Check(FileSystem& files, const std::string& directory, CheckMode mode, StateMachine& state,
        std::ostream& out)
      : files_(files), directory_(directory), mode_(mode), state_(state), out_(out) {}

  Status Run();
  const CheckedMember& member() const { return member_; }

 private:
  Status FindManifest();
  Status TakeRebuilt(std::optional<uint64_t> without);
  Status CheckSnapshot();
  Result<std::unique_ptr<SnapshotReader>> OpenSnapshot(const SnapshotEntry& entry,
                                                       const std::string& name);
  Status LoadWhole(const SnapshotEntry& entry, const std::string& name);
  Result<bool> GoBack();
  Result<bool> LogLeads(const Manifest& manifest, Lsn lsn) const;
  Status CheckEarlier();
  Status VerifyWhole(const SnapshotEntry& entry, const std::string& name);
  Status DoWithout(const std::string& name);
  Status WriteSalvaged(const Salvage& salvage, uint64_t from);
  Status CheckLog();
  Status CheckNotes();
  template <typename Note>
  Status TakeNote(std::string_view name, const Result<Note>& note, bool exists);
  Result<bool> TellOptions(const std::string& name);
  Status NameOtherFiles();
  void CutLog(RepairPlan* plan);
  Status Repair();
  Status Verdict();
  void Say(std::string_view name, std::string_view text) { out_ << name << ": " << text << '\n'; }

  FileSystem& files_;
  const std::string& directory_;
  const CheckMode mode_;
  StateMachine& state_;
  CheckedMember member_;
  LogReplay replay_{state_, ApplyUpTo::kEnd};
  std::ostream& out_;
  Manifest before_;                  // on the disk
  Manifest manifest_;                // what is checked: the same, or what can be made of the files
  std::vector<std::string> faults_;  // each with what a repair would do
  std::vector<KeptAside> aside_;
  std::string damaged_options_;              // the name of a file
  Lsn snapshot_lost_;                        // up to there; of one that cannot be used
  std::optional<SnapshotEntry> salvaged_{};  // in place of the damaged one
  // The first segment that is damaged, and what is sound of it.
  std::optional<size_t> damaged_segment_;
  SegmentReport damaged_report_;
  size_t damaged_covered_{0};  // of the segments, that the snapshot covers: one behind the last
};

// The first segment with records that the snapshot lacks, as a start sees it (recovery.cc).
size_t FirstSegment(const Manifest& manifest) {
  size_t first = 0;
  const Lsn snapshot = manifest.snapshot ? manifest.snapshot->lsn : Lsn{};
  for (size_t i = 1; i < manifest.segments.size(); ++i) {
    if (manifest.segments[i].after == snapshot && manifest.segments[i - 1].end) first = i;
  }
  return first;
}

// A manifest that is missing or damaged is made anew, and what follows checks that one. An error of
// the disk ends the check: what cannot be read now need not be damaged.
Status Check::FindManifest() {
  Result<std::optional<Manifest>> manifest = LoadManifest(files_, directory_);
  if (!manifest.ok() && manifest.status().code() != ErrorCode::kCorruption)
    return manifest.status();
  if (manifest.ok() && *manifest) {
    before_ = manifest_ = **manifest;
    Say(kManifestName,
        fmt::format(
            "ok, {} snapshot{}, {}{}", manifest_.snapshot ? "a" : "no",
            manifest_.earlier.empty() ? "" : fmt::format(", {} earlier", manifest_.earlier.size()),
            CountOf(manifest_.segments.size(), "log segment", "log segments"),
            manifest_.holds_log_only ? "; of a witness, which holds no data" : ""));
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  const bool is_missing = manifest.ok();
  if (is_missing && CheckNoOrphans(directory_, names).ok())
    return Status::Error(ErrorCode::kCorruption,
                         JoinPath(directory_, kManifestName) + " is missing: no store here");
  Say(kManifestName, is_missing ? "MISSING" : "DAMAGED: " + manifest.status().text());
  if (!is_missing) aside_.push_back({std::string(kManifestName)});
  RETURN_IF_ERROR(TakeRebuilt(std::nullopt));
  faults_.push_back(
      fmt::format("the manifest is {}: a repair puts the one in its place that the "
                  "files make",
                  is_missing ? "missing" : "damaged"));
  return Status::Ok();
}

Status Check::TakeRebuilt(std::optional<uint64_t> without) {
  ASSIGN_OR_RETURN(auto rebuilt, RebuildManifest(files_, directory_, without));
  if (!rebuilt)
    return Status::Error(ErrorCode::kCorruption,
                         "of the files no store can be made: there is neither a snapshot that can "
                         "be read nor the beginning of a log. Restore the directory from a backup");
  manifest_ = rebuilt->manifest;
  // What the files themselves cannot tell is taken from the manifest on the disk, if that could be
  // read.
  manifest_.next = std::max(manifest_.next, before_.next);
  manifest_.holds_log_only = before_.holds_log_only;
  out_ << "the files make a store of "
       << (manifest_.snapshot ? FormatFileName(StoreFileKind::kSnapshot, manifest_.snapshot->number)
                              : std::string("no snapshot"));
  for (const SegmentEntry& entry : manifest_.segments)
    out_ << ", " << FormatFileName(StoreFileKind::kSegment, entry.number);
  out_ << '\n';
  for (const RebuiltManifest::Left& left : rebuilt->left) {
    Say(left.name, "is not needed for it: " + left.why);
    aside_.push_back({left.name, kUnusedSuffix});
  }
  return Status::Ok();
}

Result<std::unique_ptr<SnapshotReader>> Check::OpenSnapshot(const SnapshotEntry& entry,
                                                            const std::string& name) {
  const std::string path = JoinPath(directory_, name);
  ASSIGN_OR_RETURN(const bool exists, files_.Exists(path));
  if (!exists)
    return Status::Error(ErrorCode::kCorruption, "the manifest names it, but it is missing");
  ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files_, path));
  RETURN_IF_ERROR(reader->CheckAgainst(entry));
  return reader;
}

Status Check::LoadWhole(const SnapshotEntry& entry, const std::string& name) {
  ASSIGN_OR_RETURN(const auto reader, OpenSnapshot(entry, name));
  RETURN_IF_ERROR(LoadSnapshot(reader.get(), state_, [](uint64_t) { return Status::Ok(); }));
  replay_.BeginBehind(entry.lsn, reader->footer().members);
  uint64_t entries = 0;
  for (const SnapshotTree& tree : reader->footer().trees) entries += tree.entries;
  Say(name, fmt::format("ok, up to record {}, {}, {}, {} bytes", FormatLsn(entry.lsn),
                        CountOf(reader->footer().trees.size(), "tree", "trees"),
                        CountOf(entries, "entry", "entries"), reader->file_bytes()));
  return Status::Ok();
}

// What it tries, one after the other: the snapshot, earlier ones with the log from there, what is
// sound of the snapshot, and doing without it.
Status Check::CheckSnapshot() {
  if (!manifest_.snapshot) {
    out_ << "no snapshot\n";
    return Status::Ok();
  }
  const SnapshotEntry entry = *manifest_.snapshot;
  const std::string name = FormatFileName(StoreFileKind::kSnapshot, entry.number);
  Status status = LoadWhole(entry, name);
  if (status.ok() || status.code() != ErrorCode::kCorruption) return status;
  Say(name, "DAMAGED: " + status.text());
  aside_.push_back({name});
  ASSIGN_OR_RETURN(const bool goes_back, GoBack());
  if (goes_back) return Status::Ok();
  state_.Reset();
  const Result<Salvage> salvage =
      SalvageSnapshot(files_, JoinPath(directory_, name), entry, state_);
  if (!salvage.ok() && salvage.status().code() != ErrorCode::kCorruption) return salvage.status();
  if (!salvage.ok()) {
    Say(name, salvage.status().text());
    return DoWithout(name);
  }
  Say(name, fmt::format("sound of it: {} in {}", CountOf(salvage->entries, "entry", "entries"),
                        CountOf(salvage->trees, "tree", "trees")));
  for (const std::string& line : salvage->lost) Say(name, "LOST: " + line);
  if (salvage->lost.empty()) Say(name, "nothing that it held is lost");
  faults_.push_back(
      fmt::format("the snapshot is damaged: a repair goes on with what is sound of it, {}",
                  salvage->lost.empty() ? "which is all" : "without what is said to be lost"));
  replay_.BeginBehind(salvage->lsn, salvage->members);
  return mode_ == CheckMode::kRepair ? WriteSalvaged(*salvage, entry.number) : Status::Ok();
}

// To an earlier snapshot, or the beginning of the log, if the log leads from there to what the
// damaged one held: then nothing is lost. It is what a start does.
Result<bool> Check::GoBack() {
  const SnapshotEntry damaged = *manifest_.snapshot;
  const std::string name = FormatFileName(StoreFileKind::kSnapshot, damaged.number);
  Manifest back = manifest_;
  std::vector<KeptAside> skipped;
  while (back.snapshot) {
    back.snapshot.reset();
    if (!back.earlier.empty()) {
      back.snapshot = back.earlier.back();
      back.earlier.pop_back();
    } else if (back.segments.empty() || back.segments.front().after != Lsn{}) {
      return false;
    }
    ASSIGN_OR_RETURN(const bool leads, LogLeads(back, damaged.lsn));
    if (!leads) return false;
    state_.Reset();
    std::string from = "the beginning of the log";
    if (back.snapshot) {
      from = FormatFileName(StoreFileKind::kSnapshot, back.snapshot->number);
      Status status = LoadWhole(*back.snapshot, from);
      if (!status.ok() && status.code() != ErrorCode::kCorruption) return status;
      if (!status.ok()) {
        Say(from, "DAMAGED: " + status.text());
        skipped.push_back({from});
        continue;
      }
    }
    manifest_ = back;
    aside_.insert(aside_.end(), skipped.begin(), skipped.end());
    faults_.push_back(
        fmt::format("the snapshot {} is damaged: from {} the log leads to all that it "
                    "held, so that nothing is lost, and a repair leaves it out",
                    name, from));
    return true;
  }
  return false;
}

// Whether the log is sound from the snapshot of `manifest` to `lsn` and to its end.
Result<bool> Check::LogLeads(const Manifest& manifest, Lsn lsn) const {
  LogReader log(files_, directory_, manifest.snapshot ? manifest.snapshot->lsn : Lsn{});
  const size_t first = FirstSegment(manifest);
  for (size_t i = first; i < manifest.segments.size(); ++i) {
    ASSIGN_OR_RETURN(const SegmentReport report,
                     log.Read(manifest.segments[i], i + 1 == manifest.segments.size(),
                              [](const LogRecord&) { return Status::Ok(); }));
    if (report.outcome == SegmentOutcome::kDamaged) return false;
  }
  return log.last() >= lsn;
}

// Earlier snapshots that are not what is gone on from.
Status Check::CheckEarlier() {
  std::vector<SnapshotEntry> sound;
  for (const SnapshotEntry& entry : manifest_.earlier) {
    const std::string name = FormatFileName(StoreFileKind::kSnapshot, entry.number);
    Status status = VerifyWhole(entry, name);
    if (!status.ok() && status.code() != ErrorCode::kCorruption) return status;
    if (status.ok()) {
      sound.push_back(entry);
      continue;
    }
    Say(name, "DAMAGED: " + status.text());
    aside_.push_back({name});
    faults_.push_back("the earlier snapshot " + name + " is damaged: a repair leaves it out");
  }
  manifest_.earlier = std::move(sound);
  return Status::Ok();
}

Status Check::VerifyWhole(const SnapshotEntry& entry, const std::string& name) {
  ASSIGN_OR_RETURN(const auto reader, OpenSnapshot(entry, name));
  RETURN_IF_ERROR(reader->VerifyBlocks());
  Say(name, fmt::format("ok, an earlier one, up to record {}, {} bytes", FormatLsn(entry.lsn),
                        reader->file_bytes()));
  return Status::Ok();
}

// An older snapshot, or the log alone, as far as they go.
Status Check::DoWithout(const std::string& name) {
  const SnapshotEntry entry = *manifest_.snapshot;
  state_.Reset();
  snapshot_lost_ = entry.lsn;
  std::erase_if(aside_, [](const KeptAside& aside) { return aside.suffix == kUnusedSuffix; });
  RETURN_IF_ERROR(TakeRebuilt(entry.number));
  faults_.push_back("the snapshot " + name + " cannot be used: a repair goes on without it");
  if (!manifest_.snapshot) return Status::Ok();
  Status older = LoadWhole(*manifest_.snapshot,
                           FormatFileName(StoreFileKind::kSnapshot, manifest_.snapshot->number));
  if (older.ok() || older.code() != ErrorCode::kCorruption) return older;
  return Status::Error(ErrorCode::kCorruption,
                       "two snapshots are damaged; restore the directory from a backup");
}

Status Check::WriteSalvaged(const Salvage& salvage, uint64_t from) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  // No number of a file that is there, whether or not a manifest names it.
  uint64_t number = manifest_.next;
  for (const std::string& other : names) {
    if (const auto parsed = ParseFileName(other)) number = std::max(number, parsed->number + 1);
  }
  const SnapshotTask task{.directory = directory_,
                          .number = number,
                          .lsn = salvage.lsn,
                          .created_micros = static_cast<uint64_t>(Clock::System().WallMicros()),
                          .commit_micros = salvage.commit_micros,
                          .members = salvage.members,
                          .salvaged_from = from};
  SnapshotProgress progress;
  ASSIGN_OR_RETURN(salvaged_, WriteSnapshot(files_, task, state_.TakeSnapshot(), &progress));
  return Status::Ok();
}

// Reads as a start would, and applies the records to an engine, so that what cannot be applied is
// found as well. Goes on behind damage that the snapshot covers; segments behind any other are not
// checked.
Status Check::CheckLog() {
  const Lsn snapshot = manifest_.snapshot ? manifest_.snapshot->lsn : Lsn{};
  LogReader log(files_, directory_, snapshot);
  const auto apply = [&](const LogRecord& record) {
    if (record.lsn <= snapshot) return Status::Ok();
    // In a replica set a record may be voided until it is committed.
    if (manifest_.holds_log_only) replay_.SetContent(StoreContent::kLogOnly);
    if (!replay_.members().empty()) replay_.SetUpTo(ApplyUpTo::kCommitMark);
    return replay_.Take(record);
  };
  const std::vector<SegmentEntry>& entries = manifest_.segments;
  const size_t first = FirstSegment(manifest_);
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string name = FormatFileName(StoreFileKind::kSegment, entries[i].number);
    if (damaged_segment_) {
      Say(name, "not checked, because the log before it is damaged");
      continue;
    }
    ASSIGN_OR_RETURN(const SegmentReport report,
                     log.Read(entries[i], i + 1 == entries.size(), apply));
    const std::string content =
        fmt::format("{} after {} up to {}, {} bytes", CountOf(report.records, "record", "records"),
                    FormatLsn(entries[i].after), FormatLsn(report.end.last), report.end.offset);
    switch (report.outcome) {
      case SegmentOutcome::kWhole:
        Say(name, "ok, " + content);
        break;
      case SegmentOutcome::kTorn:
        Say(name, fmt::format("ok, {}; then the torn tail of a crash, {} bytes, which the next "
                              "start cuts off ({})",
                              content, report.tail_bytes, report.fault));
        break;
      case SegmentOutcome::kDamaged:
        if (i < first || (entries[i].end && entries[i].end->last <= snapshot)) {
          damaged_covered_ = i + 1;
          Say(name, fmt::format("DAMAGED: {}; the snapshot has all that it holds", report.fault));
          break;
        }
        Say(name, fmt::format("DAMAGED: {}; sound before it: {}; whole records after it: {}",
                              report.fault, content, report.tail_records));
        damaged_segment_ = i;
        damaged_report_ = report;
        break;
    }
  }
  if (log.last() < snapshot_lost_)
    out_ << "LOST: all changes after record " << FormatLsn(log.last()) << " up to record "
         << FormatLsn(snapshot_lost_) << ", which only the damaged snapshot had\n";
  member_ = {.members = replay_.members(),
             .committed = std::max(snapshot, replay_.mark().lsn),
             .last = std::max(snapshot, log.last())};
  for (const PendingRecord& record : replay_.pending())
    if (record.head.kind == RecordKind::kMembers) member_.members = record.payload;
  return damaged_segment_ ? Status::Ok() : replay_.ApplyPending();
}

// The store can do without them, so a repair only puts a damaged one aside: of what it spoke for
// nothing changes, and a server says what it misses.
template <typename Note>
Status Check::TakeNote(std::string_view name, const Result<Note>& note, bool exists) {
  if (!note.ok() && note.status().code() != ErrorCode::kCorruption) return note.status();
  if (!exists) return Status::Ok();
  if (note.ok()) {
    Say(name, note->is_old ? "ok, of an older version, without a checksum" : "ok");
    return Status::Ok();
  }
  Say(name, "DAMAGED: " + note.status().text());
  aside_.push_back({std::string(name)});
  faults_.push_back(fmt::format("{} is damaged: a repair puts it aside", name));
  return Status::Ok();
}

Status Check::CheckNotes() {
  bool exists = false;
  const Result<StoreIdNote> id = LoadStoreIdNote(files_, directory_, &exists);
  RETURN_IF_ERROR(TakeNote(kStoreIdName, id, exists));
  const Result<BackupNote> backup = LoadBackupNote(files_, directory_, &exists);
  return TakeNote(kBackupNoteName, backup, exists);
}

// What CONFIG REWRITE has written (override-file), wherever its name is from. false: it is not such
// a file.
Result<bool> Check::TellOptions(const std::string& name) {
  constexpr uint64_t kBytesMax{1 << 20};
  if (IsObjectPath(directory_)) return false;
  const auto file = files_.OpenForReading(JoinPath(directory_, name));
  if (!file.ok()) return false;  // a folder, or not ours to read
  const Result<uint64_t> size = (*file)->Size();
  if (!size.ok() || *size > kBytesMax) return false;
  std::string text(static_cast<size_t>(*size), '\0');
  const Result<size_t> n = (*file)->ReadAt(0, text.size(), text.data());
  if (!n.ok()) return false;
  text.resize(*n);
  const Seal seal = SealOfOptions(text);
  if (seal == Seal::kNone) return false;
  if (seal == Seal::kSound) {
    Say(name, "ok, options of the server");
    return true;
  }
  Say(name, "DAMAGED: its checksum is wrong, unless it was changed by hand");
  damaged_options_ = name;
  return true;
}

Status Check::NameOtherFiles() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  for (const std::string& name : names) {
    // What a member of a replica set has promised: told of by who knows more of it.
    if (name == kManifestName || name == kLockName || name == kReplicaFileName) continue;
    if (name == kMemberFileName || name == kBackupNoteName || name == kBackupFolderName ||
        name == kStoreIdName)
      continue;
    const auto parsed = ParseFileName(name);
    const bool is_named = parsed && (manifest_.Names(*parsed) || before_.Names(*parsed));
    const bool is_ours = salvaged_ && parsed && parsed->number == salvaged_->number;
    if (is_named || is_ours) continue;
    ASSIGN_OR_RETURN(const bool is_told, TellOptions(name));
    if (is_told) continue;
    Say(name,
        IsRedisFileName(name) ? "data of Redis, not part of the store" : "not part of the store");
  }
  return Status::Ok();
}

// The log ends where it is sound no more.
void Check::CutLog(RepairPlan* plan) {
  const size_t damaged = *damaged_segment_;
  for (size_t i = damaged; i < manifest_.segments.size(); ++i)
    plan->aside.push_back({FormatFileName(StoreFileKind::kSegment, manifest_.segments[i].number)});
  plan->after.segments.resize(damaged);
  const LogPosition& end = damaged_report_.end;
  if (!damaged_report_.has_header || end.offset <= kSegmentHeaderBytes) return;
  SegmentEntry entry = manifest_.segments[damaged];
  entry.end = SegmentEntry::End{end.offset, end.last};
  plan->after.segments.push_back(entry);
}

Status Check::Repair() {
  RepairPlan plan{before_, manifest_, aside_};
  if (damaged_segment_) CutLog(&plan);
  // No gap stays in front of what is needed.
  for (size_t i = 0; i < damaged_covered_; ++i)
    plan.aside.push_back({FormatFileName(StoreFileKind::kSegment, manifest_.segments[i].number)});
  const auto begin = plan.after.segments.begin();
  plan.after.segments.erase(begin, begin + static_cast<std::ptrdiff_t>(damaged_covered_));
  if (salvaged_) {
    plan.after.snapshot = salvaged_;
    plan.after.next = std::max(plan.after.next, salvaged_->number + 1);
  }
  RETURN_IF_ERROR(CarryOutRepair(files_, directory_, plan, out_));
  if (salvaged_)
    Say(FormatFileName(StoreFileKind::kSnapshot, salvaged_->number),
        "holds what was sound of the damaged snapshot");
  if (!damaged_segment_) {
    out_ << "repaired\n";
    return Status::Ok();
  }
  const Manifest& repaired = plan.after;
  const Lsn last = !repaired.segments.empty() ? repaired.segments.back().end->last
                   : repaired.snapshot        ? repaired.snapshot->lsn
                                              : Lsn{};
  out_ << "repaired: the log ends with record " << FormatLsn(last) << " now\n";
  return Status::Ok();
}

Status Check::Verdict() {
  if (damaged_segment_)
    faults_.push_back(
        fmt::format("the log is damaged: a repair cuts it after record {} and keeps "
                    "a copy of what is cut",
                    FormatLsn(damaged_report_.end.last)));
  if (damaged_covered_ > 0)
    faults_.emplace_back(
        "of the log that is kept behind the snapshot, some is damaged: a repair leaves it out");
  if (mode_ == CheckMode::kRepair && !faults_.empty()) RETURN_IF_ERROR(Repair());
  // Without them the server might let in whom they keep out.
  if (!damaged_options_.empty() && (faults_.empty() || mode_ == CheckMode::kRepair))
    return Status::Error(ErrorCode::kCorruption,
                         damaged_options_ +
                             " is damaged, which no repair mends: see what it says, "
                             "and take its first and last line out");
  if (faults_.empty() || mode_ == CheckMode::kRepair) return Status::Ok();
  std::string text;
  for (const std::string& fault : faults_) text += fault + ". ";
  return Status::Error(ErrorCode::kCorruption,
                       fmt::format("{}`cellar --check {} --repair` does that; it deletes nothing",
                                   text, directory_));
}

Status Check::Run() {
  RETURN_IF_ERROR(FindManifest());
  RETURN_IF_ERROR(CheckSnapshot());
  RETURN_IF_ERROR(CheckEarlier());
  RETURN_IF_ERROR(CheckLog());
  RETURN_IF_ERROR(CheckNotes());
  RETURN_IF_ERROR(NameOtherFiles());
  return Verdict();
}

}  // namespace

Status CheckStore(FileSystem& files, const std::string& directory, CheckMode mode,
                  StateMachine& state, std::ostream& out, CheckedMember* member) {
  ASSIGN_OR_RETURN(const bool is_archive, IsArchive(files, directory));
  if (is_archive && mode == CheckMode::kRepair)
    return Status::Error(ErrorCode::kErr, directory +
                                              " is an archive, which is not repaired: what "
                                              "is damaged can be removed from it");
  if (is_archive) return CheckArchive(files, directory, out);
  // A folder that no server has ever locked gets no lock file from a mere look.
  const std::string lock_path = JoinPath(directory, kLockName);
  ASSIGN_OR_RETURN(const bool has_lock, files.Exists(lock_path));
  std::unique_ptr<FileLock> lock;
  if (has_lock) {
    ASSIGN_OR_RETURN(lock, files.Lock(lock_path));
  }
  Check check(files, directory, mode, state, out);
  Status status = check.Run();
  if (member != nullptr) *member = check.member();
  return status;
}

}  // namespace cellar
