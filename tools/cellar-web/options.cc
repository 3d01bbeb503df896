// See options.h.
#include "cellar-web/options.h"

#include <CLI/CLI.hpp>

#include "command_line.h"

namespace cellar::web {
namespace {

constexpr char kDescription[] =
    "Serves a web page on which a Cellar server can be looked at: tables, rows, figures, heat "
    "maps.\n"
    "Whoever opens it logs in as a user of the server, and sees what that user may read.\n"
    "Exit status: 0 stopped by a signal; 1 the address cannot be had; 2 the command line makes no\n"
    "sense.";

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* status) {
  Options options;
  CLI::App app{kDescription, "cellar-web"};
  AddCommonFlags(&app);
  const std::string listening{"Listening"};
  app.add_option("--bind", options.bind, "address to listen on (127.0.0.1)")->group(listening);
  app.add_option("--listen", options.port, "port to listen on (8479)")
      ->check(CLI::Range(0, 65535))
      ->group(listening);
  app.add_option("--name", options.names,
                 "name by which browsers may ask for the page, as a proxy before it has; may be "
                 "given again")
      ->group(listening);
  // Not those of AddServerOptions: nobody's password is kept here.
  const std::string server{"Server"};
  app.add_option("-h,--host", options.connection.host, "(127.0.0.1)")->group(server);
  app.add_option("-p,--port", options.connection.port, "(6479)")
      ->check(CLI::Range(1, 65535))
      ->group(server);
  app.add_option("-s,--socket", options.connection.socket, "unix socket, instead of host and port")
      ->group(server);
  if (!ReadCommandLine(&app, argc, argv, status)) return std::nullopt;
  return options;
}

}  // namespace cellar::web
