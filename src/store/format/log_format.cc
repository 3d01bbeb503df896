// Encoding, verifying and searching of log records: see log_format.h.
#include "store/format/log_format.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"

namespace cellar {
namespace {

constexpr std::string_view kSegmentMagic = "CELLRLOG";
constexpr size_t kHeaderHashOffset = 56;
constexpr size_t kCommitMarkBytes = 20;
constexpr unsigned kKindShift = 56;
constexpr uint64_t kTailHashBytesMin = uint64_t{1} << 30;
static_assert(kHeaderHashOffset + 8 == kSegmentHeaderBytes);

// Length and link stand in front of the bytes that are hashed; as the seed they are covered as
// well.
uint64_t HashOfRecord(const char* record, uint32_t length, uint32_t previous) {
  const uint64_t seed = static_cast<uint64_t>(length) << 32 | previous;
  return Hash64({record + kRecordHashEnd, length}, seed);
}

size_t HeaderBytes(uint32_t version) {
  return version == 1 ? kRecordHeaderBytesV1 : kRecordHeaderBytes;
}

// Fills in kind and commit time; false if no record looks like that.
bool DecodeKind(const char* at, uint32_t version, LogRecord* record) {
  if (version == 1) {
    record->kind = record->payload.empty() ? RecordKind::kClaim : RecordKind::kCommand;
    record->commit_micros = 0;
    return true;
  }
  const uint64_t word = DecodeFixed64(at + kRecordHeaderBytesV1);
  record->kind = static_cast<RecordKind>(word >> kKindShift);
  record->commit_micros = static_cast<int64_t>(word & static_cast<uint64_t>(kCommitTimeMax));
  switch (record->kind) {
    case RecordKind::kClaim:
    case RecordKind::kBarrier:
      return record->payload.empty();
    case RecordKind::kCommand:
    case RecordKind::kMembers:
      return !record->payload.empty();
    case RecordKind::kCommit:
      return record->payload.size() == kCommitMarkBytes;
  }
  return false;
}

// Fills *record from the header at `offset` if it could be one; the hash is not looked at.
bool DecodeHeader(std::string_view segment, uint64_t offset, uint32_t version, LogRecord* record,
                  uint32_t* previous) {
  const size_t header_bytes = HeaderBytes(version);
  if (segment.size() - offset < header_bytes) return false;
  const char* at = segment.data() + offset;
  const uint32_t length = DecodeFixed32(at);
  if (length < header_bytes - kRecordHashEnd || length > segment.size() - offset - kRecordHashEnd)
    return false;
  *previous = DecodeFixed32(at + 4);
  record->hash = DecodeFixed64(at + 8);
  record->lsn = {DecodeFixed32(at + 16), DecodeFixed64(at + 24)};
  record->claim = {DecodeFixed32(at + 20), DecodeFixed64(at + 32)};
  record->offset = offset;
  record->end_offset = offset + kRecordHashEnd + length;
  record->payload = segment.substr(offset + header_bytes, length + kRecordHashEnd - header_bytes);
  return DecodeKind(at, version, record) && record->claim <= record->lsn;
}

bool VerifyHash(const char* segment, const LogRecord& record, uint32_t previous) {
  const auto length = static_cast<uint32_t>(record.end_offset - record.offset - kRecordHashEnd);
  return record.hash == HashOfRecord(segment + record.offset, length, previous);
}

// Whether a record numbered `lsn` could have been written soon after `last`: nearly all bytes that
// are no record fail this, so that searching a tail need not hash at each byte.
bool IsPlausibleAfter(Lsn lsn, Lsn last) {
  constexpr uint32_t kEpochsMax = 1 << 16;
  if (lsn >= last) return lsn.epoch - last.epoch < kEpochsMax;
  return lsn.seq <= last.seq && last.epoch - lsn.epoch < kEpochsMax;  // it voids
}

std::string LsnText(Lsn lsn) { return std::to_string(lsn.epoch) + "-" + std::to_string(lsn.seq); }

}  // namespace

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string bytes(kSegmentMagic);
  PutFixed32(&bytes, header.version);
  PutFixed32(&bytes, header.after.epoch);
  PutFixed64(&bytes, header.after.seq);
  PutFixed64(&bytes, header.chain);
  PutFixed64(&bytes, header.number);
  PutFixed64(&bytes, header.created_micros);
  PutFixed64(&bytes, static_cast<uint64_t>(header.after_micros));
  CELLAR_ASSERT(bytes.size() == kHeaderHashOffset);
  PutFixed64(&bytes, Hash64(bytes));
  return bytes;
}

