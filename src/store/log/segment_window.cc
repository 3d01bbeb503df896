// See segment_window.h.
#include "store/log/segment_window.h"

#include <algorithm>

#include "base/coding.h"
#include "base/free_string.h"
#include "store/format/manifest.h"

namespace cellar {
namespace {

// A window that a large record has made larger is not kept.
constexpr size_t kWindowKeptBytes{1 << 20};

}  // namespace

Status SegmentWindow::Open(uint64_t number) {
  if (number_ == number) return Status::Ok();
  number_ = 0;
  window_.clear();
  window_offset_ = 0;
  const std::string path = JoinPath(directory_, FormatFileName(StoreFileKind::kSegment, number));
  ASSIGN_OR_RETURN(file_, files_.OpenForReading(path));
  number_ = number;
  return Status::Ok();
}

Result<SegmentHeader> SegmentWindow::ReadHeader() const {
  char head[kSegmentHeaderBytes];
  ASSIGN_OR_RETURN(const size_t bytes, file_->ReadAt(0, sizeof(head), head));
  return DecodeSegmentHeader({head, bytes});
}

Result<size_t> SegmentWindow::BytesAt(uint64_t offset) {
  for (const bool afresh : {false, true}) {
    RETURN_IF_ERROR(Fill(offset, kRecordHeaderBytes, afresh));
    const std::string_view rest = std::string_view(window_).substr(offset - window_offset_);
    if (rest.size() < kRecordHashEnd) continue;
    const size_t length = DecodeFixed32(rest.data());
    if (length > 0 && length <= kRecordPayloadBytesMax + kRecordHeaderBytes)
      return kRecordHashEnd + length;
  }
  return size_t{0};
}

Result<std::string_view> SegmentWindow::RecordAt(uint64_t offset, bool afresh) {
  RETURN_IF_ERROR(Fill(offset, kRecordHeaderBytes, afresh));
  std::string_view rest = std::string_view(window_).substr(offset - window_offset_);
  if (rest.size() < kRecordHashEnd) return std::string_view();
  const size_t length = DecodeFixed32(rest.data());
  const size_t bytes = kRecordHashEnd + length;
  if (length == 0 || length > kRecordPayloadBytesMax + kRecordHeaderBytes)
    return std::string_view();
  if (bytes > rest.size()) {
    RETURN_IF_ERROR(Fill(offset, bytes, false));
    rest = std::string_view(window_).substr(offset - window_offset_);
  }
  return rest.substr(0, bytes);
}

Status SegmentWindow::Fill(uint64_t offset, size_t bytes, bool afresh) {
  const bool there = offset >= window_offset_ && offset + bytes <= window_offset_ + window_.size();
  if (there && !afresh) return Status::Ok();
  if (window_.capacity() > kWindowKeptBytes && bytes <= kWindowKeptBytes) FreeString(&window_);
  window_.resize(std::max(bytes, read_ahead_bytes_));
  const Result<size_t> got = file_->ReadAt(offset, window_.size(), window_.data());
  window_.resize(got.ok() ? *got : 0);
  window_offset_ = offset;
  return got.status();
}

}  // namespace cellar
