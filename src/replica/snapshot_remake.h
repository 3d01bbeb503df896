// SnapshotRemake: writes another snapshot where the one at hand cannot be read back, or is damaged.
//
// The state is all in memory, so a node whose disk has lost a part of its snapshot can still bring
// others up to date; without this nobody could join until the log has grown enough. The bad one
// goes and not an older one, from which a start may still come. A disk that gives nothing back
// gives the next one back no better, and who finds a copy bad may be wrong (an older version does
// not know the format), so pauses grow from kPauseMicros to kPauseMicrosMax.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/clock.h"

namespace cellar {

class Journal;

class SnapshotRemake {
 public:
  // A copy of the snapshot of this number comes to nothing, for this reason. Any time.
  void Note(uint64_t number, std::string_view why);
  // Whether another one is about to take the place of that one, which is sent to nobody meanwhile.
  bool Replaces(uint64_t number) const { return !why_.empty() && number == number_; }
  // Outside any step of a set: what has been noted is told, and a snapshot begun. O(trees) then.
  void OnTick(Journal& journal, Clock& clock);

 private:
  static constexpr int64_t kPauseMicros{60'000'000};
  static constexpr int64_t kPauseMicrosMax{3'600'000'000};

  uint64_t number_{0};
  std::string why_;  // empty: nothing is to be done
  bool begun_{false};
  int64_t pause_micros_{kPauseMicros};
  int64_t next_micros_{0};
};

}  // namespace cellar
