// LaterSteps: what a recovery leaves out because it is behind the point that was asked for.
//
// Commit times only ascend (log_format.h). Once a machine's clock has been set back, each step's is
// a microsecond above the one before until the clock has caught up: so a time that the clock has
// shown twice stands for the first time, and all that was written since then lies behind it. Nobody
// sees that in a time alone; in the number of steps left out, and when they began, one does.
//
// Reading on may meet damage, or a gap, in what the recovery itself does not need: the count ends
// there, and says so. What lies in an object store is not fetched for it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/os/file.h"
#include "cellar/lsn.h"
#include "store/format/store_files.h"

namespace cellar {

// What a record's payload holds of steps.
struct Steps {
  uint64_t count{0};
  uint64_t changes{0};
};
Steps StepsOf(std::string_view payload);

struct LaterSteps {
  uint64_t count{0};
  int64_t last_micros{0};       // commit time of the last of them
  bool is_all{true};            // else there are more
  bool clock_went_back{false};  // a file was begun at a time before that of the step before it
};

// Those behind the step that the record `last` has at `last_micros`. O(n) in the log behind it.
LaterSteps CountLaterSteps(FileSystem& files, const StoreFiles& found, Lsn last,
                           int64_t last_micros);

}  // namespace cellar
