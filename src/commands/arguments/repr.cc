// See repr.h.
#include "commands/arguments/repr.h"

#include <cstdint>

#include "base/text/ascii.h"

namespace cellar {

// MONITOR's lines are made of these, so a line stays one whatever its arguments hold.
void AppendRepr(std::string_view bytes, std::string* to) {
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
        if (IsPrintable(c)) {
          to->push_back(c);
        } else {
          to->append("\\x");
          AppendHex(c, to);
        }
    }
  }
  to->push_back('"');
}

}  // namespace cellar
