// cellar-import: writes CSV, TSV or JSON lines into a table. This file turns the command line and
// signals into a call of RunImport (importer.h).
#include <optional>

#include "cellar-import/importer.h"
#include "client/program.h"

int main(int argc, char** argv) {
  using namespace cellar::importer;  // NOLINT(google-build-using-namespace): the program's own
                                     // names
  int status{kExitAllWritten};
  const std::optional<Options> options = ParseOptions(argc, argv, &status);
  if (!options) return status;
  return RunImport(*options, cellar::client::CatchStopSignals());
}
