// Letters and hexadecimal digits of ASCII. Bytes beyond it are left as they are: a name of a client
// may be in any encoding, and the locale has no say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

constexpr char LowerChar(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr char UpperChar(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

inline std::string UpperText(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), UpperChar);
  return upper;
}

// Whether two words are the same but for the case of their letters.
inline bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (LowerChar(a[i]) != LowerChar(b[i])) return false;
  }
  return true;
}

// Printable, and no blank beyond ' '.
constexpr bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

inline constexpr std::string_view kHexDigits{"0123456789abcdef"};

// Two lower-case digits.
inline void AppendHex(char byte, std::string* out) {
  const auto bits = static_cast<uint8_t>(byte);
  out->push_back(kHexDigits[bits >> 4]);
  out->push_back(kHexDigits[bits & 15]);
}

inline std::string HexText(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) AppendHex(byte, &text);
  return text;
}

}  // namespace cellar
