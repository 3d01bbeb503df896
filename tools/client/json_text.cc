// See json_text.h.
#include "client/json_text.h"

#include <algorithm>
#include <cstdint>

#include "base/text/ascii.h"
#include "base/text/utf8.h"

namespace cellar::client {
namespace {

void AppendBase64(std::string_view bytes, std::string* out) {
  constexpr std::string_view kDigits{
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"};
  while (!bytes.empty()) {
    const size_t taken = std::min<size_t>(3, bytes.size());
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < taken ? static_cast<uint8_t>(bytes[i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      out->push_back(i <= taken ? kDigits[bits >> (18 - 6 * i) & 63] : '=');
    }
    bytes.remove_prefix(taken);
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  if (IsPlainJson(text)) {
    out->append(text);
    out->push_back('"');
    return;
  }
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out->append(text.substr(begin, i - begin));
    begin = i + 1;
    if (byte == '"' || byte == '\\') {
      out->push_back('\\');
      out->push_back(text[i]);
    } else {
      out->append("\\u00");
      AppendHex(text[i], out);
    }
  }
  out->append(text.substr(begin));
  out->push_back('"');
}

void AppendJsonText(std::string_view text, std::string* out) {
  if (IsPlainJson(text) || IsValidUtf8(text)) {
    AppendJsonString(text, out);
    return;
  }
  out->append("{\"b64\":\"");
  AppendBase64(text, out);
  out->append("\"}");
}

}  // namespace cellar::client
