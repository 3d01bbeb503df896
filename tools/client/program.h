// What the programs that talk to a server have in common: the options that name the server, and
// how they are stopped.
#pragma once

#include <CLI/CLI.hpp>

#include "client/connection.h"

namespace cellar::client {

// Declares -h -p -s -n --user -a --auth-file, in the group "Server" of the help text. `connection`
// holds the defaults, must live until `app` has parsed, and names the server afterwards.
void AddServerOptions(CLI::App* app, ConnectionOptions* connection);

// Whether the user has asked the program to end: SIGINT or SIGTERM sets it, a second one ends the
// program at once. From this call on SIGPIPE is ignored: a reader that left is the error of a
// write.
const volatile bool* CatchStopSignals();

}  // namespace cellar::client
