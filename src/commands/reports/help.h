// HELP of the container commands, made from their rows: syntax line, then what it does.
#pragma once

#include <string_view>

#include "commands/catalog/command.h"

namespace cellar {

// The handler of every `... HELP`.
void CmdHelp(CommandContext& ctx);

// The row of a container's HELP subcommand.
constexpr Command HelpSubcommand(std::string_view group) {
  return {.name = "help",
          .arity = 2,
          .flags = kLoading | kStale,
          .categories = group == "connection" ? kCategoryConnection : 0u,
          .group = group,
          .summary = "Returns this help.",
          .complexity = "O(1)",
          .handler = CmdHelp};
}

}  // namespace cellar
