// SegmentWindow: how a segment of the log is read, record by record, while it may go on being
// written: a stretch of the file in memory, read ahead.
//
//   file      header | record | record | record | 0 0 0 0 ...   space that was set aside for more
//   window             [ . . . . . . . . . . . . . . . . ]
//
// What lies behind the last record changes when the next one is written. So where the window holds
// no sound record, the file is asked again before it counts as the end.
//
// One thread at a time; the file may be removed while it is open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/os/file.h"
#include "cellar/status.h"
#include "store/format/log_format.h"

namespace cellar {

class SegmentWindow {
 public:
  // Reads `read_ahead_bytes` at a time, more only for a record that is larger.
  SegmentWindow(FileSystem& files, std::string directory, size_t read_ahead_bytes)
      : files_(files), directory_(std::move(directory)), read_ahead_bytes_(read_ahead_bytes) {}

  // Does nothing if that segment is open. After an error none is.
  Status Open(uint64_t number);
  uint64_t number() const { return number_; }  // 0: none is open
  Result<SegmentHeader> ReadHeader() const;
  // How long the record at `offset` says to be; 0: none of a possible size stands there.
  Result<size_t> BytesAt(uint64_t offset);

  // Hands the bytes of the record at `offset` to `decode`, from its header to its end, or all that
  // there are of it, and what is in the file now if it does not take (return true for) those that
  // are in the window. False: it took neither, or no record of a possible size stands there. The
  // bytes are as they are until the next call.
  template <typename Decode>
  Result<bool> Read(uint64_t offset, const Decode& decode) {
    for (const bool afresh : {false, true}) {
      ASSIGN_OR_RETURN(const std::string_view record, RecordAt(offset, afresh));
      if (!record.empty() && decode(record)) return true;
    }
    return false;
  }

  size_t memory_bytes() const { return window_.capacity(); }

 private:
  Result<std::string_view> RecordAt(uint64_t offset, bool afresh);
  // Has the window hold `bytes` from `offset` on, or all that there are; anew if `afresh`.
  Status Fill(uint64_t offset, size_t bytes, bool afresh);

  FileSystem& files_;
  const std::string directory_;
  const size_t read_ahead_bytes_;
  uint64_t number_{0};
  std::unique_ptr<ReadableFile> file_;
  std::string window_;
  uint64_t window_offset_{0};
};

}  // namespace cellar
