// See json_reply.h.
#include "cellar-web/json_reply.h"

#include <cstdint>
#include <string_view>

#include "client/json_text.h"

namespace cellar::web {
namespace {

constexpr int64_t kExactMax{int64_t{1} << 53};

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
  client::AppendJsonText({reply.str, reply.len}, out);
}

}  // namespace cellar::web
