// See address_arguments.h.
#include "commands/arguments/address_arguments.h"

#include <algorithm>

#include "resp/decimal.h"

namespace cellar {

bool IsHostWord(std::string_view word) {
  constexpr size_t kHostBytesMax{255};
  return !word.empty() && word.size() <= kHostBytesMax &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return c > ' ' && c != '"' && c != '\''; });
}

std::optional<uint16_t> ParsePort(std::string_view word) {
  int64_t port = 0;
  if (!ParseStrictInt64(word, &port) || port < 1 || port > UINT16_MAX) return std::nullopt;
  return static_cast<uint16_t>(port);
}

}  // namespace cellar
