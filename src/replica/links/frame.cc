// See frame.h.
#include "replica/links/frame.h"

#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/free_string.h"
#include "base/hash.h"

namespace cellar {
namespace {

constexpr size_t kLengthMin = kFrameHeadBytes - kFrameHashEnd;
// Behind so much that has been taken out, the rest is moved to the front.
constexpr size_t kMoveBytes = 1 << 20;
// A link that has nothing to read keeps no more: a node has several to each other one.
constexpr size_t kKeptBytes{1 << 20};

size_t BodyBytesMax(FrameKind kind) {
  switch (kind) {
    case FrameKind::kChunk:
      return kChunkBytesMax + 8;
    case FrameKind::kRecords:
    case FrameKind::kAppend:
    case FrameKind::kCall:
    case FrameKind::kMap:
    case FrameKind::kReport:
    case FrameKind::kCut:
      return kFrameBytesLimit - kLengthMin;
    case FrameKind::kReply:
    case FrameKind::kMore:
    case FrameKind::kChannel:
    case FrameKind::kMoved:
    case FrameKind::kCancel:
    case FrameKind::kCredit:
    case FrameKind::kMessage:
    case FrameKind::kBegin:
    case FrameKind::kWrote:
    case FrameKind::kUnblock:
      return kFrameBytesMax - kLengthMin;
    case FrameKind::kInstall:
      return 2 << 20;  // it names the set's members and users
    case FrameKind::kHello:
      return 64 << 10;
    case FrameKind::kFollow:
    case FrameKind::kOrderAnswer:
      return 4096;
    case FrameKind::kError:
      return kErrorTextBytesMax;
    default:
      return 128;
  }
}

// Where the first record stands in a frame that holds some.
size_t FirstRecordAt(FrameKind kind) {
  return kFrameHeadBytes + (kind == FrameKind::kAppend ? kAppendHeadBytes : kRecordsHeadBytes);
}

Status NoFrame(const char* what) { return Status::Error(ErrorCode::kCorruption, what); }

// What stands behind the hash, of a frame whose head CheckHead has seen.
FrameHead DecodeHead(std::string_view hashed) {
  return {.kind = static_cast<FrameKind>(hashed[0]),
          .room = hashed[1] != '\0',
          .awaits = hashed[2] != '\0',
          .term = DecodeFixed32(hashed.data() + 4),
          .from = DecodeFixed64(hashed.data() + 8),
          .sent_micros = static_cast<int64_t>(DecodeFixed64(hashed.data() + 16)),
          .echo_micros = static_cast<int64_t>(DecodeFixed64(hashed.data() + 24))};
}

}  // namespace

std::string PrintableText(std::string_view text) {
  std::string printable(text.substr(0, kPeerTextBytesMax));
  for (char& c : printable)
    if (c < ' ' || c > '~') c = '?';
  return printable;
}

std::string WhatItSays(const Frame& frame) { return "it says: " + PrintableText(frame.body); }

void WriteFrameHead(const FrameHead& head, char* to) {
  std::memset(to, 0, kFrameHashEnd);
  char* const kind = to + kFrameHashEnd;
  kind[0] = static_cast<char>(head.kind);
  kind[1] = head.room ? '\1' : '\0';
  kind[2] = head.awaits ? '\1' : '\0';
  kind[3] = '\0';
  EncodeFixed32(kind + 4, head.term);
  EncodeFixed64(kind + 8, head.from);
  EncodeFixed64(kind + 16, static_cast<uint64_t>(head.sent_micros));
  EncodeFixed64(kind + 24, static_cast<uint64_t>(head.echo_micros));
  static_assert(kFrameHeadBytes == kFrameHashEnd + 32);
}

void SealFrame(char* frame, size_t bytes) {
  CELLAR_ASSERT(bytes >= kFrameHeadBytes);
  const size_t length = bytes - kFrameHashEnd;
  CELLAR_ASSERT(length <= kFrameBytesLimit);
  EncodeFixed32(frame, static_cast<uint32_t>(length));
  EncodeFixed64(frame + 4, Hash64(std::string_view(frame + kFrameHashEnd, length), length));
}

void BeginFrame(const FrameHead& head, std::string* bytes) {
  bytes->resize(kFrameHeadBytes);
  WriteFrameHead(head, bytes->data());
}

void SealFrame(std::string* bytes) { SealFrame(bytes->data(), bytes->size()); }

std::string EncodeFrame(const FrameHead& head, std::string_view body) {
  std::string bytes;
  bytes.reserve(kFrameHeadBytes + body.size());
  BeginFrame(head, &bytes);
  bytes.append(body);
  SealFrame(&bytes);
  return bytes;
}

Status FrameReader::CheckHead(std::string_view rest) const {
  const size_t length = DecodeFixed32(rest.data());
  const auto kind = static_cast<uint8_t>(rest[kFrameHashEnd]);
  if (kind == 0 || kind > static_cast<uint8_t>(kFrameKindLast))
    return NoFrame("a frame of no known kind");
  if ((kinds_ >> kind & 1) == 0) return NoFrame("a frame that does not belong here");
  if (length < kLengthMin || length - kLengthMin > BodyBytesMax(static_cast<FrameKind>(kind)))
    return NoFrame("a frame of no such length");
  // Only a record that would not fit makes one longer, and then it is alone in it.
  const size_t first = FirstRecordAt(static_cast<FrameKind>(kind));
  // Or one call.
  const bool longer = length > kFrameBytesMax && static_cast<FrameKind>(kind) != FrameKind::kCall;
  if (!longer || rest.size() < first + 4) return Status::Ok();
  const size_t record_bytes = DecodeFixed32(rest.data() + first) + kRecordHashEnd;
  if (first + record_bytes != kFrameHashEnd + length)
    return NoFrame("a long frame that is not one record");
  return Status::Ok();
}

std::optional<FrameHead> FrameReader::Arriving() const {
  if (waiting_bytes() < kFrameHeadBytes) return std::nullopt;
  return DecodeHead(std::string_view(buffer_).substr(begin_ + kFrameHashEnd));
}

Result<bool> FrameReader::Next(Frame* frame) {
  if (begin_ == buffer_.size()) {
    if (buffer_.capacity() > kKeptBytes) FreeString(&buffer_);
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ >= kMoveBytes) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < kFrameHeadBytes) return false;
  RETURN_IF_ERROR(CheckHead(rest));
  const size_t length = DecodeFixed32(rest.data());
  if (rest.size() < kFrameHashEnd + length) return false;
  const std::string_view hashed = rest.substr(kFrameHashEnd, length);
  if (DecodeFixed64(rest.data() + 4) != Hash64(hashed, length))
    return NoFrame("the checksum of a frame is wrong");
  static_cast<FrameHead&>(*frame) = DecodeHead(hashed);
  frame->body = hashed.substr(kLengthMin);
  begin_ += kFrameHashEnd + length;
  return true;
}

