// LogIndex: the log as it can be read by commit time: in pieces, each with the time before it.
//
//   segments   00005 | 00006 | 00007 ...        those that follow one another up to the end
//   pieces     |  |  |  |  |  |  |              about kPieceBytes, from record to record
//
// Where pieces begin is found out by reading: whoever reads through a segment for the first time
// leaves the way marked for all others. Only records up to `shown` are read, which is what is known
// to be on disk, and in a replica set committed.
//
// Records that others have voided (log_format.h) are passed over. Which these are is said by the
// epochs that are in force, each with its first record:
//
//   log        1-1 1-2 1-3 1-4 | 2-3 2-4 | 3-5 2-5 2-6      epoch-seq
//   in force   1-1 2-3                                      so 1-3, 1-4 and 3-5 are void
//
// To know them, the way from one epoch to another has to be read once; between two records of one
// epoch no other has begun for good, so nearly all of the log need not.
//
// A record that is larger than a piece is read in slices (large_records.h).
//
// Belongs to the loop's thread. Reads wait for the disk where the page cache does not have the
// bytes; a call reads one piece.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/log/large_records.h"
#include "store/log/segment_window.h"

namespace cellar {

// Between two records.
struct LogPlace {
  uint64_t segment{0};  // 0: nowhere
  uint64_t offset{0};
  int64_t micros{0};  // commit time of the record before, of those in force
  Lsn last;           // and its number
};

class LogIndex {
 public:
  static constexpr uint64_t kPieceBytes{64 << 10};

  LogIndex(FileSystem& files, std::string directory)
      : large_(files, directory), window_(files, std::move(directory), kReadBytes) {}

  // `manifest` is as new as `shown`, or newer. O(segments). `whole`: every record up to there is in
  // the files; else some may be in a snapshot alone, since the log cannot be written.
  Status Update(const Manifest& manifest, Lsn shown, bool whole);
  Lsn shown() const { return shown_; }

  // Records up to this commit time are not there any more, or not all of them.
  int64_t begin_micros() const { return segments_.empty() ? INT64_MAX : segments_[0].after_micros; }
  // The number of the first segment; 0 without one.
  uint64_t first_segment() const { return segments_.empty() ? 0 : segments_[0].number; }
  // The segment behind `segment`, and when it begins; nothing if this is the last one.
  std::optional<uint64_t> NextOf(uint64_t segment) const;
  std::optional<int64_t> EndOf(uint64_t segment) const;
  // When it begins itself, or a little later; INT64_MAX if it is not there.
  int64_t BeginOf(uint64_t segment) const;
  // Bytes of records from `place` to the end, about.
  uint64_t BytesFrom(const LogPlace& place) const;

  // The beginning of a piece, as late as is known, before every step committed at `micros` or
  // later. REQUIRES: begin_micros() < micros.
  LogPlace Find(int64_t micros) const;
  // Whether it still is one.
  bool IsThere(const LogPlace& place) const;
  // The beginning of the piece before. REQUIRES: `place` is the beginning of a piece. Nothing: it
  // is the first one.
  std::optional<LogPlace> Before(const LogPlace& place) const;

  // Goes on by a piece to find out which records up to `shown` are void. True: that is known.
  Result<bool> FindSuperseded();
  // Whether that is a record of the log as it is now, and none that another one has taken the place
  // of. REQUIRES: FindSuperseded has said true.
  bool IsInForce(Lsn lsn) const;
  // Whether Before knows: what is before `place` has been read through. False: some of it has been
  // now, ask again.
  Result<bool> LookBefore(const LogPlace& place);

  // What `visit` gets: the record, and the commit time of the one before. False stops before it.
  using Visit = std::function<Result<bool>(const LogRecord&, int64_t before_micros)>;
  enum class Ended : uint8_t {
    kPiece,  // behind the last record of a piece; there may be more
    kShown,  // no more is to be seen now
    kVisit,  // `visit` said so
  };
  // Goes through the records from *place to the end of the piece, and moves it along; not at all
  // (kPiece) while it is not known which records are void, or a large one is still being read. A
  // view that `visit` gets dies with its call, unless its record is pinned.
  Result<Ended> ReadPiece(LogPlace* place, const Visit& visit);

  // Records of LargeRecords::kBytesMin and more.
  LargeRecords& large() { return large_; }

  size_t memory_bytes() const;

 private:
  static constexpr size_t kReadBytes{kPieceBytes + (16 << 10)};

  struct Segment {
    uint64_t number{0};
    Lsn after;
    int64_t after_micros{0};
    std::optional<SegmentEntry::End> end;
    // Where each begins, as far as it has been read. None while it is not known what is before the
    // first one: the record before the segment is not shown, or void.
    std::vector<LogPlace> pieces;
    bool read_through{false};
    uint64_t read_to{kSegmentHeaderBytes};  // an offset
  };

  Result<std::optional<Segment>> OpenSegment(const SegmentEntry& entry);
  const Segment* FindSegment(uint64_t number) const;
  Segment* FindSegment(uint64_t number) {
    return const_cast<Segment*>(std::as_const(*this).FindSegment(number));
  }
  static LogPlace BeginningOf(const Segment& segment) {
    return {segment.number, kSegmentHeaderBytes, segment.after_micros, segment.after};
  }
  // The last one before `segment` in which pieces are known; null if there is none.
  const Segment* MarkedBefore(const Segment* segment) const;
  // Takes in that `lsn` is the next record of the log.
  void NoteEpoch(Lsn lsn);
  void BeginScan();
  void MarkBeginnings();
  enum class Fate : uint8_t { kShown, kVoid, kNotYet };
  Fate FateOf(const LogRecord& record, const LogPlace& place) const;
  // The record at `offset`; kNone: none can be read there now.
  Result<LargeRecords::Found> Next(const Segment& segment, uint64_t offset, LogRecord* record,
                                   uint64_t* end_offset);
  // Nothing can be read at `offset`: is that where the segment ends?
  Status CheckWhole(const Segment& segment, uint64_t offset) const;
  Result<Ended> EndSegment(Segment* segment, LogPlace* place);
  // Whether a piece ends at `place`; notes where the next one begins if nobody knew.
  static bool EndsPiece(Segment* segment, const LogPlace& place);

  Lsn shown_;
  bool whole_{true};
  std::vector<Segment> segments_;
  std::vector<Lsn> epochs_;    // in force: the first record of each, or the one before all segments
  LogPlace scan_;              // up to here; `last` is the last record, whatever became of it
  bool marks_are_old_{false};  // MarkBeginnings has something to do

  LargeRecords large_;
  SegmentWindow window_;
};

}  // namespace cellar
