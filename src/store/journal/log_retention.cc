// See log_retention.h.
#include "store/journal/log_retention.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {

Lsn LogRetention::OldestNeeded(const Manifest& draft) const {
  // A log that goes back to the first record does what one more snapshot would.
  const bool is_whole = !draft.segments.empty() && draft.segments.front().after == Lsn{};
  const size_t earlier_max = snapshots_kept_.load(std::memory_order_relaxed) - 1;
  if (draft.earlier.size() < earlier_max && is_whole) return {};
  return draft.earlier.empty() ? draft.snapshot->lsn : draft.earlier.front().lsn;
}

uint64_t LogRetention::FirstWanted() const {
  uint64_t first = retain_from_.load(std::memory_order_relaxed);
  for (const auto& pin : pins_) first = std::min(first, pin.load(std::memory_order_relaxed));
  return first;
}

// Goes from the newest segment to the oldest; the first one that nobody needs takes all older ones
// along, whoever may need them.
void LogRetention::Prune(Manifest* draft, std::vector<std::string>* names) const {
  CELLAR_ASSERT(draft->snapshot.has_value());
  std::vector<SnapshotEntry>& earlier = draft->earlier;
  const uint64_t damaged = damaged_.load(std::memory_order_relaxed);
  const auto bad = std::find_if(earlier.begin(), earlier.end(), [damaged](const auto& snapshot) {
    return snapshot.number == damaged;
  });
  if (bad != earlier.end()) {
    names->push_back(FormatFileName(StoreFileKind::kSnapshot, bad->number));
    earlier.erase(bad);
  }
  const size_t earlier_max = snapshots_kept_.load(std::memory_order_relaxed) - 1;
  const size_t dropped = earlier.size() - std::min(earlier.size(), earlier_max);
  for (size_t i = 0; i < dropped; ++i)
    names->push_back(FormatFileName(StoreFileKind::kSnapshot, earlier[i].number));
  earlier.erase(earlier.begin(), earlier.begin() + static_cast<std::ptrdiff_t>(dropped));

  const Lsn newest = draft->snapshot->lsn;
  const Lsn oldest = OldestNeeded(*draft);
  const uint64_t backlog = backlog_bytes_.load(std::memory_order_relaxed);
  const uint64_t behind = retain_behind_.load(std::memory_order_relaxed);
  const uint64_t wanted_from = FirstWanted();
  uint64_t covered_bytes = 0;
  std::vector<SegmentEntry> kept;
  bool keeps = true;
  for (auto segment = draft->segments.rbegin(); segment != draft->segments.rend(); ++segment) {
    const bool is_covered = segment->end && segment->end->last <= newest;
    if (is_covered) covered_bytes += segment->end->offset;
    const bool is_needed = !segment->end || segment->end->last > oldest ||
                           covered_bytes <= backlog || segment->end->last.seq > behind ||
                           segment->number >= wanted_from;
    // Without a gap: what stays must follow one another.
    keeps = keeps && (!is_covered || is_needed);
    if (keeps) {
      kept.push_back(*segment);
    } else {
      names->push_back(FormatFileName(StoreFileKind::kSegment, segment->number));
    }
  }
  CELLAR_ASSERT(draft->segments.empty() || draft->segments.back().end || !kept.empty());
  draft->segments.assign(kept.rbegin(), kept.rend());
}

}  // namespace cellar
