// See archive_check.h.
#include "store/offline/archive_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <vector>

#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/format/notes.h"
#include "store/format/store_files.h"
#include "store/offline/recover_point.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

class ArchiveCheck {
 public:
  ArchiveCheck(FileSystem& files, const std::string& directory, std::ostream& out)
      : files_(files), directory_(directory), out_(out) {}

  Status Run();

 private:
  Status CheckSnapshot(const std::string& name);
  Status CheckSegment(const std::string& name, uint64_t number);
  void Damaged(const std::string& name, const std::string& fault) {
    ++faults_;
    out_ << name << ": DAMAGED: " << fault << '\n';
    end_.reset();
  }

  FileSystem& files_;
  const std::string& directory_;
  std::ostream& out_;
  std::vector<std::string> gaps_;  // lines of the note
  uint64_t faults_{0};
  std::optional<LogPosition> end_{};  // of the segment before, if that is sound
  bool is_first_{true};
  std::string bytes_;
};

Status ArchiveCheck::CheckSnapshot(const std::string& name) {
  const auto verify = [&]() -> Status {
    ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files_, JoinPath(directory_, name)));
    RETURN_IF_ERROR(reader->VerifyBlocks());
    out_ << fmt::format("{}: ok, up to record {}, {}, {} bytes\n", name,
                        FormatLsn(reader->header().lsn), FormatTime(reader->header().commit_micros),
                        reader->file_bytes());
    return Status::Ok();
  };
  Status status = verify();
  if (status.ok() || status.code() != ErrorCode::kCorruption) return status;
  ++faults_;
  out_ << name << ": DAMAGED: " << status.text() << '\n';
  return Status::Ok();
}

// After damage end_ stays where the last sound segment ended, so the next one is reported as a gap
// too, which it is: what led to it cannot be replayed.
Status ArchiveCheck::CheckSegment(const std::string& name, uint64_t number) {
  RETURN_IF_ERROR(ReadWholeFile(files_, JoinPath(directory_, name), &bytes_));
  const Result<SegmentHeader> header = DecodeSegmentHeader(bytes_);
  if (!header.ok() || header->number != number) {
    Damaged(name, "offset 0: " + (header.ok() ? "it is another segment" : header.status().text()));
    is_first_ = false;
    return Status::Ok();
  }
  const bool follows = end_ && end_->last == header->after && end_->chain == header->chain;
  if (!is_first_ && !follows) {
    const std::string behind = fmt::format(" to {}", FormatLsn(header->after));
    const bool is_noted = std::any_of(
        gaps_.begin(), gaps_.end(), [&](const std::string& gap) { return gap.ends_with(behind); });
    if (!is_noted) ++faults_;
    out_ << fmt::format("{}: {}, what leads to record {} is not there\n", name,
                        is_noted ? "a gap that is known" : "A GAP", FormatLsn(header->after));
  }
  is_first_ = false;
  LogPosition position = LogPosition::BehindHeader(*header);
  if (end_) position.highest = end_->highest;
  LogRecord record;
  std::string fault;
  uint64_t records = 0;
  LogStep step = LogStep::kRecord;
  while ((step = ReadRecord(bytes_, &position, &record, &fault)) == LogStep::kRecord)
    records += record.is_entry() ? 1 : 0;
  if (step == LogStep::kEnd && JudgeTail(bytes_, position).bytes > 0)
    fault = "no record, but the file is not empty after it";
  if (!fault.empty()) {
    Damaged(name, fmt::format("offset {}: after record {}: {}", position.offset,
                              FormatLsn(position.last), fault));
    return Status::Ok();
  }
  out_ << fmt::format("{}: ok, {} records after {} up to {}, {}\n", name, records,
                      FormatLsn(header->after), FormatLsn(position.last),
                      FormatTime(position.commit_micros));
  end_ = position;
  return Status::Ok();
}

Status ArchiveCheck::Run() {
  bool exists = false;
  const Result<ArchiveNote> note = LoadArchiveNote(files_, directory_, &exists);
  if (note.ok()) {
    out_ << kArchiveNoteName << ": ok, the archive of store " << note->store
         << (note->is_old ? ", of an older version, without a checksum\n" : "\n");
    gaps_ = note->gaps;
  } else {
    if (note.status().code() != ErrorCode::kCorruption) return note.status();
    Damaged(std::string(kArchiveNoteName), note.status().text());
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
  for (const std::string& name : names) {
    const std::optional<StoreFileName> parsed = ParseFileName(name);
    if (!parsed) continue;
    if (parsed->kind == StoreFileKind::kSnapshot) RETURN_IF_ERROR(CheckSnapshot(name));
  }
  // By number, which names of seven digits are not sorted by.
  std::map<uint64_t, std::string> segments;
  for (const std::string& name : names) {
    const std::optional<StoreFileName> parsed = ParseFileName(name);
    if (parsed && parsed->kind == StoreFileKind::kSegment) segments[parsed->number] = name;
  }
  for (const auto& [number, name] : segments) RETURN_IF_ERROR(CheckSegment(name, number));
  if (faults_ == 0) return Status::Ok();
  return Status::Error(ErrorCode::kCorruption, fmt::format("{}: {} fault{}, see above", directory_,
                                                           faults_, faults_ == 1 ? "" : "s"));
}

}  // namespace

Status CheckArchive(FileSystem& files, const std::string& directory, std::ostream& out) {
  return ArchiveCheck(files, directory, out).Run();
}

}  // namespace cellar
