// A server's reply as JSON: texts as strings, or {"b64": ...} if they are not UTF-8; integers
// beyond 2^53 as {"int": "..."}, since JavaScript has no others. Maps are arrays, as in RESP2.
#pragma once

#include <hiredis/hiredis.h>

#include <string>

namespace cellar::web {

void AppendJson(const redisReply& reply, std::string* out);

}  // namespace cellar::web
