// See sync_trial.h.
#include "store/journal/sync_trial.h"

#include <utility>

namespace cellar {

void SyncTrial::Begin(SyncWay way) {
  way_ = way;
  micros_ = 0;
  bytes_ = 0;
  counts_ = 0;
}

void SyncTrial::AllowOverlap(bool allowed) {
  if (allowed == is_overlap_allowed_) return;
  is_overlap_allowed_ = allowed;
  if (allowed && rates_[static_cast<size_t>(SyncWay::kOverlapped)] == 0)
    Begin(SyncWay::kOverlapped);
  if (!allowed && way_ == SyncWay::kOverlapped) Begin(Choose());
}

// A window of counts gives a rate for the way that was used. A rate that has changed much means
// that the load is another one, and then what is known of the other ways is worth nothing.
void SyncTrial::Count(uint64_t bytes) {
  const int64_t now = clock_.MonotonicMicros();
  const int64_t since = now - std::exchange(last_count_micros_, now);
  if (since > kPauseMicros) return;
  micros_ += since;
  bytes_ += bytes;
  if (++counts_ < kWindowCounts || micros_ < kWindowMicros) return;

  const double rate = static_cast<double>(bytes_) / static_cast<double>(micros_);
  const double known = rates_[static_cast<size_t>(way_)];
  const bool has_changed = known != 0 && (rate > known * kChange || rate < known / kChange);
  if (has_changed) rates_ = {};
  rates_[static_cast<size_t>(way_)] = known == 0 || has_changed ? rate : (known + rate) / 2;
  Begin(Choose());
}

// A way that has never been tried comes first, then the best one; now and then another one, in
// turn, as loads change.
SyncWay SyncTrial::Choose() {
  size_t best = 0;
  for (size_t way = 0; way < ways_allowed(); ++way) {
    if (rates_[way] == 0) return static_cast<SyncWay>(way);
    if (rates_[way] * kWorth[way] > rates_[best] * kWorth[best]) best = way;
  }
  if (++windows_ % kTrialEvery != 0) return static_cast<SyncWay>(best);
  do {
    tried_last_ = (tried_last_ + 1) % ways_allowed();
  } while (tried_last_ == best);
  return static_cast<SyncWay>(tried_last_);
}

}  // namespace cellar
