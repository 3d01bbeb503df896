// A server's reply as JSON, item by item as it comes: texts as strings, or {"b64": ...} if they are
// not UTF-8; integers beyond 2^53 as {"int": "..."}, since JavaScript has no others; of a text
// longer than any key {"bytes": its length, "begin": its first part}. Maps are arrays, as in RESP2.
//
// No more than one item is held, and an answer has kAnswerBytesMax at most: what is larger is no
// page's, and its connection is of no more use.
#pragma once

#include <cstdint>
#include <string>

#include "cellar/status.h"
#include "client/reply_stream.h"

namespace cellar::web {

inline constexpr size_t kAnswerBytesMax{1 << 20};

struct JsonReply {
  Status status;         // kErr: the server's error; kTooLarge; kIo: the connection is lost
  bool is_whole{false};  // all of the reply has been read, so that the connection is of more use
};
// Appends one reply.
JsonReply AppendJson(client::ReplyStream* stream, std::string* out);

// Of a reply to CGET WITHTS {"ts": ..., "bytes": length of the value, "part": the piece of it from
// `offset` on}, or null.
JsonReply AppendPiece(client::ReplyStream* stream, uint64_t offset, std::string* out);

}  // namespace cellar::web
