// ReplyReader: takes a reply apart that another node has made, value by value. Replies stay as they
// are: what is put together of several is put together of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/status.h"
#include "commands/session/remote_calls.h"
#include "engine/feeds/feed.h"

namespace cellar {

class ReplyReader {
 public:
  explicit ReplyReader(std::string_view bytes) : bytes_(bytes) {}

  // Each takes one value from the front. False: there is none, or another one; then the reader is
  // good for nothing.
  bool Array(uint64_t* elements) { return Header('*', elements); }
  bool Map(uint64_t* pairs);  // of either version of RESP
  bool Bulk(std::string_view* text);
  bool Unsigned(uint64_t* number);  // as ReplyWriter::Unsigned has it
  bool Skip();                      // any value, whole

  size_t position() const { return at_; }
  bool done() const { return at_ == bytes_.size(); }

 private:
  // The line at the front without its end, behind its first byte.
  bool Line(char* type, std::string_view* rest);
  bool Header(char type, uint64_t* count);

  std::string_view bytes_;
  size_t at_{0};
};

// A reply that is a map with texts for its names: what it has, in its order; views of `reply`, the
// values as they are. False: it is none.
using ReplyFields = std::vector<std::pair<std::string_view, std::string_view>>;
[[nodiscard]] bool ReadReplyFields(std::string_view reply, ReplyFields* fields);
// The value of that name; empty: there is none.
std::string_view ValueOf(const ReplyFields& fields, std::string_view name);

// The line of an error, without what frames it; empty if the reply is none.
std::string_view ErrorLineOf(std::string_view reply);
// An id as a set has it of its own. False: `text` is none.
[[nodiscard]] bool ReadOwnId(std::string_view text, FeedId* id);

// A node has answered what it cannot have been asked.
inline constexpr std::string_view kSomethingElse{"ERR another node has answered something else"};
Status SomethingElse();
// Of an answer that is no reply but an error, or none at all: the line of it.
std::string FailureOf(const RemoteCalls::Answer& answer);
// The line of an error as a status; of a word that is none of ours it becomes an ERR.
Status StatusOfLine(std::string_view line);

}  // namespace cellar