Result<SegmentHeader> DecodeSegmentHeader(std::string_view segment) {
  const auto bad = [](const char* text) { return Status::Error(ErrorCode::kCorruption, text); };
  if (segment.size() < kSegmentHeaderBytes) return bad("shorter than a segment header");
  const char* at = segment.data();
  if (segment.substr(0, kSegmentMagic.size()) != kSegmentMagic) return bad("not a log segment");
  if (DecodeFixed64(at + kHeaderHashOffset) != Hash64(segment.substr(0, kHeaderHashOffset)))
    return bad("checksum of the segment header is wrong");
  const uint32_t version = DecodeFixed32(at + 8);
  if (version < kLogVersionMin || version > kLogVersion)
    return Status::Error(ErrorCode::kCorruption,
                         "version " + std::to_string(version) +
                             " of the log format is unknown; this server reads " +
                             std::to_string(kLogVersionMin) + " to " + std::to_string(kLogVersion));
  const uint64_t after_micros = DecodeFixed64(at + 48);
  if (after_micros > static_cast<uint64_t>(kCommitTimeMax))
    return bad("the commit time in the segment header cannot be");
  return SegmentHeader{.number = DecodeFixed64(at + 32),
                       .after = {DecodeFixed32(at + 12), DecodeFixed64(at + 16)},
                       .chain = DecodeFixed64(at + 24),
                       .created_micros = DecodeFixed64(at + 40),
                       .after_micros = static_cast<int64_t>(after_micros),
                       .version = version};
}

void LayOutRecord(char* to, uint64_t chain, const RecordHead& head, std::string_view payload) {
  CELLAR_ASSERT(payload.size() <= kRecordPayloadBytesMax);
  CELLAR_ASSERT(head.claim <= head.lsn);
  CELLAR_ASSERT(head.commit_micros >= 0 && head.commit_micros <= kCommitTimeMax);
  const size_t length = kRecordHeaderBytes - kRecordHashEnd + payload.size();
  EncodeFixed32(to, static_cast<uint32_t>(length));
  EncodeFixed32(to + 4, static_cast<uint32_t>(chain));
  EncodeFixed32(to + 16, head.lsn.epoch);
  EncodeFixed32(to + 20, head.claim.epoch);
  EncodeFixed64(to + 24, head.lsn.seq);
  EncodeFixed64(to + 32, head.claim.seq);
  EncodeFixed64(to + kRecordHeaderBytesV1, static_cast<uint64_t>(head.kind) << kKindShift |
                                               static_cast<uint64_t>(head.commit_micros));
  if (!payload.empty()) std::memcpy(to + kRecordHeaderBytes, payload.data(), payload.size());
}

void ExtendRecord(char* record, size_t bytes, int64_t commit_micros) {
  const size_t length = DecodeFixed32(record) + bytes;
  CELLAR_ASSERT(length <= kRecordHeaderBytes - kRecordHashEnd + kRecordPayloadBytesMax);
  EncodeFixed32(record, static_cast<uint32_t>(length));
  EncodeFixed64(record + kRecordHeaderBytesV1, static_cast<uint64_t>(RecordKind::kCommand)
                                                       << kKindShift |
                                                   static_cast<uint64_t>(commit_micros));
}

uint64_t SealRecord(char* record) {
  const uint64_t hash = HashOfRecord(record, DecodeFixed32(record), DecodeFixed32(record + 4));
  EncodeFixed64(record + 8, hash);
  return hash;
}

// Four things must hold: the bytes verify; the record names the hash of the one before it; its
// number is higher, or it voids what a leader of another epoch had written; and commit times do not
// go back. *record borrows the segment's bytes.
LogStep ReadRecord(std::string_view segment, LogPosition* position, LogRecord* record,
                   std::string* fault) {
  const uint64_t offset = position->offset;
  CELLAR_ASSERT(offset <= segment.size());
  const uint64_t left = segment.size() - offset;
  if (left == 0) return LogStep::kEnd;
  if (left < 4) {
    *fault = "the file ends inside a record";
    return LogStep::kBad;
  }
  if (DecodeFixed32(segment.data() + offset) == 0) return LogStep::kEnd;
  uint32_t previous = 0;
  if (!DecodeHeader(segment, offset, position->version, record, &previous) ||
      !VerifyHash(segment.data(), *record, previous)) {
    const uint64_t length = DecodeFixed32(segment.data() + offset);
    *fault = length + kRecordHashEnd > left ? "the file ends inside a record"
                                            : "the checksum of a record is wrong";
    return LogStep::kBad;
  }
  if (previous != static_cast<uint32_t>(position->chain)) {
    *fault = "record " + LsnText(record->lsn) + " does not follow the record before it";
    return LogStep::kBad;
  }
  const bool voids = record->is_entry() && record->lsn.seq <= position->last.seq &&
                     record->lsn.epoch != position->last.epoch;
  const bool in_order =
      record->is_entry() ? voids || record->lsn > position->last : record->lsn == position->last;
  if (!in_order) {
    *fault = "record " + LsnText(record->lsn) + " comes after record " + LsnText(position->last);
    return LogStep::kBad;
  }
  if (position->version > 1 && !voids && record->commit_micros < position->commit_micros) {
    *fault = "record " + LsnText(record->lsn) + " was committed before the record before it";
    return LogStep::kBad;
  }
  *position = {.offset = record->end_offset,
               .last = record->lsn,
               .chain = record->hash,
               .commit_micros = record->commit_micros,
               .version = position->version,
               .highest = std::max(position->highest, record->lsn)};
  return LogStep::kRecord;
}

