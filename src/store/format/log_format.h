// The bytes of the log: records in segments. Written in format version 2; version 1 is read.
//
// All integers are little-endian. A segment is a file `cellar-<number>.log`:
//
//   offset size  segment header, 64 bytes
//        0    8  magic "CELLRLOG"
//        8    4  version u32 = 2
//       12    4  epoch of `after`, u32
//       16    8  seq of `after`, u64: the last record before this segment
//       24    8  chain u64: hash of that record (kChainStart before the first of all)
//       32    8  number of the segment, u64
//       40    8  created, microseconds since the Unix epoch
//       48    8  commit time of `after`, in the same unit; zero in version 1
//       56    8  XXH3 of bytes 0..56
//       64       records, one behind the other
//
//   offset size  record, 48 bytes and the payload
//        0    4  length u32: bytes behind `hash`, payload and 32. Never 0
//        4    4  previous u32: low half of the hash of the record before
//        8    8  hash u64: XXH3 of everything behind it, seed = length << 32 | previous
//       16    4  epoch u32 of the record's LSN
//       20    4  epoch u32 of the claim
//       24    8  seq u64 of the record's LSN
//       32    8  seq u64 of the claim: the newest LSN known durable when the record was made
//       40    7  commit time: microseconds since the Unix epoch, of the last step in the record
//       47    1  kind u8
//       48       payload
//
// Version 1 has no bytes 40 to 47: its payload begins at 40, and its length counts 24 besides it.
//
//   kind         LSN             payload
//   kClaim    0  of the record   none: it only carries a claim
//                before
//   kCommand  1  its own         the resolved mutations of one EXEC, or of one or several commands
//                                that came one after the other (engine/table/mutation.h)
//   kBarrier  2  its own         none: what a new leader writes before all else
//   kMembers  3  its own         who belongs to the replica set from here on
//   kCommit   4  of the record   epoch u32, seq u64, retention time u64: all records up to there are
//                before          committed, and will never be voided (replica sets only)
//
// Commit times grow strictly from step to step, over the life of the store, also where a clock is
// set back. Of a record that joins n steps, step i (0 first) has the record's time less n - 1 - i.
//
// Numbers: (epoch, seq) grows from record to record, and seq by one within an epoch. In a replica
// set a record of another epoch whose seq is not above the last one voids all from that seq on:
// that is how a truncation is written, since nothing is ever cut. Its epoch is higher as a rule. It
// is lower where a leader of epoch 4 sends what one of epoch 2 has written, in place of what one of
// epoch 3 wrote (figure 8 of the Raft paper). Which records of a log are void is known only behind
// them; a reader that must not take one for good stops at the newest kCommit. Commit times go back
// where a record voids others, no further than to that of the record before these.
//
// A record can be verified alone, and its place by `previous` and by its LSN, which is above the
// one before or voids.
//
// Segments are preallocated, so zeros follow the last record: a length of 0 marks the end. What
// else may follow is the trace of a crash: parts of records that were being written, in any order,
// with holes. Since a claim says what had been durable, the two kinds of a bad record can be told
// apart:
//
//   records   1 2 3 x 5 6         x = bad, 5 and 6 verify
//   torn      6 claims 3:         nothing says that 4 was ever on disk; 4.. is cut off
//   damage    6 claims 4 or 5:    4 was on disk, and acknowledged perhaps; the start is refused
//
// A claim may name a record that has been voided by then, whose number is the highest that was
// read. Until there is a higher one, a claim says less than it could.
//
// This file knows bytes in memory only; log_writer.h and recovery.h (store/journal) know files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/lsn.h"
#include "cellar/status.h"

namespace cellar {

inline constexpr size_t kSegmentHeaderBytes{64};
inline constexpr size_t kRecordHeaderBytes{48};
inline constexpr size_t kRecordHeaderBytesV1{40};
inline constexpr size_t kRecordHashEnd{16};   // the hash covers everything from here
inline constexpr uint32_t kLogVersion{2};     // written
inline constexpr uint32_t kLogVersionMin{1};  // still read
inline constexpr int64_t kCommitTimeMax{(int64_t{1} << 56) - 1};  // in the year 4253
inline constexpr size_t kRecordPayloadBytesMax{size_t{1} << 30};
// The `chain` before the first record of all: any fixed value would do.
inline constexpr uint64_t kChainStart{0x63656c6c61726c6fULL};

struct SegmentHeader {
  uint64_t number{0};
  Lsn after{};
  uint64_t chain{kChainStart};
  uint64_t created_micros{0};
  int64_t after_micros{0};  // commit time of `after`
  uint32_t version{kLogVersion};
};

enum class RecordKind : uint8_t {
  kClaim = 0,
  kCommand = 1,
  kBarrier = 2,
  kMembers = 3,
  kCommit = 4
};

// What a record is besides its payload.
struct RecordHead {
  Lsn lsn;
  Lsn claim{};               // <= lsn
  int64_t commit_micros{0};  // of its last step; 0 in version 1
  RecordKind kind{RecordKind::kCommand};

