// See snapshot_remake.h.
#include "replica/snapshot_remake.h"

#include <algorithm>

#include "base/os/log.h"
#include "store/journal/journal.h"

namespace cellar {

void SnapshotRemake::Note(uint64_t number, std::string_view why) {
  if (!why_.empty()) return;
  number_ = number;
  why_ = why;
  begun_ = false;
}

void SnapshotRemake::OnTick(Journal& journal, Clock& clock) {
  if (why_.empty() || journal.snapshot_running()) return;
  const Manifest manifest = journal.CopyManifest();
  const bool is_newest = manifest.snapshot && manifest.snapshot->number == number_;
  const int64_t now = clock.MonotonicMicros();
  // There is another one; or it could not be written, as the log says; or it is too early.
  if (!is_newest || begun_ || now < next_micros_) return why_.clear();
  journal.SetDamagedSnapshot(number_);
  const Status begun = journal.StartSnapshot();
  if (!begun.ok() && begun.code() == ErrorCode::kTryAgain) return;  // soon
  begun_ = true;
  if (now > next_micros_ + kPauseMicrosMax) pause_micros_ = kPauseMicros;
  next_micros_ = now + pause_micros_;
  pause_micros_ = std::min(2 * pause_micros_, kPauseMicrosMax);
  Log(LogSeverity::kWarning, "The snapshot is of no use for a copy: " + why_ +
                                 (begun.ok() ? "; another one is written"
                                             : "; another one cannot be written: " + begun.text()));
}

}  // namespace cellar
