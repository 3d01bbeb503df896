// See options.h.
#include "cellar-web/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <utility>

#include "command_line.h"

namespace cellar::web {
namespace {

constexpr char kDescription[] =
    "Serves a web page on which a Cellar server can be looked at: tables, rows, figures, heat "
    "maps.\n"
    "Whoever opens it logs in as a user of the server, and sees what that user may read.\n"
    "Exit status: 0 stopped by a signal; 1 the address cannot be had; 2 the command line makes no\n"
    "sense.";

// The first line of a file. Nothing: it cannot be read, or is empty; that has been said.
std::optional<std::string> ReadSecret(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (file && std::getline(file, line) && !line.empty()) return line;
  std::fprintf(stderr, "cellar-web: %s cannot be read, or its first line is empty\n", path.c_str());
  return std::nullopt;
}

// Of letters that stand in a path as they are, so that it is the same however it is written.
std::string IsPrefix(const std::string& prefix) {
  constexpr char kLetters[] = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
  const bool good = prefix.starts_with('/') && !prefix.ends_with('/') &&
                    prefix.find("//") == std::string::npos &&
                    prefix.find_first_not_of(kLetters) == std::string::npos;
  return good ? std::string() : "'" + prefix + "' is no path such as /cellar";
}

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* status) {
  Options options;
  std::string token_file;
  std::string password_file;
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
  app.add_option("--prefix", options.prefix,
                 "path below which a proxy shows the page, as /cellar; with or without it on what "
                 "the proxy passes on")
      ->check(IsPrefix)
      ->group(listening);
  // Not those of AddServerOptions: nobody's password is kept here.
  const std::string server{"Server"};
  app.add_option("-h,--host", options.connection.host, "(127.0.0.1)")->group(server);
  app.add_option("-p,--port", options.connection.port, "(6479)")
      ->check(CLI::Range(1, 65535))
      ->group(server);
  app.add_option("-s,--socket", options.connection.socket, "unix socket, instead of host and port")
      ->group(server);
  const std::string console{"Console"};
  std::string console_password_file;
  app.add_option("--console-user", options.console_user,
                 "let commands be typed that this user of the server may run")
      ->group(console);
  app.add_option("--console-password-file", console_password_file,
                 "the first line of this file is that user's password")
      ->group(console);
  const std::string graphs{"Graphs"};
  std::string graph_password_file;
  app.add_option("--graph-user", options.graph_user,
                 "user of the server that asks for the figures of graphs (default)")
      ->group(graphs);
  app.add_option("--graph-password-file", graph_password_file,
                 "the first line of this file is that user's password")
      ->group(graphs);
  const std::string metrics{"Metrics"};
  app.add_option("--metrics-token-file", token_file,
                 "serve GET /metrics to who sends the first line of this file as bearer token")
      ->group(metrics);
  app.add_option("--metrics-user", options.metrics_user, "user that asks for the figures (default)")
      ->group(metrics);
  app.add_option("--metrics-password-file", password_file,
                 "the first line of this file is that user's password")
      ->group(metrics);
  if (!ReadCommandLine(&app, argc, argv, status)) return std::nullopt;
  *status = 2;
  for (const auto& [path, secret] : {std::pair(&token_file, &options.metrics_token),
                                     std::pair(&password_file, &options.metrics_password),
                                     std::pair(&console_password_file, &options.console_password),
                                     std::pair(&graph_password_file, &options.graph_password)}) {
    if (path->empty()) continue;
    std::optional<std::string> line = ReadSecret(*path);
    if (!line) return std::nullopt;
    *secret = std::move(*line);
  }
  if (!options.metrics_password.empty() && options.metrics_user.empty()) {
    options.metrics_user = "default";
  }
  *status = 0;
  return options;
}

}  // namespace cellar::web
