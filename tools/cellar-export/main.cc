// cellar-export: writes the rows of a table to a file. This file turns the command line and signals
// into a call of RunExport (exporter.h).
#include <optional>

#include "cellar-export/exporter.h"
#include "client/program.h"

int main(int argc, char** argv) {
  using namespace cellar::exporter;  // NOLINT(google-build-using-namespace): the program's own
                                     // names
  int status{kExitAllWritten};
  const std::optional<Options> options = ParseOptions(argc, argv, &status);
  if (!options) return status;
  return RunExport(*options, cellar::client::CatchStopSignals());
}
