// The cellar server: reads the options, wires store, server and loop, serves.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cellar/clock.h"
#include "server/server.h"

int main(int argc, char** argv) {
  cellar::ServerOptions options;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--port") options.port = std::atoi(argv[i + 1]);
    if (word == "--bind") options.bind = argv[i + 1];
    if (word == "--unixsocket") options.unix_socket = argv[i + 1];
  }
  cellar::Server server(cellar::Clock::System());
  if (const cellar::Status status = server.Listen(options); !status.ok()) {
    (void)std::fprintf(stderr, "cellar: %s\n", status.ToString().c_str());
    return 1;
  }
  return server.Run();
}
