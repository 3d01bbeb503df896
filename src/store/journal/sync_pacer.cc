// See sync_pacer.h.
#include "store/journal/sync_pacer.h"

#include <algorithm>
#include <utility>

#include "store/journal/journal.h"

namespace cellar {

void SyncPacer::NoteSync(int64_t begin_micros, int64_t end_micros) {
  const int64_t took = end_micros - begin_micros;
  NoteLanes(1, took, end_micros);
  if (typical_micros_ == 0) typical_micros_ = took;
  const int64_t step = typical_micros_ / 16 + 1;
  typical_micros_ += std::clamp(took - typical_micros_, -step, step);
}

void SyncPacer::NoteLanes(uint64_t syncs, int64_t took_micros, int64_t end_micros) {
  syncs_ += syncs;
  if (took_micros >= kReleaseLagMicros) ++delayed_syncs_;
  ended_micros_ = end_micros;
}

void SyncPacer::CountSync(uint64_t bytes) {
  bytes_ = bytes;
  trial_.Count(bytes);
}

// What the last sync made durable lets about as many records come: for seven eighths of those the
// next sync waits, or for half of what a sync takes, whichever comes first.
SyncPacer::Gathering SyncPacer::Plan(size_t queued_bytes) {
  const uint64_t released = std::exchange(bytes_, 0);
  const bool gathers = way() == SyncWay::kGathered && released > 0 && queued_bytes > 0 &&
                       typical_micros_ >= kGatherSyncMicrosMin;
  if (!gathers) return {};
  return {.bytes = queued_bytes + released / 8 * 7,
          .until_micros = ended_micros_ + std::min(typical_micros_ / 2, kGatherMicrosMax)};
}

}  // namespace cellar
