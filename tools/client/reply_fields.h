// What a reply of hiredis holds, whatever its kind: texts, lists, the fields of a map. Maps are
// arrays here: key, value, key, value ... as in RESP2.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar::client {

// Empty of what is no text.
inline std::string_view TextOf(const redisReply& reply) {
  const bool text = reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS;
  return text ? std::string_view(reply.str, reply.len) : std::string_view();
}

inline bool IsList(const redisReply& reply) { return reply.type == REDIS_REPLY_ARRAY; }

// Null if the map has none of this name, or `map` is none.
inline const redisReply* FieldOf(const redisReply& map, std::string_view name) {
  for (size_t i = 0; IsList(map) && i + 1 < map.elements; i += 2) {
    if (TextOf(*map.element[i]) == name) return map.element[i + 1];
  }
  return nullptr;
}

// Of a field that is a text, and of one that is a number; empty, and 0, if it is not there.
inline std::string TextField(const redisReply& map, std::string_view name) {
  const redisReply* const field = FieldOf(map, name);
  return field == nullptr ? std::string() : std::string(TextOf(*field));
}
inline int64_t NumberField(const redisReply& map, std::string_view name) {
  const redisReply* const field = FieldOf(map, name);
  return field == nullptr || field->type != REDIS_REPLY_INTEGER ? 0 : field->integer;
}

}  // namespace cellar::client
