// The command line of cellar-heatmap.
#pragma once

#include <optional>
#include <string>

#include "cellar-heatmap/heat.h"
#include "cellar-heatmap/picture.h"
#include "client/connection.h"

namespace cellar::heatmap {

struct Options {
  Question question;
  client::ConnectionOptions connection;
  std::string svg_path;  // empty: none
  std::string png_path;
  bool terminal{false};  // also if there is no path
  size_t columns{0};     // of the terminal
  size_t lines{0};
  Theme theme{Theme::kDark};
  Colours colours{Colours::kNone};
};

// Nothing: the program ends with `*status`, and has said why.
std::optional<Options> ParseOptions(int argc, char** argv, int* status);

}  // namespace cellar::heatmap
