// Where an export's bytes go: a file or the standard output, as they are or as zstd frames.
//
// Bytes are collected and written in pieces. Mark() ends what was written so far so that a file cut
// to its length there is whole, and another run can go on behind it: with zstd it ends the frame.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar::exporter {

class Output {
 public:
  // "-" is the standard output. A file is cut to `bytes_kept`, and written behind them; one that is
  // shorter is an error.
  static Result<std::unique_ptr<Output>> Open(const std::string& path, bool compress,
                                              uint64_t bytes_kept);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Collects; the memory it is collected in, for writers to append to.
  std::string* buffer() { return &buffer_; }
  // To be called now and then: writes if there is much.
  Status WriteIfMuch() { return buffer_.size() < kPieceBytes ? Status::Ok() : Write(); }
  // Everything is written; *bytes := the length of the file.
  Status Mark(uint64_t* bytes);
  // Mark(), and the disk has it.
  Status Keep(uint64_t* bytes);
  // The same at the end: of nothing at all too.
  Status Finish(uint64_t* bytes);

 private:
  static constexpr size_t kPieceBytes{256 << 10};
  struct ContextDeleter {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  Output() = default;
  Status Write();
  Status Compress(ZSTD_EndDirective end);
  Status WriteAll(std::string_view bytes);

  std::string path_;
  int descriptor_{-1};
  bool is_file_{false};
  uint64_t bytes_{0};
  std::string buffer_;
  std::unique_ptr<ZSTD_CCtx, ContextDeleter> context_;
  bool in_frame_{false};
  std::string compressed_;
};

}  // namespace cellar::exporter
