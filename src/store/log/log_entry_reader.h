// LogEntryReader: records of a replica set's log that are no longer in memory, read from its files.
//
// Where records void others (log_format.h) the files hold more than what is in force. Which record
// is, its number says: in a set (epoch, seq) names one record, wherever it stands. Those in force
// stand in order, so that looking for one after the other finds them all.
//
// One thread at a time; the files that are read may be removed meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/log/segment_window.h"

namespace cellar {

class LogEntryReader {
 public:
  LogEntryReader(FileSystem& files, std::string directory)
      : window_(files, std::move(directory), kReadBytes) {}

  // Appends records from seq `first` on to *out, in wire form (log_stream.h): about `bytes_max`
  // bytes, at least one if it is there. `epochs` are those of the records `first`, `first + 1` ...
  // which are in force. Returns how many were added: 0 if the files do not hold the first one (any
  // more, or not yet). An error is one of the file system.
  Result<size_t> Read(const Manifest& manifest, uint64_t first, const std::vector<uint32_t>& epochs,
                      size_t bytes_max, std::string* out);

 private:
  static constexpr size_t kReadBytes{1 << 20};

  Status Open(const SegmentEntry& entry);
  // Moves to the segment behind the open one; false if there is none.
  Result<bool> OpenNext(const Manifest& manifest);
  // The record at position_, if it is there; moves behind it.
  Result<bool> Next(LogRecord* record);
  Result<size_t> ReadOn(const Manifest& manifest, uint64_t first,
                        const std::vector<uint32_t>& epochs, size_t bytes_max, std::string* out);

  SegmentWindow window_;
  uint64_t end_{0};       // where its segment ends, by the manifest; 0: it is open
  LogPosition position_;  // in its segment
  Lsn behind_;            // the last one given out: the next one stands behind position_
};

}  // namespace cellar
