// Is it UTF-8? Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace cellar {

// Bytes at the front that are whole valid characters: text.size() if all of it is valid. O(size).
size_t ValidUtf8Prefix(std::string_view text);
inline bool IsValidUtf8(std::string_view text) { return ValidUtf8Prefix(text) == text.size(); }

// No byte above 0x7f. O(size).
bool IsAscii(std::string_view text);

}  // namespace cellar
