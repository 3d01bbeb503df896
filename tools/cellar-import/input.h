// The bytes to import, from a file or standard input, as one growing window over them. What gzip or
// zstd has packed is unpacked on the way in, so that bytes and offsets are those of the text.
//
//   |<- consumed: offset() ->|<- View(): not yet consumed ->|<- not yet read ->|
//
// A reader looks at View(), asks Fill() for more while its record is not complete, and calls
// Consume() when it is. Nothing is mapped, so that pipes and files behave alike. Owns the
// descriptor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cellar-import/decompressor.h"
#include "cellar/status.h"

namespace cellar::importer {

class Input {
 public:
  // What a record may have: a value of 16 MiB (the server's limit) in JSON's longest spelling, and
  // room beside it. A longer one most likely is a quote that is never closed.
  static constexpr size_t kRecordBytesMax{128 << 20};

  // "-" is standard input. An error names the path.
  static Result<Input> Open(const std::string& path);
  // For tests: all the bytes at once, or `chunk_bytes` at each Fill().
  static Input FromText(std::string text, size_t chunk_bytes);
  // For tests: the same, unpacked if they are packed.
  static Result<Input> FromPacked(std::string bytes, size_t chunk_bytes);

  Input(Input&& other) noexcept;
  Input& operator=(Input&& other) = delete;
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input();

  std::string_view View() const { return std::string_view(buffer_).substr(begin_); }
  // Reads more bytes; at least as many as the window holds, so that a long record costs O(n). False
  // at the end of the input. Views of before are invalid. TOOLARGE if the window holds more than
  // kRecordBytesMax; ERR if what is packed is damaged or cut.
  Result<bool> Fill();
  // REQUIRES: bytes <= View().size().
  void Consume(size_t bytes);
  // Goes forward to `offset`: by seeking in a file, by reading past the bytes of a pipe. An error
  // if the input is shorter.
  Status SkipTo(uint64_t offset);

  // An error if what View() begins with is packed in a way that is not read here: it says what to
  // do. REQUIRES: nothing has been consumed.
  Status CheckIsText() const;

  // Bytes consumed since the beginning of the input.
  uint64_t offset() const { return offset_; }
  // Of the input; 0 if unknown, as of what is packed.
  uint64_t bytes_total() const { return bytes_total_; }

 private:
  Input() = default;
  // Finds out how it is packed.
  Status Begin();
  // Appends bytes as they stand in the file; false at its end.
  Result<bool> ReadRaw(size_t bytes_max, std::string* out);
  // Appends what they say.
  Result<bool> Unpack(size_t bytes_max, std::string* out);

  int descriptor_{-1};
  std::string path_;
  std::string buffer_;
  size_t begin_{0};
  uint64_t offset_{0};
  uint64_t bytes_total_{0};
  bool at_end_{false};
  std::unique_ptr<Decompressor> decompressor_;  // of what is packed
  std::string packed_;
  size_t packed_at_{0};
  std::string text_;  // FromText only: what Fill() has not handed out
  size_t chunk_bytes_{0};
};

}  // namespace cellar::importer
