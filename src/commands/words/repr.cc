// See repr.h.
#include "commands/words/repr.h"

#include <cstdint>

namespace cellar {

void AppendRepr(std::string_view bytes, std::string* to) {
  static constexpr char kHex[] = "0123456789abcdef";
  to->push_back('"');
  for (const char c : bytes) {
    switch (c) {
      case '\\':
      case '"':
        to->push_back('\\');
        to->push_back(c);
        break;
      case '\n':
        to->append("\\n");
        break;
      case '\r':
        to->append("\\r");
        break;
      case '\t':
        to->append("\\t");
        break;
      case '\a':
        to->append("\\a");
        break;
      case '\b':
        to->append("\\b");
        break;
      default:
        if (c >= ' ' && c <= '~') {
          to->push_back(c);
        } else {
          const auto byte = static_cast<uint8_t>(c);
          to->append("\\x");
          to->push_back(kHex[byte >> 4]);
          to->push_back(kHex[byte & 15]);
        }
    }
  }
  to->push_back('"');
}

}  // namespace cellar
