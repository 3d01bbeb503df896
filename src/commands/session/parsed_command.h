// ParsedCommand: a request that has been taken apart, and what the command table has for it.
#pragma once

#include <string_view>
#include <vector>

namespace cellar {

struct CommandEntry;

struct ParsedCommand {
  std::vector<std::string_view> args;
  CommandEntry* entry{nullptr};  // null: there is no such command
  std::string_view rest;         // the input behind it
};

}  // namespace cellar
