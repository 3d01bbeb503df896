// The end of a process that has found its own bug.
#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace cellar {

void AssertFailed(const char* condition, const char* file, int line) {
  (void)std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  (void)std::fflush(stderr);
  std::abort();
}

}  // namespace cellar