  // Whether it has a number of its own.
  bool is_entry() const {
    return kind == RecordKind::kCommand || kind == RecordKind::kBarrier ||
           kind == RecordKind::kMembers;
  }
};

std::string EncodeSegmentHeader(const SegmentHeader& header);
// kCorruption with what is wrong, without the file's name.
Result<SegmentHeader> DecodeSegmentHeader(std::string_view segment);

struct LogRecord : RecordHead {
  uint64_t offset{0};  // in the segment
  uint64_t hash{0};
  std::string_view payload;  // of the segment's bytes
  uint64_t end_offset{0};
};

// Writes the record, but for its hash, to `to`, which has room for kRecordHeaderBytes +
// payload.size(). `chain` is the hash of the record before.
void LayOutRecord(char* to, uint64_t chain, const RecordHead& head, std::string_view payload);
// Makes the payload of a record that was laid out there longer by `bytes`, which follow it: one
// more step, committed at `commit_micros`.
void ExtendRecord(char* record, size_t bytes, int64_t commit_micros);
// Completes a record that was laid out there; returns its hash. A while later: a core that reads in
// words what it has just written in other pieces waits for that (40 ns for a record of 100 bytes).
uint64_t SealRecord(char* record);

// A position between records: what the next record is checked against.
struct LogPosition {
  uint64_t offset{kSegmentHeaderBytes};
  Lsn last{};
  uint64_t chain{kChainStart};
  int64_t commit_micros{0};  // of the last record
  uint32_t version{kLogVersion};
  Lsn highest{};  // of all records read, where that is more than `last`: of those that were voided

  // Where the records of a segment begin.
  static LogPosition BehindHeader(const SegmentHeader& header) {
    return {.last = header.after,
            .chain = header.chain,
            .commit_micros = header.after_micros,
            .version = header.version};
  }
};

enum class LogStep : uint8_t {
  kRecord,  // a good record
  kEnd,     // the bytes end here, or a length of 0 stands here
  kBad,     // neither
};

// Reads the record at *position, and moves it behind the record if that is good. At kBad *fault
// says what is wrong. The whole of `segment` counts: cut it to the segment's known end before.
LogStep ReadRecord(std::string_view segment, LogPosition* position, LogRecord* record,
                   std::string* fault);

// ReadRecord with nothing but the bytes of one record, those at position->offset: for logs that may
// be in the middle of being written behind it. False: that is no good record.
bool ReadRecordAt(std::string_view bytes, LogPosition* position, LogRecord* record);

// Whether a record that verifies alone stands at `offset`, numbered as one soon after `last` could
// be. For reading on behind damage. REQUIRES: offset <= segment.size().
bool ReadRecordAlone(std::string_view segment, uint64_t offset, const LogPosition& last,
                     LogRecord* record);

// Where a record of version 2 that is known to be sound ends, and its number. REQUIRES: one stands
// at the front of `bytes`.
struct RecordPlace {
  size_t bytes{0};
  Lsn lsn;
};
RecordPlace PlaceOfRecord(std::string_view bytes);
// Where the records at the front of `bytes` end that together are no longer than `bytes_max`, and
// the number of the last of them; a first one that is longer is alone. O(records). REQUIRES: whole
// ones stand there, at least one.
RecordPlace PlaceOfRecords(std::string_view bytes, size_t bytes_max);

// The payload of a kCommit record.
struct CommitMark {
  Lsn lsn;                      // all records up to it are committed
  int64_t retention_micros{0};  // the leader's time of retention
};
std::string EncodeCommitMark(const CommitMark& mark);
[[nodiscard]] bool DecodeCommitMark(std::string_view payload, CommitMark* mark);

// What identifies a record in every copy of the log: unlike its hash it does not depend on the
// records before it nor on the claim, which each copy has its own.
uint64_t IdentityOf(const LogRecord& record);

// What stands behind the last good record of a segment.
struct LogTail {
  uint64_t bytes{0};         // up to and with the last byte that is not zero
  uint64_t records{0};       // records in there that verify alone
  bool is_damage{false};     // one of these claims that more had been durable than was read
  uint64_t claim_offset{0};  // of that record
  Lsn claim;
};
// Looks at every byte from `position` on. O(bytes).
LogTail JudgeTail(std::string_view segment, const LogPosition& position);

}  // namespace cellar
