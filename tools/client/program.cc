// See program.h.
#include "client/program.h"

#include <csignal>
#include <fstream>
#include <string>

namespace cellar::client {
namespace {

volatile bool stop_requested{false};

extern "C" void OnStopSignal(int) { stop_requested = true; }

}  // namespace

void AddServerOptions(CLI::App* app, ConnectionOptions* connection) {
  const std::string group{"Server"};
  app->add_option("-h,--host", connection->host, "(127.0.0.1)")->group(group);
  app->add_option("-p,--port", connection->port, "(6479)")
      ->check(CLI::Range(1, 65535))
      ->group(group);
  app->add_option("-s,--socket", connection->socket, "unix socket, instead of host and port")
      ->group(group);
  app->add_option("-n,--keyspace", connection->keyspace, "keyspace to select")->group(group);
  app->add_option("--user", connection->user, "ACL user")->group(group);
  app->add_option("-a,--auth", connection->password,
                  "password; $CELLAR_AUTH or --auth-file keep it out of the process list")
      ->envname("CELLAR_AUTH")
      ->group(group);
  // Declared, and therefore read, after --auth: the file goes first if both are there.
  app->add_option_function<std::string>(
         "--auth-file",
         [connection](const std::string& path) {
           std::ifstream file(path);
           if (!std::getline(file, connection->password)) {
             throw CLI::ValidationError("--auth-file", path + " cannot be read");
           }
         },
         "file whose first line is the password")
      ->group(group);
}

const volatile bool* CatchStopSignals() {
  struct sigaction action {};
  action.sa_handler = OnStopSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  (void)signal(SIGPIPE, SIG_IGN);
  return &stop_requested;
}

}  // namespace cellar::client
