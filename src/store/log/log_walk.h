// LogWalk: the records behind a base, read from segments of which several folders have copies, and
// handed to a LogReplay until that has enough. Every byte read is checked, and where one segment
// ends and the next begins: by the hash of the last record that the next one's header has.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

#include "base/os/file.h"
#include "store/format/log_format.h"
#include "store/format/store_files.h"
#include "store/log/log_replay.h"

namespace cellar {

class LogWalk {
 public:
  // Behind `base`, or from the first record if that is null. What is used is told to `out`, unless
  // that is null. All are borrowed.
  LogWalk(FileSystem& files, const StoreFiles& found, const FoundSnapshot* base, std::ostream* out)
      : files_(files), found_(found), base_lsn_(base == nullptr ? Lsn{} : base->lsn), out_(out) {}

  // Until replay->ended(), or the log ends. kCorruption: damage, a gap.
  Status Run(LogReplay* replay);

 private:
  using Segments = std::map<uint64_t, std::vector<FoundSegment>>;
  Segments::const_iterator FirstSegment() const;
  // Reads one segment, from whichever copies have it. `next`: the header of the one behind it; null
  // if there is none.
  Status ReadSegment(const std::vector<FoundSegment>& copies, const SegmentHeader* next,
                     LogReplay* replay);
  Status ReadCopy(const FoundSegment& copy, const SegmentHeader* next, LogReplay* replay);
  // What is wrong with the end of a copy; empty: nothing.
  std::string CheckEnd(const FoundSegment& copy, std::string_view segment, std::string fault) const;
  bool IsAt(const SegmentHeader& next) const {
    return position_.last == next.after && position_.chain == next.chain;
  }
  Status CheckFollows(const FoundSegment& segment) const;
  Status CheckNothingLost(uint64_t behind) const;
  Status Gap(std::string text, uint64_t from, uint64_t to) const;

  FileSystem& files_;
  const StoreFiles& found_;
  const Lsn base_lsn_;
  std::ostream* const out_;
  LogPosition position_;
  uint64_t number_{0};  // of the last segment read; 0: none was
  std::string last_path_;
  std::string bytes_;
};

}  // namespace cellar
