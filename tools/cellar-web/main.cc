// cellar-web: a web page on which a Cellar server can be looked at.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "cellar-web/options.h"
#include "cellar-web/web_server.h"

int main(int argc, char** argv) {
  using namespace cellar::web;  // NOLINT(google-build-using-namespace): the program's own names
  int status{0};
  const std::optional<Options> options = ParseOptions(argc, argv, &status);
  if (!options) return status;
  // Threads that are begun from here on leave these to this one.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  (void)signal(SIGPIPE, SIG_IGN);
  const cellar::Result<std::unique_ptr<WebServer>> server = WebServer::Start(*options);
  if (!server.ok()) {
    std::fprintf(stderr, "cellar-web: %s\n", server.status().text().c_str());
    return 1;
  }
  const bool v6 = options->bind.find(':') != std::string::npos;
  std::printf("http://%s%s%s:%u/\n", v6 ? "[" : "", options->bind.c_str(), v6 ? "]" : "",
              static_cast<unsigned>((*server)->port()));
  std::fflush(stdout);
  int caught = 0;
  (void)sigwait(&ends, &caught);
  return 0;
}
