// See command_reader.h.
#include "server/connection/command_reader.h"

#include <utility>

namespace cellar {

// The fast ways first, as far as they go; what they leave is read in steps.
CommandBatch CommandReader::Read(std::string_view input, const RequestParser::Limits& limits,
                                 const Context& context, std::span<ParsedCommand> room) {
  const bool resumed = parser_.in_command();
  if (resumed) room[0].args = std::exchange(incomplete_args_, {});
  std::string_view ahead = input;
  size_t size = 0;
  if (!resumed && limits.AllowShort()) [[likely]] {
    for (; size < room.size(); ++size) {
      ParsedCommand& command = room[size];
      size_t bytes = context.shapes.Take(ahead, &command);  // it may look like the one before
      if (bytes == 0) [[unlikely]] {
        bytes = parser_.NextShort(ahead, &command.args);
        if (bytes == 0) break;
        command.entry = context.commands.Find(command.args[0]);
        context.shapes.Note(ahead, bytes, command);
      }
      ahead.remove_prefix(bytes);
      command.rest = ahead;
    }
    if (size == room.size() || ahead.empty() || (size > 0 && ahead[0] != '*')) [[likely]]
      return {room.first(size), RequestParser::Outcome::kCommand, true};
  }
  // An inline command may have its words in the parser's memory, where the next one overwrites
  // them.
  const size_t size_max = resumed || input[0] != '*' ? 1 : room.size();
  do {
    ParsedCommand& command = room[size];
    std::string_view rest = ahead;
    const RequestParser::Outcome outcome = parser_.Next(&rest, limits, &command.args);
    if (outcome != RequestParser::Outcome::kCommand) {
      if (resumed) {
        incomplete_args_ = std::move(command.args);
      } else if (parser_.in_command()) {
        incomplete_args_ = command.args;
      }
      return {room.first(size), outcome, true};
    }
    command.entry = command.args.empty() ? nullptr : context.commands.Find(command.args[0]);
    ahead = rest;
    command.rest = ahead;
    ++size;
  } while (size < size_max && !ahead.empty() && ahead[0] == '*');
  return {room.first(size), RequestParser::Outcome::kCommand, true};
}

void CommandReader::Forget() {
  parser_.Forget();
  incomplete_args_ = {};
}

}  // namespace cellar