bool BodyReader::Has(size_t bytes) {
  if (rest_.size() < bytes) {
    ok_ = false;
    rest_ = {};
  }
  return ok_;
}

uint8_t BodyReader::Byte() {
  if (!Has(1)) return 0;
  const auto value = static_cast<uint8_t>(rest_[0]);
  rest_.remove_prefix(1);
  return value;
}

uint16_t BodyReader::U16() {
  const uint8_t low = Byte();
  return static_cast<uint16_t>(low | Byte() << 8);
}

uint32_t BodyReader::U32() {
  if (!Has(4)) return 0;
  const uint32_t value = DecodeFixed32(rest_.data());
  rest_.remove_prefix(4);
  return value;
}

uint64_t BodyReader::U64() {
  if (!Has(8)) return 0;
  const uint64_t value = DecodeFixed64(rest_.data());
  rest_.remove_prefix(8);
  return value;
}

int64_t BodyReader::Micros() {
  const auto value = static_cast<int64_t>(U64());
  if (value < 0) ok_ = false;
  return ok_ ? value : 0;
}

std::string_view BodyReader::Prefixed() {
  std::string_view value;
  if (!ok_ || !GetLengthPrefixed(&rest_, &value)) {
    ok_ = false;
    rest_ = {};
    return {};
  }
  return value;
}

void PutLsn(std::string* body, Lsn lsn) {
  PutFixed32(body, lsn.epoch);
  PutFixed64(body, lsn.seq);
}

}  // namespace cellar
