// SyncPacer: when the next sync under `always` begins, from how long those before took and what
// they made durable. The ways and what each is good for: log_writer.h.
//
//   a sync      |---------|            |---------|
//   released              *  clients whose replies it held go on ...
//   queued                  . . ... .  ... and their next records come: as many bytes again,
//   gathered              |<-------->| or half of what a sync takes, and the next one begins
//
// Counts syncs for INFO too. Owned by the sync thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cellar/clock.h"
#include "store/journal/sync_trial.h"

namespace cellar {

class SyncPacer {
 public:
  explicit SyncPacer(Clock& clock) : trial_(clock) {}

  SyncWay way() const { return trial_.way(); }
  void AllowOverlap(bool allowed) { trial_.AllowOverlap(allowed); }

  // The segment has been synced, or could not be.
  void NoteSync(int64_t begin_micros, int64_t end_micros);
  // So many syncs have ended beside each other (sync_lanes.h), the slowest after `took_micros`.
  void NoteLanes(uint64_t syncs, int64_t took_micros, int64_t end_micros);
  // All that was waiting has become durable with a new segment.
  void NoteSegment(int64_t end_micros) { ended_micros_ = end_micros; }
  // What those that were noted last have made durable: of the segment's own sync, or of lanes.
  void CountSync(uint64_t bytes);
  void CountLanes(uint64_t bytes) { trial_.Count(bytes); }

  // No sync before so many bytes are queued, or before then.
  struct Gathering {
    size_t bytes{0};
    int64_t until_micros{0};
  };
  // With so many bytes queued already. Each sync is gathered for once: the next call says "at once"
  // unless another sync has ended.
  Gathering Plan(size_t queued_bytes);

  int64_t ended_micros() const { return ended_micros_; }      // the last one (monotonic)
  int64_t typical_micros() const { return typical_micros_; }  // that one takes; 0: unknown
  uint64_t syncs() const { return syncs_; }
  uint64_t delayed_syncs() const { return delayed_syncs_; }  // that took kReleaseLagMicros or more

 private:
  SyncTrial trial_;
  int64_t ended_micros_{0};
  // The middle of those of late: it follows in small steps, so that one that was disturbed does not
  // count for more than the others.
  int64_t typical_micros_{0};
  uint64_t bytes_{0};  // that the last one made durable; 0 once a plan has been made of it
  uint64_t syncs_{0};
  uint64_t delayed_syncs_{0};
};

// Below, a pause would cost more than it gathers: timers are not as fine.
inline constexpr int64_t kGatherSyncMicrosMin{50};
inline constexpr int64_t kGatherMicrosMax{2'000};

}  // namespace cellar
