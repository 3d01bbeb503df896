// The words of CNEAR table INDEX index count value ...
#pragma once

#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/arguments/arguments.h"

namespace cellar {

struct NearIndexRequest {
  std::string_view index;
  std::vector<std::string_view> values;
};

// All of the command's words; the views are of them. ERR: what stands behind the table is wrong.
Result<NearIndexRequest> ParseNearIndex(Arguments args);

}  // namespace cellar
