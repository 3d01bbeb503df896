// See cluster_options.h.
#include "commands/config/cluster_options.h"

#include "base/text/ascii.h"
#include "commands/config/option_value.h"

namespace cellar {
namespace {

using Kind = ConfigOption::Kind;

constexpr std::string_view kBalanceWords[] = {"no", "size", "yes"};

constexpr ClusterOption kClusterOptions[] = {
    {.name = "cluster-cut-interval", .kind = Kind::kInteger, .value = "0", .high = INT32_MAX},
    {.name = "tablet-split-bytes", .kind = Kind::kMemory, .value = "268435456", .low = 1},
    {.name = "tablet-merge-bytes", .kind = Kind::kMemory, .value = "67108864"},
    {.name = "tablet-balance", .kind = Kind::kEnum, .value = "yes", .words = kBalanceWords},
    {.name = "tablet-move-rate", .kind = Kind::kMemory, .value = "67108864", .low = 1},
    {.name = "tablet-moves", .kind = Kind::kInteger, .value = "2", .low = 1, .high = 1024},
};

}  // namespace

std::span<const ClusterOption> ClusterOptions() { return kClusterOptions; }

const ClusterOption* FindClusterOption(std::string_view name) {
  for (const ClusterOption& option : kClusterOptions)
    if (EqualsIgnoreCase(name, option.name)) return &option;
  return nullptr;
}

Result<std::string> CheckClusterOption(const ClusterOption& option, std::string_view text) {
  const IntegerOption integer{option.kind, option.low, option.high, option.words};
  ASSIGN_OR_RETURN(const int64_t value, ReadOptionInteger(integer, text));
  return OptionIntegerText(integer, value);
}

}  // namespace cellar
