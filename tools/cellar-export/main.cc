// cellar-export: writes the rows of a table to a file. This file turns the command line and signals
// into a call of RunExport (exporter.h).
#include <csignal>
#include <optional>

#include "cellar-export/exporter.h"

namespace {

volatile bool stop_requested{false};

extern "C" void OnSignal(int) { stop_requested = true; }

}  // namespace

int main(int argc, char** argv) {
  using namespace cellar::exporter;  // NOLINT(google-build-using-namespace): the program's own
                                     // names
  int status{kExitAllWritten};
  const std::optional<Options> options = ParseOptions(argc, argv, &status);
  if (!options) return status;
  // A second signal ends the program at once.
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return RunExport(*options, &stop_requested);
}
