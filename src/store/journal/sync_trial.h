// SyncTrial: in which way syncs get most to this disk, with these clients, found out by trying.
//
//   window   0    1    2    3 ...               18            19 ...            34
//   way      A    B    C    the best of them    another one   the best again    the third
//
// A window is a while of steady work. The ways that are not the best are tried again now and then,
// and at once when the way in use gives much more or less than before: what is known of the others
// is of another time then.
//
// Does not sync (log_writer.h). Owned by one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cellar/clock.h"

namespace cellar {

enum class SyncWay : uint8_t {
  kAtOnce,      // a sync begins when the one before it has ended, with what has come meanwhile
  kGathered,    // or a little later, when those just released have come again
  kOverlapped,  // a sync begins when there is something to sync
};

class SyncTrial {
 public:
  explicit SyncTrial(Clock& clock) : clock_(clock) {}

  // What to do now.
  SyncWay way() const { return way_; }
  // Whether kOverlapped may be chosen; at first it may not. Once it may, it is tried at once if
  // what it gives is unknown.
  void AllowOverlap(bool allowed);
  // So many bytes have become durable since the last call, in the way that way() says.
  void Count(uint64_t bytes);

 private:
  static constexpr size_t kWays{3};
  static constexpr int64_t kWindowMicros{50'000};
  static constexpr uint64_t kWindowCounts{16};
  static constexpr int64_t kPauseMicros{50'000};  // nobody writes; does not count
  static constexpr uint64_t kTrialEvery{16};
  static constexpr double kChange{1.5};  // more than the ways themselves tend to differ
  // Where ways get about as much to the disk, a write waits least with overlap, and longest when it
  // is gathered.
  static constexpr std::array<double, kWays> kWorth{1, 0.97, 1.1};

  void Begin(SyncWay way);
  // The way for the next window.
  SyncWay Choose();
  size_t ways_allowed() const { return is_overlap_allowed_ ? kWays : kWays - 1; }

  Clock& clock_;
  SyncWay way_{SyncWay::kAtOnce};
  bool is_overlap_allowed_{false};
  uint64_t windows_{0};
  size_t tried_last_{0};
  std::array<double, kWays> rates_{};  // bytes for each microsecond, by way; 0 is unknown
  // The window that runs.
  int64_t last_count_micros_{0};
  int64_t micros_{0};
  uint64_t bytes_{0};
  uint64_t counts_{0};
};

}  // namespace cellar
