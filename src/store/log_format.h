// The bytes of the log: records in segments. Format version 1, final.
//
// All integers are little-endian. A segment is a file `cellar-<number>.log`:
//
//   offset size  segment header, 64 bytes
//        0    8  magic "CELLRLOG"
//        8    4  version u32 = 1
//       12    4  epoch of `after`, u32
//       16    8  seq of `after`, u64: the last record before this segment
//       24    8  chain u64: hash of that record (kChainStart before the first of all)
//       32    8  number of the segment, u64
//       40    8  created, microseconds since the Unix epoch
//       48    8  zero
//       56    8  XXH3 of bytes 0..56
//       64       records, one behind the other
//
//   offset size  record, 40 bytes and the payload
//        0    4  length u32: bytes behind `hash`, payload and 24. Never 0
//        4    4  previous u32: low half of the hash of the record before
//        8    8  hash u64: XXH3 of everything behind it, seed = length << 32 | previous
//       16    4  epoch u32 of the record's LSN
//       20    4  epoch u32 of the claim
//       24    8  seq u64 of the record's LSN
//       32    8  seq u64 of the claim: the newest LSN known durable when the record was made
//       40       payload: the resolved mutations of one EXEC, or of one or several commands that came
//                one after the other (the engine's encoding)
//
// A record can be verified alone, and its place by `previous` and by its LSN, which is above the
// one before. A record without payload only carries a claim; its LSN is that of the record before.
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
// This file knows bytes in memory only; store/log_writer.h and store/recovery.h know files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/lsn.h"
#include "cellar/status.h"

namespace cellar {

inline constexpr size_t kSegmentHeaderBytes{64};
inline constexpr size_t kRecordHeaderBytes{40};
inline constexpr size_t kRecordHashEnd{16};  // the hash covers everything from here
inline constexpr uint32_t kLogVersion{1};
inline constexpr size_t kRecordPayloadBytesMax{size_t{1} << 30};
// The `chain` before the first record of all: any fixed value would do.
inline constexpr uint64_t kChainStart{0x63656c6c61726c6fULL};

struct SegmentHeader {
  uint64_t number{0};
  Lsn after{};
  uint64_t chain{kChainStart};
  uint64_t created_micros{0};
};

std::string EncodeSegmentHeader(const SegmentHeader& header);
// kCorruption with what is wrong, without the file's name.
Result<SegmentHeader> DecodeSegmentHeader(std::string_view segment);

struct LogRecord {
  uint64_t offset{0};  // in the segment
  uint64_t hash{0};
  Lsn lsn;
  Lsn claim;
  std::string_view payload;  // of the segment's bytes

  uint64_t end_offset() const { return offset + kRecordHeaderBytes + payload.size(); }
};

// Writes the record, but for its hash, to `to`, which has room for kRecordHeaderBytes +
// payload.size(). `chain` is the hash of the record before.
void LayOutRecord(char* to, uint64_t chain, Lsn lsn, Lsn claim, std::string_view payload);
// Makes the payload of a record that was laid out there longer by `bytes`, which follow it.
void ExtendRecord(char* record, size_t bytes);
// Completes a record that was laid out there; returns its hash. A while later: a core that reads in
// words what it has just written in other pieces waits for that (40 ns for a record of 100 bytes).
uint64_t SealRecord(char* record);

// A position between records: what the next record is checked against.
struct LogPosition {
  uint64_t offset{kSegmentHeaderBytes};
  Lsn last{};
  uint64_t chain{kChainStart};
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

// Whether a record that verifies alone stands at `offset`, numbered as one soon after `last` could
// be. For reading on behind damage. REQUIRES: offset <= segment.size().
bool ReadRecordAlone(std::string_view segment, uint64_t offset, Lsn last, LogRecord* record);

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
