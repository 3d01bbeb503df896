// One export from beginning to end: ask the server, write, record how far it has come, report.
//
//   Source (CSCAN, page by page) -> RowWriter (a format) -> Output (file, zstd)     one part
//
// With --split each part has its own connection, file and state, and a thread.
#pragma once

#include "cellar-export/options.h"

namespace cellar::exporter {

inline constexpr int kExitAllWritten{0};
inline constexpr int kExitSomeUnsaid{1};
inline constexpr int kExitStopped{2};

// Runs the export and returns the process's exit status. `*stop` may be set by a signal handler:
// the export then keeps its state and ends.
int RunExport(const Options& options, const volatile bool* stop);

}  // namespace cellar::exporter
