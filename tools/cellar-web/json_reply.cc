// See json_reply.h.
#include "cellar-web/json_reply.h"

#include <cstdint>
#include <string_view>

#include "client/json_text.h"

namespace cellar::web {
namespace {

constexpr int64_t kExactMax{int64_t{1} << 53};
// Longer than any key; and what a page shows of a value that is longer.
constexpr size_t kTextBytesMax{128 << 10};
constexpr size_t kBeginBytes{16 << 10};

// The first bytes of a text, no character cut in two.
std::string_view BeginOf(std::string_view text) {
  constexpr size_t kCharacterBytesMax{4};
  size_t end = kBeginBytes;
  while (end > kBeginBytes - kCharacterBytesMax && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

void AppendText(std::string_view text, std::string* out) {
  if (text.size() <= kTextBytesMax) return client::AppendJsonText(text, out);
  out->append(R"({"bytes":)" + std::to_string(text.size()) + R"(,"begin":)");
  client::AppendJsonText(BeginOf(text), out);
  out->push_back('}');
}

void AppendInteger(int64_t value, std::string* out) {
  const std::string digits = std::to_string(value);
  const bool exact = value >= -kExactMax && value <= kExactMax;
  out->append(exact ? digits : R"({"int":")" + digits + "\"}");
}

void AppendArray(const redisReply& reply, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < reply.elements; ++i) {
    if (i > 0) out->push_back(',');
    AppendJson(*reply.element[i], out);
  }
  out->push_back(']');
}

}  // namespace

void AppendJson(const redisReply& reply, std::string* out) {
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      out->append("null");
      return;
    case REDIS_REPLY_INTEGER:
      return AppendInteger(reply.integer, out);
    case REDIS_REPLY_ARRAY:
      return AppendArray(reply, out);
    default:
      break;
  }
  AppendText({reply.str, reply.len}, out);
}

}  // namespace cellar::web
