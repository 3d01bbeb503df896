// One log segment on disk: see segment_file.h.
#include "store/journal/segment_file.h"

#include <algorithm>
#include <string>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr uint64_t kPageBytes{4096};  // a page that is written in part would be written twice
// Fewer calls than one for each sync; what is left over stays in the page cache.
constexpr uint64_t kDropCacheBytes{1 << 20};
// Where a range begins and ends that is dropped. A kernel with large folios keeps what was written
// at once as one of them, the zeros written ahead too, and drops none of which it is asked for a
// part only: cut elsewhere, a fifth of the log stayed.
constexpr uint64_t kDropCacheUnit{kZeroAheadBytes};

}  // namespace

SegmentFile::SegmentFile(std::unique_ptr<WritableFile> file, const SegmentEntry& entry,
                         const LogPosition& end, uint64_t stream_begin)
    : file_(std::move(file)),
      entry_(entry),
      begin_offset_(end.offset),
      stream_begin_(stream_begin),
      end_offset_(end.offset),
      durable_offset_(end.offset),
      cached_offset_(end.offset / kDropCacheUnit * kDropCacheUnit),
      allocated_offset_(end.offset),
      last_(end.last),
      durable_last_(end.last) {
  CELLAR_ASSERT(!entry_.end);
}

Result<std::unique_ptr<SegmentFile>> SegmentFile::Create(FileSystem& files,
                                                         const std::string& directory,
                                                         const SegmentHeader& header,
                                                         uint64_t stream_begin,
                                                         AllocationSize size) {
  const std::string path =
      JoinPath(directory, FormatFileName(StoreFileKind::kSegment, header.number));
  ASSIGN_OR_RETURN(auto file, files.Create(path));
  const SegmentEntry entry{.number = header.number, .after = header.after};
  std::unique_ptr<SegmentFile> segment(
      new SegmentFile(std::move(file), entry, {.last = header.after}, stream_begin));
  Status status = segment->Allocate(size);
  if (status.ok()) status = segment->file_->WriteAt(0, EncodeSegmentHeader(header));
  if (status.ok()) return segment;
  segment.reset();
  (void)files.Remove(path);
  return status;
}

Result<std::unique_ptr<SegmentFile>> SegmentFile::Reopen(FileSystem& files,
                                                         const std::string& directory,
                                                         const SegmentEntry& entry,
                                                         const LogPosition& end) {
  ASSIGN_OR_RETURN(auto file,
                   files.OpenForWriting(
                       JoinPath(directory, FormatFileName(StoreFileKind::kSegment, entry.number))));
  RETURN_IF_ERROR(file->Truncate(end.offset));
  RETURN_IF_ERROR(file->Sync());
  return std::unique_ptr<SegmentFile>(new SegmentFile(std::move(file), entry, end, 0));
}

Status SegmentFile::Append(std::string_view records, Lsn last) {
  CELLAR_ASSERT(file_ != nullptr);
  RETURN_IF_ERROR(file_->WriteAt(end_offset_, records));
  NoteAppended(records.size(), last);
  return Status::Ok();
}

void SegmentFile::NoteAppended(uint64_t bytes, Lsn last) {
  end_offset_ += bytes;
  allocated_offset_ = std::max(allocated_offset_, end_offset_);
  last_ = last;
}

Status SegmentFile::Sync() {
  CELLAR_ASSERT(file_ != nullptr);
  RETURN_IF_ERROR(file_->Sync());
  SetDurable(end());
  return Status::Ok();
}

void SegmentFile::SetDurable(const End& end) {
  CELLAR_ASSERT(file_ != nullptr);
  CELLAR_ASSERT(end.offset >= durable_offset_);
  CELLAR_ASSERT(end.offset <= end_offset_);
  durable_offset_ = end.offset;
  durable_last_ = end.last;
}

void SegmentFile::DropDurable() {
  CELLAR_ASSERT(file_ != nullptr);
  const uint64_t end = durable_offset_ / kDropCacheUnit * kDropCacheUnit;
  if (end - cached_offset_ < kDropCacheBytes) return;
  file_->DropCache(cached_offset_, end - cached_offset_);
  cached_offset_ = end;
}

Status SegmentFile::ZeroAhead(uint64_t bytes) {
  CELLAR_ASSERT(file_ != nullptr);
  if (end_offset_ + bytes <= zeroed_offset_) [[likely]]
    return Status::Ok();
  static const std::string zeros(kZeroAheadBytes, '\0');
  const uint64_t begin = std::max(zeroed_offset_, end_offset_);
  const uint64_t end =
      std::min((begin + kZeroAheadBytes) / kPageBytes * kPageBytes, allocated_offset_);
  if (begin >= end) return Status::Ok();
  RETURN_IF_ERROR(file_->WriteAt(begin, std::string_view(zeros).substr(0, end - begin)));
  zeroed_offset_ = end;
  return Status::Ok();
}

Status SegmentFile::Allocate(AllocationSize size) {
  CELLAR_ASSERT(file_ != nullptr);
  CELLAR_ASSERT(size.least > 0);
  CELLAR_ASSERT(size.wanted >= size.least);
  for (uint64_t bytes = size.wanted;; bytes = std::max(bytes / 2, size.least)) {
    Status status = file_->Allocate(allocated_offset_, bytes + size.left);
    if (status.ok()) {
      allocated_offset_ += bytes;
      // If it fails the file is longer, which is no harm.
      if (size.left > 0) (void)file_->Truncate(allocated_offset_);
      return status;
    }
    if (status.code() != ErrorCode::kNoSpace || bytes == size.least) return status;
  }
}

void SegmentFile::Close(Trim trim) {
  CELLAR_ASSERT(file_ != nullptr);
  // Neither matters to what the file holds: the manifest says where it ends.
  if (trim == Trim::kYes) (void)file_->Truncate(end_offset_);
  (void)file_->Close();
  file_ = nullptr;
}

}  // namespace cellar
