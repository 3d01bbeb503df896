// See diverged.h.
#include "store/journal/diverged.h"

#include <fmt/format.h>

#include "store/format/log_format.h"

namespace cellar {
namespace {

constexpr std::string_view kPrefix = "cellar-diverged-";

// The segment's sound records behind `common_seq`, laid out one behind the other.
class TailCopy {
 public:
  explicit TailCopy(uint64_t common_seq) : common_seq_(common_seq) {}

  void Add(std::string_view segment, const SegmentHeader& header) {
    LogPosition position = LogPosition::BehindHeader(header);
    LogRecord record;
    std::string fault;
    while (ReadRecord(segment, &position, &record, &fault) == LogStep::kRecord) {
      if (record.is_entry() && record.lsn.seq > common_seq_) Add(record, header.after);
    }
  }

  uint64_t records() const { return records_; }
  Lsn first() const { return first_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void Add(const LogRecord& record, Lsn after) {
    if (records_ == 0) {
      first_ = record.lsn;
      bytes_ = EncodeSegmentHeader({.number = 1, .after = std::min(after, record.lsn)});
      chain_ = kChainStart;
    }
    const size_t at = bytes_.size();
    bytes_.resize(at + kRecordHeaderBytes + record.payload.size());
    LayOutRecord(&bytes_[at], chain_, record, record.payload);
    chain_ = SealRecord(&bytes_[at]);
    ++records_;
  }

  const uint64_t common_seq_;
  uint64_t records_{0};
  Lsn first_;
  std::string bytes_;
  uint64_t chain_{kChainStart};
};

}  // namespace

Status SaveDivergedTail(FileSystem& files, const std::string& directory, const Manifest& manifest,
                        uint64_t common_seq, DivergedTail* tail) {
  TailCopy copy(common_seq);
  for (const SegmentEntry& entry : manifest.segments) {
    if (entry.end && entry.end->last.seq <= common_seq) continue;
    ASSIGN_OR_RETURN(
        const std::string bytes,
        ReadWholeFile(files,
                      JoinPath(directory, FormatFileName(StoreFileKind::kSegment, entry.number))));
    ASSIGN_OR_RETURN(const SegmentHeader header, DecodeSegmentHeader(bytes));
    std::string_view segment = bytes;
    if (entry.end) segment = segment.substr(0, entry.end->offset);
    copy.Add(segment, header);
  }
  *tail = {};
  if (copy.records() == 0) return Status::Ok();
  const std::string path =
      JoinPath(directory, fmt::format("{}{}.log", kPrefix, FormatLsn(copy.first())));
  ASSIGN_OR_RETURN(const bool there, files.Exists(path));
  if (there) RETURN_IF_ERROR(files.Remove(path));  // of an attempt that was cut short
  ASSIGN_OR_RETURN(auto file, files.Create(path));
  RETURN_IF_ERROR(file->WriteAt(0, copy.bytes()));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(files.SyncDirectory(directory));
  *tail = {.path = path, .records = copy.records()};
  return Status::Ok();
}

bool IsDivergedName(std::string_view name) {
  return name.starts_with(kPrefix) && name.ends_with(".log");
}

}  // namespace cellar
