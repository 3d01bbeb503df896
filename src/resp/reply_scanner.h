// ReplyScanner: finds the end of a reply in RESP2 or RESP3, which may come in pieces, without
// keeping it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

class ReplyScanner {
 public:
  // How many of the bytes belong to the reply, whose end may come with more. 0 behind done() and
  // failed(). O(bytes that are no payload).
  size_t Take(std::string_view bytes);
  bool done() const { return values_left_ == 0; }
  // It is no reply.
  bool failed() const { return failed_; }
  // The next reply begins.
  void Begin() {
    values_left_ = 1;
    failed_ = false;
  }

 private:
  static constexpr size_t kHeaderBytesMax{32};  // of a header with a count
  void TakeLine(std::string_view line);

  uint64_t values_left_{1};
  uint64_t payload_left_{0};  // with the end of its line
  std::string line_;          // the beginning of one
  bool failed_{false};
};

}  // namespace cellar
