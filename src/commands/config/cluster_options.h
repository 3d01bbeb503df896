// Options of a cluster as a whole: CLUSTER CONFIG SET at any node changes one for all, and it is
// kept in the cluster's own tables (cluster/map_tables.h). CONFIG GET shows them too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cellar/status.h"
#include "commands/config/config.h"

namespace cellar {

struct ClusterOption {
  std::string_view name;
  ConfigOption::Kind kind;  // kInteger, kMemory, kEnum
  std::string_view value;   // where nobody has set it, in canonical form
  int64_t low{0};
  int64_t high{INT64_MAX};
  std::span<const std::string_view> words{};  // of an enum
};

std::span<const ClusterOption> ClusterOptions();
// In any case; null if there is none.
const ClusterOption* FindClusterOption(std::string_view name);
// The text in its canonical form; the error says what was expected.
Result<std::string> CheckClusterOption(const ClusterOption& option, std::string_view text);

}  // namespace cellar
