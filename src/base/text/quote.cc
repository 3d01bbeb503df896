// Escapes in texts that users read.
#include "base/text/quote.h"

#include <algorithm>

#include "base/text/ascii.h"

namespace cellar {
namespace {

void AppendEscaped(char c, std::string* out) {
  if (IsPrintable(c)) return out->push_back(c);
  out->append("\\x");
  AppendHex(c, out);
}

}  // namespace

std::string Quote(std::string_view bytes) {
  std::string quoted = "'";
  for (const char c : bytes.substr(0, kQuotedBytesMax)) AppendEscaped(c, &quoted);
  if (bytes.size() > kQuotedBytesMax) quoted.append("...");
  quoted.push_back('\'');
  return quoted;
}

void AppendDoubleQuoted(std::string_view bytes, std::string* out) {
  out->push_back('"');
  for (const char c : bytes) {
    if (c == '"' || c == '\\') out->push_back('\\');
    AppendEscaped(c, out);
  }
  out->push_back('"');
}

std::string QuoteWord(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return IsPrintable(c) && c != ' ' && c != '"' && c != '\'' && c != '\\';
  });
  if (plain) return std::string(word);
  std::string text;
  AppendDoubleQuoted(word, &text);
  return text;
}

}  // namespace cellar
