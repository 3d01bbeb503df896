// See log_entry_reader.h.
#include "store/log/log_entry_reader.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {

Status LogEntryReader::Open(const SegmentEntry& entry) {
  RETURN_IF_ERROR(window_.Open(entry.number));
  end_ = entry.end ? entry.end->offset : 0;
  ASSIGN_OR_RETURN(const SegmentHeader header, window_.ReadHeader());
  position_ = LogPosition::BehindHeader(header);
  return Status::Ok();
}

Result<bool> LogEntryReader::OpenNext(const Manifest& manifest) {
  const auto next =
      std::find_if(manifest.segments.begin(), manifest.segments.end(),
                   [this](const SegmentEntry& e) { return e.number > window_.number(); });
  // Behind an open one nothing follows; and one that has been closed since is read to its end.
  const auto open =
      std::find_if(manifest.segments.begin(), manifest.segments.end(),
                   [this](const SegmentEntry& e) { return e.number == window_.number(); });
  if (next == manifest.segments.end()) return false;
  if (open != manifest.segments.end() && end_ == 0 && open->end) {
    end_ = open->end->offset;
    if (position_.offset < end_) return true;
  }
  RETURN_IF_ERROR(Open(*next));
  return true;
}

Result<bool> LogEntryReader::Next(LogRecord* record) {
  if (window_.number() == 0 || (end_ != 0 && position_.offset >= end_)) return false;
  return window_.Read(position_.offset, [this, record](std::string_view bytes) {
    return ReadRecordAt(bytes, &position_, record);
  });
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
  if (window_.number() != 0 && behind_.seq + 1 == first) {
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
