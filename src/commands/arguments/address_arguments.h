// Hosts and ports as words of commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cellar {

// A host goes into the configuration as a word, and to the resolver.
bool IsHostWord(std::string_view word);
// 1 to 65535; nothing: it is no port.
std::optional<uint16_t> ParsePort(std::string_view word);

}  // namespace cellar
