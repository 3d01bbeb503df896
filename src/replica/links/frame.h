// Frames: what nodes say to each other once PEER has turned a connection into a link.
//
// All integers are little-endian.
//
//   offset size
//        0    4  length u32: bytes behind `hash`, at least 32
//        4    8  hash u64: XXH3 of them, seed = length
//       12    1  kind u8
//       13    1  room u8: 1 if the sender's disk has room for records
//       14    1  awaits u8: 1 if readers there wait for what is committed: they are to be told at
//                once, and not with the next record or heartbeat
//       15    1  zero
//       16    4  term u32: the sender's epoch
//       20    8  from u64: the sender's node id
//       28    8  sent i64: the sender's monotonic clock, microseconds
//       36    8  echo i64: the newest `sent` received from the other end, 0 if none
//       44       body
//
//   kind          from       body
//   kFollow    1  follower   name of its last record: epoch u32, seq u64, commit time i64, identity
//                            u64 (store/log/log_stream.h); its cluster's id u64; priority u32;
//                            announced port u16, announced host (length-prefixed)
//   kFrom      2  leader     cluster id u64; leads u8: records follow from there on
//   kFull      3  leader     cluster id u64; leads u8; what both have in common: seq u64, 0 if
//                            unknown; snapshot: 0 or 1 u8; epoch u32, seq u64, bytes u64, hash u64;
//                            bytes of footer and trailer u64; ticket u64
//   kChunk     4  leader     place u64; bytes of the snapshot, in the order of snapshot_intake.h
//   kRecords   5  leader     commit: epoch u32, seq u64; records in wire form (store/log/log_stream.h)
//   kBeat      6  leader     commit: epoch u32, seq u64; last: epoch u32, seq u64; clock i64;
//                            sync: 1 u8 if what has come shall be synced at once (WAIT), else 0
//   kAck       7  follower   durable: epoch u32, seq u64; applied: epoch u32, seq u64; clock i64.
//                            While a copy comes both are zero: it only says that it is there
//   kLead      8  leader     last: epoch u32, seq u64: the follower, which has it, leads from now on
//                 follower   last: epoch u32, seq u64: it does, and that is its first record
//   kError     9  both       text for the log; the link is closed behind it
//   kReady    10  follower   the copy is in place: records may follow
//   kVote ... kTimeoutNow 16 - 21: what members of a replica set say (replica/set/set_message.h)
//   kHello    22  member     what it has: 0 nothing, 1 data, 2 a set u8; that set's id u64; clock
//                            i64; its address, and all that it lists (both length-prefixed). Then,
//                            from versions that know level 2 on: the level that it knows u32;
//                            flags u8: 1 it is no member by what is committed there, 2 nor is who
//                            gets this; replica-kind u8 (MemberKind); version (length-prefixed);
//                            replica-priority plus one u64
//   kReadIndex  23 member    ticket u64: up to where must be applied what is read now?
//   kReadAnswer 24 leader    ticket u64; commit: epoch u32, seq u64
//   kOrder     25  member    ticket u64; what the leader is asked to do u8 (set_order.h); node u64
//   kOrderAnswer 26 leader   ticket u64; 0 refused, 1 done, 2 not now u8; text (length-prefixed)
//   kCall ... kCredit: 32 - 38: what is said on command links (cluster/call_frames.h)
//   kMap, kMapAsk, kReport, kCut, kCutAnswer, kRelease: 39 - 41, 47 - 49: what a node of a cluster
//              and its director say (cluster/cluster_frames.h)
//   kMessage   57 member     what is published there (server/message_links.h)
//   kBegin, kWrote, kUnblock, kAlive: 58, 61 - 63: on command links
//
// Two links lead from a follower to its leader: the control link (`PEER ... follow`), which carries
// all but kChunk, and while a copy comes the bulk link (`PEER ... bulk`, the ticket in place of the
// features), which carries nothing else. So a copy delays no heartbeat and no acknowledgement.
//
// A frame is at most kFrameBytesMax long, unless it carries one record that is longer. A reader
// knows which kinds may come, and how long each may be: what claims to be longer is refused before
// it has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/free_string.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "store/format/log_format.h"

