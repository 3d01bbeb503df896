// The command line of cellar-top.
#pragma once

#include <optional>
#include <string>

#include "cellar-top/screen.h"
#include "client/connection.h"

namespace cellar::top {

struct Options {
  client::ConnectionOptions connection;
  View view;
  double interval_s{2};
  bool once{false};
};

// Nothing: the program ends with `*status`, and has said why.
std::optional<Options> ParseOptions(int argc, char** argv, int* status);

}  // namespace cellar::top
