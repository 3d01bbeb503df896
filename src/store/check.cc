// --check and --repair: see check.h.
#include "store/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "store/log_reader.h"
#include "store/log_replay.h"
#include "store/manifest.h"
#include "store/repair.h"
#include "store/snapshot_reader.h"

namespace cellar {
namespace {

std::string CountOf(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

class Check {
 public:
  Check(FileSystem& files, const std::string& directory, StateMachine& state, std::ostream& out)
      : files_(files), directory_(directory), state_(state), out_(out) {}

  Status Run(CheckMode mode);

 private:
  Status CheckSnapshot();
  Status CheckLog();
  Status NameOtherFiles();
  Status Repair();
  void Say(std::string_view name, std::string_view text) { out_ << name << ": " << text << '\n'; }

  FileSystem& files_;
  const std::string& directory_;
  StateMachine& state_;
  LogReplay replay_{state_, ApplyUpTo::kEnd};
  std::ostream& out_;
  Manifest manifest_;
  bool snapshot_is_damaged_{false};
  // The first segment that is damaged, and what is sound of it.
  std::optional<size_t> damaged_segment_;
  SegmentReport damaged_report_;
};

Status Check::CheckSnapshot() {
  if (!manifest_.snapshot) {
    out_ << "no snapshot\n";
    return Status::Ok();
  }
  const SnapshotEntry& entry = *manifest_.snapshot;
  const std::string name = FormatFileName(StoreFileKind::kSnapshot, entry.number);
  const auto read = [&]() -> Status {
    ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files_, JoinPath(directory_, name)));
    RETURN_IF_ERROR(reader->CheckAgainst(entry));
    RETURN_IF_ERROR(LoadSnapshot(reader.get(), state_, [](uint64_t) { return Status::Ok(); }));
    replay_.BeginBehind(entry.lsn, reader->footer().members);
    uint64_t entries = 0;
    for (const SnapshotTree& tree : reader->footer().trees) entries += tree.entries;
    Say(name, fmt::format("ok, up to record {}, {}, {}, {} bytes", FormatLsn(entry.lsn),
                          CountOf(reader->footer().trees.size(), "tree", "trees"),
                          CountOf(entries, "entry", "entries"), reader->file_bytes()));
    return Status::Ok();
  };
  const Status status = read();
  if (!status.ok()) {
    snapshot_is_damaged_ = true;
    Say(name, "DAMAGED: " + status.text());
  }
  return Status::Ok();
}

Status Check::CheckLog() {
  const Lsn snapshot = manifest_.snapshot ? manifest_.snapshot->lsn : Lsn{};
  LogReader log(files_, directory_, snapshot);
  const auto apply = [&](const LogRecord& record) {
    // Without what came before it nothing can be said of what a record means.
    if (snapshot_is_damaged_ || record.lsn <= snapshot) return Status::Ok();
    // In a replica set a record may be voided until it is committed.
    if (!replay_.members().empty()) replay_.SetUpTo(ApplyUpTo::kCommitMark);
    return replay_.Take(record);
  };
  const std::vector<SegmentEntry>& entries = manifest_.segments;
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
        Say(name, fmt::format("DAMAGED: {}; sound before it: {}; whole records after it: {}",
                              report.fault, content, report.tail_records));
        damaged_segment_ = i;
        damaged_report_ = report;
        break;
    }
  }
  return damaged_segment_ ? Status::Ok() : replay_.ApplyPending();
}

Status Check::NameOtherFiles() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  for (const std::string& name : names) {
    if (name == kManifestName || name == kLockName) continue;
    const auto parsed = ParseFileName(name);
    const bool is_snapshot = parsed && parsed->kind == StoreFileKind::kSnapshot &&
                             manifest_.snapshot && manifest_.snapshot->number == parsed->number;
    const bool is_segment =
        parsed && parsed->kind == StoreFileKind::kSegment &&
        std::any_of(manifest_.segments.begin(), manifest_.segments.end(),
                    [&](const SegmentEntry& entry) { return entry.number == parsed->number; });
    if (is_snapshot || is_segment) continue;
    Say(name,
        IsRedisFileName(name) ? "data of Redis, not part of the store" : "not part of the store");
  }
  return Status::Ok();
}

// Cuts the log where it is sound no more.
Status Check::Repair() {
  const size_t damaged = *damaged_segment_;
  RepairPlan plan{manifest_, manifest_, {}};
  for (size_t i = damaged; i < manifest_.segments.size(); ++i)
    plan.aside.push_back(FormatFileName(StoreFileKind::kSegment, manifest_.segments[i].number));
  plan.after.segments.resize(damaged);
  const LogPosition& end = damaged_report_.end;
  if (damaged_report_.has_header && end.offset > kSegmentHeaderBytes) {
    SegmentEntry entry = manifest_.segments[damaged];
    entry.end = SegmentEntry::End{end.offset, end.last};
    plan.after.segments.push_back(entry);
  }
  RETURN_IF_ERROR(CarryOutRepair(files_, directory_, plan, out_));
  const Manifest& repaired = plan.after;
  const Lsn last = !repaired.segments.empty() ? repaired.segments.back().end->last
                   : repaired.snapshot        ? repaired.snapshot->lsn
                                              : Lsn{};
  out_ << "repaired: the log ends with record " << FormatLsn(last) << " now\n";
  return Status::Ok();
}

Status Check::Run(CheckMode mode) {
  Result<std::optional<Manifest>> manifest = LoadManifest(files_, directory_);
  if (!manifest.ok()) {
    out_ << kManifestName << ": DAMAGED: " << manifest.status().text() << '\n';
    return manifest.status();
  }
  if (!*manifest) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
    RETURN_IF_ERROR(CheckNoOrphans(directory_, names));
    return Status::Error(ErrorCode::kCorruption,
                         JoinPath(directory_, kManifestName) + " is missing: no store here");
  }
  manifest_ = **manifest;
  Say(kManifestName,
      fmt::format("ok, {} snapshot, {}", manifest_.snapshot ? "a" : "no",
                  CountOf(manifest_.segments.size(), "log segment", "log segments")));
  RETURN_IF_ERROR(CheckSnapshot());
  RETURN_IF_ERROR(CheckLog());
  RETURN_IF_ERROR(NameOtherFiles());
  if (snapshot_is_damaged_)
    return Status::Error(ErrorCode::kCorruption,
                         "the snapshot is damaged, and a store keeps no older one: restore the "
                         "directory from a backup");
  if (!damaged_segment_) return Status::Ok();
  if (mode == CheckMode::kRepair) return Repair();
  return Status::Error(ErrorCode::kCorruption,
                       fmt::format("the log is damaged; `cellar --check {} --repair` would cut it "
                                   "after record {} and keep a copy of what is cut",
                                   directory_, FormatLsn(damaged_report_.end.last)));
}

}  // namespace

Status CheckStore(FileSystem& files, const std::string& directory, CheckMode mode,
                  StateMachine& state, std::ostream& out) {
  // A folder that no server has ever locked gets no lock file from a mere look.
  const std::string lock_path = JoinPath(directory, kLockName);
  ASSIGN_OR_RETURN(const bool has_lock, files.Exists(lock_path));
  std::unique_ptr<FileLock> lock;
  if (has_lock) {
    ASSIGN_OR_RETURN(lock, files.Lock(lock_path));
  }
  return Check(files, directory, state, out).Run(mode);
}

}  // namespace cellar
