// See space_reserver.h.
#include "store/journal/space_reserver.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr uint64_t kStepBytesFirst{1 << 20};

}  // namespace

SpaceReserver::SpaceReserver(const JournalOptions& options, Clock& clock)
    : step_bytes_min_(options.allocation_bytes_min),
      step_bytes_max_(options.allocation_bytes_max),
      retry_delay_micros_(options.retry_delay_micros),
      clock_(clock),
      step_bytes_(std::min(kStepBytesFirst, options.allocation_bytes_max)) {}

AllocationSize SpaceReserver::SizeFor(uint64_t bytes) const {
  return {.wanted = bytes + step_bytes_, .least = bytes + step_bytes_min_, .left = step_bytes_min_};
}

// Reserves ahead: when half a step of room is left, and twice as much each time, up to a limit, so
// that a log that is written fast asks seldom.
void SpaceReserver::Ensure(SegmentFile* segment, uint64_t needed) {
  CELLAR_ASSERT(segment != nullptr);
  const uint64_t allocated = segment->stream_allocated();
  is_low_ = allocated < needed + step_bytes_ / 2;
  if (!is_low_) {
    failure_.clear();
    return;
  }
  // What a client waits for is worth an attempt at any time.
  if (clock_.MonotonicMicros() < retry_micros_ && allocated >= needed) return;
  const Status status = segment->Allocate(SizeFor(needed > allocated ? needed - allocated : 0));
  if (status.ok()) {
    CELLAR_ASSERT(segment->stream_allocated() >= needed);
    step_bytes_ = std::min(step_bytes_ * 2, step_bytes_max_);
    failure_.clear();
    is_low_ = false;
    retry_micros_ = 0;
  } else {
    failure_ = status.text();
    retry_micros_ = clock_.MonotonicMicros() + retry_delay_micros_;
  }
}

}  // namespace cellar
