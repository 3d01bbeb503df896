// CommandBatch: commands that stand whole in the input, parsed before the first of them is
// executed, so that the cells they will touch can be asked for together: the
// cache misses of one wait while those of the others are under way.
//
// A batch is a part of some ParsedCommands that the server keeps; their arguments are views into
// the input that is being processed.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "commands/session/parsed_command.h"
#include "resp/request_parser.h"

namespace cellar {

// As many as the tree descends together.
inline constexpr size_t kBatchCommandsMax{16};
using ParsedCommands = std::array<ParsedCommand, kBatchCommandsMax>;

struct CommandBatch {
  std::span<ParsedCommand> commands;
  RequestParser::Outcome outcome{};  // of what follows the commands
  bool read{false};                  // false: nothing has been parsed yet
};

}  // namespace cellar
