// ReplyReader: takes a reply apart that another node has made, value by value. Replies stay as they
// are: what is put together of several is put together of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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

// The line of an error, without what frames it; empty if the reply is none.
std::string_view ErrorLineOf(std::string_view reply);

}  // namespace cellar
