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
  std::string prefix;              // of the page's path, as "/cellar"; empty: none
  // Who stands for what may be typed: console.h. Empty: nothing may.
  std::string console_user;
  std::string console_password;
  // As whom the figures of graphs are asked for.
  std::string graph_user;
  std::string graph_password;
  // GET /metrics: what a scraper must say, and as whom the server is asked. Empty: there is none.
  std::string metrics_token;
  std::string metrics_user;
  std::string metrics_password;
};

// Nothing: the program ends with `*status`, and has said why.
std::optional<Options> ParseOptions(int argc, char** argv, int* status);

}  // namespace cellar::web
