// See log_stream.h.
#include "store/log/log_stream.h"

#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {

std::optional<size_t> NextWireRecord(std::string_view bytes, LogRecord* record) {
  if (bytes.empty()) return 0;
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  // Any number will do: it is held against itself.
  const LogPosition anywhere{.last = {DecodeFixed32(bytes.data() + 16), 0}};
  if (!ReadRecordAlone(bytes, 0, anywhere, record)) return std::nullopt;
  return record->end_offset;
}

// Where the record stands decides what can be compared. Inside a segment all of it is; at the end
// of one that is gone only its commit time, which the next segment's header tells.
Result<LogStream::Opened> LogStream::Open(FileSystem& files, const std::string& directory,
                                          const Manifest& manifest, const RecordName& after) {
  Opened opened;
  std::unique_ptr<LogStream> stream(new LogStream(files, directory));
  // The segment that the record stands in; the one that begins behind it knows its time alone.
  const SegmentEntry* in = nullptr;
  const SegmentEntry* behind = nullptr;
  for (const SegmentEntry& entry : manifest.segments) {
    if (entry.after < after.lsn) in = &entry;
    if (entry.after == after.lsn && behind == nullptr) behind = &entry;
  }
  const bool inside = in != nullptr && (!in->end || in->end->last >= after.lsn);
  if (!inside && behind == nullptr) return opened;
  RETURN_IF_ERROR(stream->OpenSegment(inside ? *in : *behind));
  if (stream->position_.version != kLogVersion) return opened;
  if (!inside) {
    const bool same = after.lsn == Lsn{} || stream->position_.commit_micros == after.commit_micros;
    opened.found = same ? Found::kYes : Found::kDiverged;
    stream->given_ = after.lsn;
    if (same) opened.stream = std::move(stream);
    return opened;
  }
  LogRecord record;
  while (stream->position_.last < after.lsn) {
    ASSIGN_OR_RETURN(const bool there, stream->Next(kLsnMax, &record));
    if (!there) break;
  }
  const bool same = record.lsn == after.lsn && record.commit_micros == after.commit_micros &&
                    (after.identity == 0 || after.identity == IdentityOf(record));
  opened.found = same ? Found::kYes : Found::kDiverged;
  stream->given_ = after.lsn;
  if (same) opened.stream = std::move(stream);
  return opened;
}

// Without an identity the record is known by its number and time alone; that is so where its
// segment is gone or of an older format.
Status LogStream::IdentifyLast(FileSystem& files, const std::string& directory,
                               const Manifest& manifest, RecordName* name) {
  const auto in =
      std::find_if(manifest.segments.rbegin(), manifest.segments.rend(),
                   [name](const SegmentEntry& entry) { return entry.after < name->lsn; });
  if (in == manifest.segments.rend()) return Status::Ok();
  LogStream stream(files, directory);
  RETURN_IF_ERROR(stream.OpenSegment(*in));
  if (stream.position_.version != kLogVersion) return Status::Ok();
  LogRecord record;
  while (stream.position_.last < name->lsn) {
    ASSIGN_OR_RETURN(const bool there, stream.Next(kLsnMax, &record));
    if (!there) return Status::Ok();
  }
  if (record.lsn == name->lsn && record.commit_micros == name->commit_micros)
    name->identity = IdentityOf(record);
  return Status::Ok();
}

Status LogStream::OpenSegment(const SegmentEntry& entry) {
  RETURN_IF_ERROR(window_.Open(entry.number));
  ASSIGN_OR_RETURN(const SegmentHeader header, window_.ReadHeader());
  position_ = LogPosition::BehindHeader(header);
  end_ = entry.end ? entry.end->offset : UINT64_MAX;
  return Status::Ok();
}

Result<bool> LogStream::Next(Lsn last, LogRecord* record) {
  const auto decode = [this, record](std::string_view bytes) {
    return ReadRecordAt(bytes, &position_, record);
  };
  do {
    if (position_.last >= last || position_.offset >= end_) return false;
    ASSIGN_OR_RETURN(const bool there, window_.Read(position_.offset, decode));
    if (!there) return false;
  } while (!record->is_entry());
  return true;
}

// A writer that gives a segment up writes what was not known to be durable there once more, at the
// front of the next one: the end that the manifest tells is before these records, of which some may
// have been given out by then.
Result<bool> LogStream::OpenNext(const Manifest& manifest) {
  const auto is_open = [this](const SegmentEntry& entry) {
    return entry.number == window_.number();
  };
  const auto open = std::find_if(manifest.segments.begin(), manifest.segments.end(), is_open);
  if (open != manifest.segments.end() && end_ == UINT64_MAX && open->end) {
    end_ = open->end->offset;
    if (position_.offset < end_) return true;
  }
  const auto next =
      std::find_if(manifest.segments.begin(), manifest.segments.end(),
                   [this](const SegmentEntry& entry) { return entry.number > window_.number(); });
  if (next == manifest.segments.end()) return false;
  if (next->after > given_)
    return Status::Error(ErrorCode::kCorruption, "the log does not go on where a segment ends");
  RETURN_IF_ERROR(OpenSegment(*next));
  if (position_.version != kLogVersion)
    return Status::Error(ErrorCode::kCorruption, "the log goes on in an older format");
  return true;
}

// Records are laid out anew, without the chain of hashes that ties them to their place in this log:
// the other end has a log of its own.
Status LogStream::Read(const Manifest& manifest, Lsn last, size_t bytes_max, std::string* out) {
  const size_t begin = out->size();
  LogRecord record;
  while (given_ < last && out->size() - begin < bytes_max) {
    ASSIGN_OR_RETURN(const bool there, Next(last, &record));
    if (!there) {
      ASSIGN_OR_RETURN(const bool more, OpenNext(manifest));
      if (!more) return Status::Ok();
      continue;
    }
    if (record.lsn <= given_) continue;
    const size_t at = out->size();
    out->resize(at + kRecordHeaderBytes + record.payload.size());
    LayOutRecord(&(*out)[at], 0, record, record.payload);
    (void)SealRecord(&(*out)[at]);
    given_ = record.lsn;
  }
  return Status::Ok();
}

}  // namespace cellar
