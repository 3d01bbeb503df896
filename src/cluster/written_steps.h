// WrittenSteps: steps of the log that calls of one channel have written (call_frames.h, kWrote), by
// their commit times, which no two steps share: from the first one to the last one.
#pragma once

#include <cstdint>

namespace cellar {

struct WrittenSteps {
  int64_t first_micros{0};
  int64_t last_micros{0};
};

}  // namespace cellar
