// Reads the segments of a store in order and tells a torn tail from damage (log_format.h says how).
// Shared by recovery, --check and --dump.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/os/file.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"

namespace cellar {

// What became of one segment.
enum class SegmentOutcome : uint8_t {
  kWhole,   // every record that should be there is
  kTorn,    // the last segment, with a tail that a crash left: it ends at `end`
  kDamaged  // anything else; `end` is where what is sound ends
};
struct SegmentReport {
  SegmentOutcome outcome{SegmentOutcome::kWhole};
  LogPosition end;           // behind the last good record
  uint64_t records{0};       // entries up to there
  uint64_t tail_bytes{0};    // behind `end`, up to the last byte that is not zero
  uint64_t tail_records{0};  // good ones in the tail
  bool has_header{true};     // false: cut inside the header, so that the file cannot go on
  std::string fault;         // offset, record and what is wrong with it; empty if whole
};

class LogReader {
 public:
  // `snapshot` is the LSN that the snapshot covers; Lsn{} if there is none.
  LogReader(FileSystem& files, std::string directory, Lsn snapshot)
      : files_(files), directory_(std::move(directory)), snapshot_(snapshot), last_(snapshot) {}

  // Called for each record but claims, those that the snapshot covers included. An error ends the
  // reading: the record is damage.
  using Visitor = std::function<Status(const LogRecord& record)>;

  // Reads the next segment of the manifest. `is_last` allows a torn tail if the entry is open. An
  // error is one of the file system.
  Result<SegmentReport> Read(const SegmentEntry& entry, bool is_last, const Visitor& visit);

  // The last record read, or what the snapshot covers if that is more; and its hash as far as
  // known.
  Lsn last() const { return last_; }
  uint64_t chain() const { return chain_.value_or(kChainStart); }
  // When the last record was committed; 0 if all are of version 1.
  int64_t commit_micros() const { return commit_micros_; }

 private:
  // What is wrong with the header of a segment that should follow `last_`; empty if nothing.
  std::string CheckHeader(const SegmentEntry& entry, const SegmentHeader& header) const;
  SegmentReport ReadRecords(std::string_view segment, const SegmentHeader& header, bool may_be_torn,
                            const Visitor& visit) const;

  FileSystem& files_;
  const std::string directory_;
  const Lsn snapshot_;
  Lsn last_;
  std::optional<uint64_t> chain_;  // of last_, once a record was read
  int64_t commit_micros_{0};
  Lsn highest_;  // of all that was read
  std::string bytes_;
};

}  // namespace cellar
