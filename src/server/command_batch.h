// CommandBatch: the commands of a pipeline that stand whole in the input, parsed before the first of
// them is executed, so that the cells they will touch can be asked for together (DESIGN.md, section
// 5): the cache misses of one wait while those of the others are under way.
//
// One for the server; its arguments are views into the input that is being processed.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace cellar {

struct CommandBatch {
  // As many keys as the tree descends together.
  static constexpr size_t kCommandsMax{16};

  size_t size{0};
  std::array<std::vector<std::string_view>, kCommandsMax> args;
  std::array<std::string_view, kCommandsMax> rest;  // the input behind each command

  std::span<const std::vector<std::string_view>> commands() const {
    return std::span(args).first(size);
  }
};

}  // namespace cellar
