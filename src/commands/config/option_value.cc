// See option_value.h.
#include "commands/config/option_value.h"

#include <algorithm>
#include <cstdio>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "commands/arguments/arguments.h"
#include "commands/config/invalid.h"
#include "resp/decimal.h"

namespace cellar {
namespace {

using Kind = ConfigOption::Kind;

std::string OctalText(int64_t value) {
  char text[32];
  (void)std::snprintf(text, sizeof(text), "%llo", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Result<int64_t> ReadOptionInteger(const IntegerOption& option, std::string_view text) {
  if (option.kind == Kind::kEnum) {
    std::string expected;
    for (size_t i = 0; i < option.words.size(); ++i) {
      if (EqualsIgnoreCase(text, option.words[i])) return static_cast<int64_t>(i);
      // A word that comes again stands for a default that may change.
      const auto earlier = option.words.first(i);
      if (std::count(earlier.begin(), earlier.end(), option.words[i]) > 0) continue;
      expected.append(expected.empty() ? "" : ", ").append(option.words[i]);
    }
    return Invalid("argument(s) must be one of the following: " + expected);
  }
  int64_t value = 0;
  if (option.kind == Kind::kMemory) {
    const auto bytes = MemoryArgument(text);
    if (!bytes.ok()) return Invalid("argument must be a memory value");
    value = *bytes;
  } else if (option.kind == Kind::kOctal) {
    if (text.empty() || text.size() > 7) return Invalid("argument couldn't be parsed as an octal");
    for (const char c : text) {
      if (c < '0' || c > '7') return Invalid("argument couldn't be parsed as an octal");
      value = value * 8 + (c - '0');
    }
  } else if (!ParseStrictInt64(text, &value)) {
    return Invalid("argument couldn't be parsed into an integer");
  }
  if (value < option.low || value > option.high) {
    return Invalid("argument must be between " + OptionIntegerText(option, option.low) + " and " +
                   OptionIntegerText(option, option.high) + " inclusive");
  }
  return value;
}

std::string OptionIntegerText(const IntegerOption& option, int64_t value) {
  if (option.kind == Kind::kEnum) return std::string(option.words[static_cast<size_t>(value)]);
  return option.kind == Kind::kOctal ? OctalText(value) : std::to_string(value);
}

}  // namespace cellar
