// One import from beginning to end: open, create what is missing, read, map, write, report.
#pragma once

#include "cellar-import/options.h"

namespace cellar::importer {

inline constexpr int kExitAllWritten{0};
inline constexpr int kExitSomeRefused{1};
inline constexpr int kExitStopped{2};

// Runs the import and returns the process's exit status. `*stop` may be set by a signal handler:
// the import then waits for what is under way, keeps its state and ends.
int RunImport(const Options& options, const volatile bool* stop);

}  // namespace cellar::importer
