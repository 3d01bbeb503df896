// Escapes for error texts.
#include "base/quote.h"

namespace cellar {

std::string Quote(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : bytes.substr(0, kQuotedBytesMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      quoted.push_back(c);
    } else {
      quoted.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 0xf]);
    }
  }
  if (bytes.size() > kQuotedBytesMax) quoted.append("...");
  quoted.push_back('\'');
  return quoted;
}

}  // namespace cellar
