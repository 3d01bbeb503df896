// A server's reply as JSON: texts as strings, or {"b64": ...} if they are not UTF-8; integers
// beyond 2^53 as {"int": "..."}, since JavaScript has no others; of a text longer than any key
// {"bytes": its length, "begin": its first part}. Maps are arrays, as in RESP2.
#pragma once

#include <hiredis/hiredis.h>

#include <string>

namespace cellar::web {

void AppendJson(const redisReply& reply, std::string* out);

}  // namespace cellar::web
