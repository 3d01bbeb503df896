// See arrival_watch.h.
#include "engine/rows/arrival_watch.h"

#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/rows/time_unit.h"

namespace cellar {

void ArrivalWatch::Note(std::string_view table, std::string_view column, int64_t timestamp_micros,
                        bool dead, int64_t now_micros) {
  const auto note = [&](OddArrival kind) {
    if (++noted_[static_cast<size_t>(kind)] > 1) return;  // one of a command is enough to be named
    last_[static_cast<size_t>(kind)] = "TS " + FormatInt64(timestamp_micros) + " of column " +
                                       Quote(column) + " in table " + Quote(table);
  };
  if (future_max_micros_ > 0 && timestamp_micros > now_micros &&
      timestamp_micros - now_micros > future_max_micros_) {
    note(OddArrival::kInFuture);
  }
  if (dead) note(OddArrival::kDeadOnArrival);
  if (LooksLikeLargerUnit(timestamp_micros, now_micros)) note(OddArrival::kNotMicros);
}

void ArrivalWatch::KeepNoted() {
  for (size_t i = 0; i < kOddArrivals; ++i) kept_[i] += noted_[i];
  noted_ = {};
}

}  // namespace cellar
