// See options.h.
#include "cellar-top/options.h"

#include <CLI/CLI.hpp>

#include "client/program.h"
#include "command_line.h"

namespace cellar::top {
namespace {

constexpr char kDescription[] =
    "Shows what a server does: commands and their time, clients, memory, log, snapshots, "
    "followers, feeds, sets and tablets of a cluster, tables, the hottest ranges of rows and the "
    "slow log.\n"
    "Keys: q ends, t c n sort commands by time, calls, name, s shows the sets of a cluster and "
    "back, "
    "space holds the screen.\n"
    "Exit status: 0 ended by the user, or --once has printed; 2 there is no server, it refused, or "
    "the command line makes no sense.";

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* status) {
  Options options;
  std::string order{"time"};
  size_t columns = 0;
  CLI::App app{kDescription, "cellar-top"};
  AddCommonFlags(&app);
  const std::string group{"Showing"};
  app.add_option("-i,--interval", options.interval_s, "seconds between two looks (2; --once: 1)")
      ->check(CLI::Range(0.1, 3600.0))
      ->group(group);
  app.add_flag("--once", options.once, "print one screen, and end")->group(group);
  app.add_option("--sort", order, "commands by time, calls or name (time)")
      ->check(CLI::IsMember({"time", "calls", "name"}))
      ->group(group);
  app.add_option("--commands", options.view.commands_max, "so many (10)")
      ->check(CLI::Range(size_t{1}, size_t{500}))
      ->group(group);
  app.add_option("--tables", options.view.tables_max, "so many (8)")
      ->check(CLI::Range(size_t{1}, size_t{1000}))
      ->group(group);
  app.add_flag("--sets", options.view.shows_cluster,
               "show the sets, tablets and nodes of a cluster alone")
      ->group(group);
  app.add_option("--width", columns, "--once: columns of the lines (80)")
      ->check(CLI::Range(size_t{20}, size_t{1000}))
      ->group(group);
  client::AddServerOptions(&app, &options.connection);
  if (!ReadCommandLine(&app, argc, argv, status)) return std::nullopt;
  if (options.once && app.count("--interval") == 0) options.interval_s = 1;
  options.view.order = order == "calls"  ? Order::kCalls
                       : order == "name" ? Order::kName
                                         : Order::kTime;
  if (columns > 0) options.view.columns = columns;
  const client::ConnectionOptions& server = options.connection;
  options.view.server =
      server.socket.empty() ? server.host + ":" + std::to_string(server.port) : server.socket;
  return options;
}

}  // namespace cellar::top
