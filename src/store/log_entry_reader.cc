// See log_entry_reader.h.
#include "store/log_entry_reader.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

constexpr size_t kReadBytes = 1 << 20;

}  // namespace

Status LogEntryReader::Open(const SegmentEntry& entry) {
  const std::string path =
      JoinPath(directory_, FormatFileName(StoreFileKind::kSegment, entry.number));
  ASSIGN_OR_RETURN(file_, files_.OpenForReading(path));
  number_ = entry.number;
  end_ = entry.end ? entry.end->offset : 0;
  buffer_.clear();
  buffer_offset_ = 0;
  char head[kSegmentHeaderBytes];
  ASSIGN_OR_RETURN(const size_t bytes, file_->ReadAt(0, sizeof(head), head));
  ASSIGN_OR_RETURN(const SegmentHeader header, DecodeSegmentHeader({head, bytes}));
  position_ = LogPosition::BehindHeader(header);
  return Status::Ok();
}

Result<bool> LogEntryReader::OpenNext(const Manifest& manifest) {
  const auto next = std::find_if(manifest.segments.begin(), manifest.segments.end(),
                                 [this](const SegmentEntry& e) { return e.number > number_; });
  // Behind an open one nothing follows; and one that has been closed since is read to its end.
  const auto open = std::find_if(manifest.segments.begin(), manifest.segments.end(),
                                 [this](const SegmentEntry& e) { return e.number == number_; });
  if (next == manifest.segments.end()) return false;
  if (open != manifest.segments.end() && end_ == 0 && open->end) {
    end_ = open->end->offset;
    if (position_.offset < end_) return true;
  }
  RETURN_IF_ERROR(Open(*next));
  return true;
}

Status LogEntryReader::Fill(size_t bytes) {
  const uint64_t at = position_.offset;
  if (at >= buffer_offset_ && at + bytes <= buffer_offset_ + buffer_.size()) return Status::Ok();
  buffer_.resize(std::max(bytes, kReadBytes));
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(at, buffer_.size(), buffer_.data()));
  buffer_.resize(got);
  buffer_offset_ = at;
  return Status::Ok();
}

Result<bool> LogEntryReader::Next(LogRecord* record) {
  if (file_ == nullptr || (end_ != 0 && position_.offset >= end_)) return false;
  const size_t head_bytes = position_.version == 1 ? kRecordHeaderBytesV1 : kRecordHeaderBytes;
  RETURN_IF_ERROR(Fill(head_bytes));
  std::string_view rest = std::string_view(buffer_).substr(position_.offset - buffer_offset_);
  if (rest.size() < head_bytes) return false;
  const size_t length = DecodeFixed32(rest.data());
  if (length == 0 || length > kRecordPayloadBytesMax + kRecordHeaderBytes) return false;
  if (length + kRecordHashEnd > rest.size()) {
    RETURN_IF_ERROR(Fill(length + kRecordHashEnd));
    rest = std::string_view(buffer_).substr(position_.offset - buffer_offset_);
  }
  // Read as if it stood alone: the rest of the segment may be in the middle of being written.
  LogPosition alone = position_;
  alone.offset = 0;
  std::string fault;
  if (ReadRecord(rest.substr(0, length + kRecordHashEnd), &alone, record, &fault) !=
      LogStep::kRecord) {
    buffer_.clear();  // what is being written is read again
    return false;
  }
  alone.offset += position_.offset;
  position_ = alone;
  return true;
}

Result<size_t> LogEntryReader::ReadOn(const Manifest& manifest, uint64_t first,
                                      const std::vector<uint32_t>& epochs, size_t bytes_max,
                                      std::string* out) {
  const size_t begin = out->size();
  size_t found = 0;
  LogRecord record;
  while (found < epochs.size() && (found == 0 || out->size() - begin < bytes_max)) {
    ASSIGN_OR_RETURN(const bool there, Next(&record));
    if (!there) {
      ASSIGN_OR_RETURN(const bool more, OpenNext(manifest));
      if (!more) break;
      continue;
    }
    const Lsn wanted{epochs[found], first + found};
    if (!record.is_entry() || record.lsn != wanted) continue;
    const size_t at = out->size();
    out->resize(at + kRecordHeaderBytes + record.payload.size());
    LayOutRecord(&(*out)[at], 0, record, record.payload);
    (void)SealRecord(&(*out)[at]);
    behind_ = wanted;
    ++found;
  }
  return found;
}

Result<size_t> LogEntryReader::Read(const Manifest& manifest, uint64_t first,
                                    const std::vector<uint32_t>& epochs, size_t bytes_max,
                                    std::string* out) {
  CELLAR_ASSERT(first > 0 && !epochs.empty());
  if (file_ != nullptr && behind_.seq + 1 == first) {
    ASSIGN_OR_RETURN(const size_t found, ReadOn(manifest, first, epochs, bytes_max, out));
    if (found > 0) return found;
  }
  // What stands behind a record in force has a higher number: the last segment that follows a lower
  // one holds this record, or begins before it.
  const SegmentEntry* from = nullptr;
  for (const SegmentEntry& entry : manifest.segments) {
    if (entry.after.seq < first) from = &entry;
  }
  if (from == nullptr) return size_t{0};
  behind_ = {};
  RETURN_IF_ERROR(Open(*from));
  return ReadOn(manifest, first, epochs, bytes_max, out);
}

}  // namespace cellar
