// SpaceReserver: reserves room on the disk in the open segment before it is needed, so that a
// record that a client has been promised cannot meet a full disk.
//
//   written          needed                     allocated
//   ------|-------------|--------------------------|----> stream
//                       |<- less than half a step: another step is reserved
//
// The step doubles from one to the next, up to allocation_bytes_max. Where there is no room the
// attempt is repeated after retry_delay_micros; what is reserved is used up meanwhile.
//
// Owned by the sync thread.
#pragma once

#include <cstdint>
#include <string>

#include "cellar/clock.h"
#include "store/journal/journal.h"
#include "store/journal/segment_file.h"

namespace cellar {

class SpaceReserver {
 public:
  SpaceReserver(const JournalOptions& options, Clock& clock);

  // Reserves more in `segment` if what lies behind `needed`, a place in the stream, has become
  // little. O(1) if not.
  void Ensure(SegmentFile* segment, uint64_t needed);
  // For a new segment that is to take `bytes` soon.
  AllocationSize SizeFor(uint64_t bytes) const;

  // Why no room can be reserved; empty if it can.
  const std::string& failure() const { return failure_; }
  void SetFailure(std::string why) { failure_ = std::move(why); }
  // When Ensure may reserve more (monotonic); INT64_MAX while there is enough.
  int64_t due_micros() const { return is_low_ ? retry_micros_ : INT64_MAX; }

 private:
  const uint64_t step_bytes_min_;
  const uint64_t step_bytes_max_;
  const int64_t retry_delay_micros_;
  Clock& clock_;
  uint64_t step_bytes_;
  bool is_low_{false};
  std::string failure_;
  int64_t retry_micros_{0};  // not before then
};

}  // namespace cellar