namespace cellar {

inline constexpr size_t kFrameHeadBytes{44};
inline constexpr size_t kFrameHashEnd{12};
inline constexpr size_t kFrameBytesMax{8 << 20};
// From here on a frame may be on its way for longer than a heartbeat.
inline constexpr size_t kLongFrameBytes{256 << 10};
// No record is longer.
inline constexpr size_t kFrameBytesLimit{kRecordPayloadBytesMax + kRecordHeaderBytes + 4096};
inline constexpr size_t kChunkBytesMax{1 << 20};
inline constexpr uint32_t kPeerVersion{1};
// Records that go together in one frame.
inline constexpr size_t kFrameRecordsMax{kFrameBytesMax - 4096};
inline constexpr size_t kRecordsHeadBytes{12};  // of a kRecords' body, before its records
inline constexpr size_t kAppendHeadBytes{37};   // of a kAppend's

enum class FrameKind : uint8_t {
  kFollow = 1,
  kFrom = 2,
  kFull = 3,
  kChunk = 4,
  kRecords = 5,
  kBeat = 6,
  kAck = 7,
  kLead = 8,
  kError = 9,
  kReady = 10,
  kVote = 16,
  kVoteResult = 17,
  kAppend = 18,
  kAppendResult = 19,
  kInstall = 20,
  kTimeoutNow = 21,
  kHello = 22,
  kReadIndex = 23,
  kReadAnswer = 24,
  kOrder = 25,
  kOrderAnswer = 26,
  kCall = 32,
  kReply = 33,
  kMore = 34,
  kChannel = 35,
  kMoved = 36,
  kCancel = 37,
  kCredit = 38,
  kMap = 39,
  kMapAsk = 40,
  kReport = 41,
  kCut = 47,
  kCutAnswer = 48,
  kRelease = 49,
  kMessage = 57,
  kBegin = 58,
  kWrote = 61,
  kUnblock = 62,
  kAlive = 63,
};
inline constexpr FrameKind kFrameKindLast{FrameKind::kAlive};

struct FrameHead {
  FrameKind kind{FrameKind::kError};
  bool room{true};
  bool awaits{false};
  uint32_t term{0};
  uint64_t from{0};
  int64_t sent_micros{0};
  int64_t echo_micros{0};
};

struct Frame : FrameHead {
  std::string_view body;
};

// The whole frame.
std::string EncodeFrame(const FrameHead& head, std::string_view body);
// A frame in two steps, in memory that is used again: BeginFrame puts the head into *bytes, in
// place of what was there; the body is appended to it; SealFrame fills in length and hash. O(body).
void BeginFrame(const FrameHead& head, std::string* bytes);
void SealFrame(std::string* bytes);
// The same where the frame lies among others: its first kFrameHeadBytes, and all of its bytes.
void WriteFrameHead(const FrameHead& head, char* to);
void SealFrame(char* frame, size_t bytes);

// Takes a stream of bytes apart.
class FrameReader {
 public:
  // What may come: of others not even the bytes are taken.
  FrameReader(std::initializer_list<FrameKind> kinds) {
    for (const FrameKind kind : kinds) kinds_ |= uint64_t{1} << static_cast<unsigned>(kind);
  }
  // Forgets what has come.
  void Clear() {
    FreeString(&buffer_);
    begin_ = 0;
  }
  // Adds bytes as they came.
  void Add(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame, whose body is good until the next call. False: more bytes are needed.
  // kCorruption if what stands there is no frame; nothing can be read from then on.
  Result<bool> Next(Frame* frame);
  // The head of a frame that has begun to come; nothing has been hashed yet. REQUIRES: Next() has
  // said false.
  std::optional<FrameHead> Arriving() const;
  size_t waiting_bytes() const { return buffer_.size() - begin_; }
  size_t memory_bytes() const { return buffer_.capacity(); }

 private:
  // What stands at the front of `rest`, of which the head is there.
  Status CheckHead(std::string_view rest) const;

  uint64_t kinds_{0};  // bits
  std::string buffer_;
  size_t begin_{0};
};

// Reads fields from the front of a body; once one is missing, all are zero and ok() is false.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  uint8_t Byte();
  uint16_t U16();
  uint32_t U32();
  uint64_t U64();
  int64_t Micros();  // 0 or more
  Lsn ReadLsn() {
    const uint32_t epoch = U32();
    return {epoch, U64()};
  }
  std::string_view Prefixed();
  std::string_view Rest() { return std::exchange(rest_, {}); }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  bool Has(size_t bytes);

  std::string_view rest_;
  bool ok_{true};
};

// A text from a peer, for the log or a reply: one line of ASCII, cut to kPeerTextBytesMax.
inline constexpr size_t kPeerTextBytesMax{1000};
std::string PrintableText(std::string_view text);
// Of the text of a kError its reader takes so much.
inline constexpr size_t kErrorTextBytesMax{4096};
// Of a kError, for the log.
std::string WhatItSays(const Frame& frame);

void PutLsn(std::string* body, Lsn lsn);

}  // namespace cellar
