// The bytes to import, from a file or standard input, as one growing window over them.
//
//   |<- consumed: offset() ->|<- View(): not yet consumed ->|<- not yet read ->|
//
// A reader looks at View(), asks Fill() for more while its record is not complete, and calls
// Consume() when it is. Nothing is mapped, so that pipes and files behave alike. Owns the
// descriptor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar::importer {

class Input {
 public:
  // "-" is standard input. An error names the path.
  static Result<Input> Open(const std::string& path);
  // For tests: all the bytes at once, or `chunk_bytes` at each Fill().
  static Input FromText(std::string text, size_t chunk_bytes);

  Input(Input&& other) noexcept;
  Input& operator=(Input&& other) = delete;
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input();

  std::string_view View() const { return std::string_view(buffer_).substr(begin_); }
  // Reads more bytes; at least as many as the window holds, so that a long record costs O(n). False
  // at the end of the input. Views of before are invalid.
  Result<bool> Fill();
  // REQUIRES: bytes <= View().size().
  void Consume(size_t bytes);
  // Goes forward to `offset`: by seeking in a file, by reading past the bytes of a pipe. An error
  // if the input is shorter.
  Status SkipTo(uint64_t offset);

  // An error if what View() begins with is compressed, or an archive: it says what to do. Only text
  // can be imported. REQUIRES: nothing has been consumed.
  Status CheckIsText() const;

  // Bytes consumed since the beginning of the input.
  uint64_t offset() const { return offset_; }
  // Size of a regular file; 0 if unknown.
  uint64_t bytes_total() const { return bytes_total_; }

 private:
  Input() = default;

  int descriptor_{-1};
  std::string path_;
  std::string buffer_;
  size_t begin_{0};
  uint64_t offset_{0};
  uint64_t bytes_total_{0};
  bool at_end_{false};
  std::string text_;  // FromText only: what Fill() has not handed out
  size_t chunk_bytes_{0};
};

}  // namespace cellar::importer
