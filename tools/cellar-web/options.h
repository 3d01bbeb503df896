// Options: what the command line of cellar-web says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/connection.h"

namespace cellar::web {

struct Options {
  client::ConnectionOptions connection;  // the server; user and password are those of who logs in
  std::string bind{"127.0.0.1"};
  uint16_t port{8479};
  std::vector<std::string> names;  // by which browsers may ask for the page, besides `bind`
};

// Nothing: the program ends with `*status`, and has said why.
std::optional<Options> ParseOptions(int argc, char** argv, int* status);

}  // namespace cellar::web