bool ReadRecordAt(std::string_view bytes, LogPosition* position, LogRecord* record) {
  LogPosition behind = *position;
  behind.offset = 0;
  std::string fault;
  if (ReadRecord(bytes, &behind, record, &fault) != LogStep::kRecord) return false;
  behind.offset += position->offset;
  *position = behind;
  return true;
}

bool ReadRecordAlone(std::string_view segment, uint64_t offset, const LogPosition& last,
                     LogRecord* record) {
  uint32_t previous = 0;
  return DecodeHeader(segment, offset, last.version, record, &previous) &&
         IsPlausibleAfter(record->lsn, last.last) && VerifyHash(segment.data(), *record, previous);
}

RecordPlace PlaceOfRecord(std::string_view bytes) {
  CELLAR_ASSERT(bytes.size() >= kRecordHeaderBytes);
  const size_t size = kRecordHashEnd + DecodeFixed32(bytes.data());
  CELLAR_ASSERT(size <= bytes.size());
  return {size, {DecodeFixed32(bytes.data() + 16), DecodeFixed64(bytes.data() + 24)}};
}

RecordPlace PlaceOfRecords(std::string_view bytes, size_t bytes_max) {
  RecordPlace place = PlaceOfRecord(bytes);
  while (place.bytes < bytes.size()) {
    const RecordPlace next = PlaceOfRecord(bytes.substr(place.bytes));
    if (place.bytes + next.bytes > bytes_max) break;
    place = {place.bytes + next.bytes, next.lsn};
  }
  return place;
}

std::string EncodeCommitMark(const CommitMark& mark) {
  std::string payload;
  PutFixed32(&payload, mark.lsn.epoch);
  PutFixed64(&payload, mark.lsn.seq);
  PutFixed64(&payload, static_cast<uint64_t>(mark.retention_micros));
  CELLAR_ASSERT(payload.size() == kCommitMarkBytes);
  return payload;
}

bool DecodeCommitMark(std::string_view payload, CommitMark* mark) {
  if (payload.size() != kCommitMarkBytes) return false;
  const uint64_t retention = DecodeFixed64(payload.data() + 12);
  if (retention > static_cast<uint64_t>(INT64_MAX)) return false;
  *mark = {.lsn = {DecodeFixed32(payload.data()), DecodeFixed64(payload.data() + 4)},
           .retention_micros = static_cast<int64_t>(retention)};
  return true;
}

uint64_t IdentityOf(const LogRecord& record) {
  char head[24];
  EncodeFixed32(head, record.lsn.epoch);
  EncodeFixed32(head + 4, static_cast<uint32_t>(record.kind));
  EncodeFixed64(head + 8, record.lsn.seq);
  EncodeFixed64(head + 16, static_cast<uint64_t>(record.commit_micros));
  return Hash64(record.payload, Hash64({head, sizeof(head)}));
}

// Torn or damaged? A crash leaves bytes behind the end that were never durable. If one of the
// records among them claims more to have been durable than was read, something before it is lost.
// Any byte may begin a record, so all are tried.
LogTail JudgeTail(std::string_view segment, const LogPosition& position) {
  LogTail tail;
  size_t end = segment.size();
  while (end > position.offset && segment[end - 1] == '\0') --end;
  tail.bytes = end - position.offset;
  // Values may hold what looks like record headers, each with a length up to the end: a bound on
  // the work. Beyond it the judgement is left to the operator.
  uint64_t hash_bytes_left = kTailHashBytesMin + 16 * tail.bytes;
  for (uint64_t offset = position.offset; offset < end;) {
    LogRecord record;
    uint32_t previous = 0;
    if (!DecodeHeader(segment, offset, position.version, &record, &previous) ||
        !IsPlausibleAfter(record.lsn, position.last)) {
      ++offset;
      continue;
    }
    if (record.payload.size() > hash_bytes_left) {
      tail.is_damage = true;
      return tail;
    }
    hash_bytes_left -= record.payload.size();
    if (!VerifyHash(segment.data(), record, previous)) {
      ++offset;
      continue;
    }
    ++tail.records;
    if (record.claim > std::max(position.last, position.highest) && !tail.is_damage) {
      tail.is_damage = true;
      tail.claim_offset = offset;
      tail.claim = record.claim;
    }
    offset = record.end_offset;
  }
  return tail;
}

}  // namespace cellar
