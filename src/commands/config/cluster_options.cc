// See cluster_options.h.
#include "commands/config/cluster_options.h"

#include <fmt/format.h>

#include "base/text/ascii.h"
#include "commands/arguments/arguments.h"
#include "resp/decimal.h"

namespace cellar {
namespace {

using Kind = ClusterOption::Kind;

constexpr std::string_view kBalanceWords[] = {"no", "size", "yes"};

constexpr ClusterOption kOptions[] = {
    {.name = "cluster-cut-interval", .kind = Kind::kInteger, .value = "0", .high = INT32_MAX},
    {.name = "tablet-split-bytes", .kind = Kind::kMemory, .value = "268435456", .low = 1},
    {.name = "tablet-merge-bytes", .kind = Kind::kMemory, .value = "67108864"},
    {.name = "tablet-balance", .kind = Kind::kEnum, .value = "yes", .words = kBalanceWords},
    {.name = "tablet-move-rate", .kind = Kind::kMemory, .value = "67108864", .low = 1},
    {.name = "tablet-moves", .kind = Kind::kInteger, .value = "2", .low = 1, .high = 1024},
};

Status Invalid(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

}  // namespace

std::span<const ClusterOption> ClusterOptions() { return kOptions; }

const ClusterOption* FindClusterOption(std::string_view name) {
  for (const ClusterOption& option : kOptions)
    if (EqualsIgnoreCase(name, option.name)) return &option;
  return nullptr;
}

Result<std::string> CheckClusterOption(const ClusterOption& option, std::string_view text) {
  if (option.kind == Kind::kEnum) {
    std::string expected;
    for (const std::string_view word : option.words) {
      if (EqualsIgnoreCase(text, word)) return std::string(word);
      expected.append(expected.empty() ? "" : ", ").append(word);
    }
    return Invalid("argument(s) must be one of the following: " + expected);
  }
  int64_t value = 0;
  if (option.kind == Kind::kMemory) {
    const auto bytes = MemoryArgument(text);
    if (!bytes.ok()) return Invalid("argument must be a memory value");
    value = *bytes;
  } else if (!ParseStrictInt64(text, &value)) {
    return Invalid("argument couldn't be parsed into an integer");
  }
  if (value < option.low || value > option.high) {
    return Invalid(
        fmt::format("argument must be between {} and {} inclusive", option.low, option.high));
  }
  return std::to_string(value);
}

}  // namespace cellar
