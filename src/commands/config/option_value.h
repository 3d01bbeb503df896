// Options that stand for an integer (words, numbers, memory, permissions), from text and back.
// Those of a node (config.h) and of a cluster (cluster_options.h) are read so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cellar/status.h"
#include "commands/config/config.h"

namespace cellar {

struct IntegerOption {
  ConfigOption::Kind kind;  // kInteger, kMemory, kOctal, kEnum
  int64_t low;
  int64_t high;
  std::span<const std::string_view> words;  // of an enum, value = position
};

// ERR: what was expected ("argument must be ...").
Result<int64_t> ReadOptionInteger(const IntegerOption& option, std::string_view text);
// In canonical form.
std::string OptionIntegerText(const IntegerOption& option, int64_t value);

}  // namespace cellar
