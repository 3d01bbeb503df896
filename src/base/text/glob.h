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

// Which of the texts that begin with `prefix` and go on behind it match. kAll is said of a pattern
// that ends in a star reached by `prefix` alone, the form in which people write it. O(pattern *
// prefix).
enum class GlobReach : uint8_t { kNone, kSome, kAll };
GlobReach GlobReachBehind(std::string_view pattern, std::string_view prefix);

// True if `pattern` has no special character, so that it matches just itself.
bool GlobIsLiteral(std::string_view pattern);

}  // namespace cellar
