// Redis' glob patterns over bytes: * ? [abc] [^abc] [a-z] and \ before a character that is meant as
// itself. A class that is never closed ends with the pattern; a backslash at the very end is
// itself.
//
// Only the last star is ever tried again, so the cost is at most pattern times text, never the
// exponential time of a recursive matcher.
#pragma once

#include <cstdint>
#include <string_view>

namespace cellar {

enum class GlobCase : uint8_t { kSensitive, kInsensitive };

// Does the whole of `text` match? O(pattern * text), O(text) without a star in the middle.
bool GlobMatch(std::string_view pattern, std::string_view text,
               GlobCase letter_case = GlobCase::kSensitive);

// True if `pattern` has no special character, so that it matches just itself.
bool GlobIsLiteral(std::string_view pattern);

}  // namespace cellar
