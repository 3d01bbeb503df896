// LogStream: the records of a log behind a position, read from its files while it goes on being
// written. It is what a follower that was away is served from, until it has come near enough to the
// end for what is in memory.
//
// Any thread may use one, one at a time; the files that it holds open may be removed meanwhile.
//
// What it gives is in wire form: whole records of log_format.h, version 2, one behind the other,
// entries only. Their hashes and claims are of this copy of the log and mean nothing to another;
// lsn, commit time, kind and payload are the same everywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/log/segment_window.h"

namespace cellar {

// Names a record in every copy of the log. `identity` is IdentityOf(record), or 0 where that is not
// known any more, after a snapshot: then the commit time, which is as good as unique, has to do.
struct RecordName {
  Lsn lsn;
  int64_t commit_micros{0};
  uint64_t identity{0};
};

// What a reader in wire form takes next: 0 at the end of `bytes`, else the size of the record at
// its front, with *record filled. Nullopt if no whole, sound record stands there.
std::optional<size_t> NextWireRecord(std::string_view bytes, LogRecord* record);

class LogStream {
 public:
  enum class Found : uint8_t {
    kYes,
    kNotRetained,  // the log does not reach back so far, or not in a version that can be sent
    kDiverged,     // it does, and has another record in that place
  };
  struct Opened {
    Found found{Found::kNotRetained};
    std::unique_ptr<LogStream> stream;  // iff kYes: the next record is the one behind
  };

  // Fills in the identity of the record that `name` numbers, the last one of the log, if its files
  // hold it; leaves it 0 otherwise. Reads one segment.
  static Status IdentifyLast(FileSystem& files, const std::string& directory,
                             const Manifest& manifest, RecordName* name);

  // Finds `after` in the files that `manifest` names; Lsn{} is before the first record. Reads the
  // segment that holds it: O(segment). An error is one of the file system.
  static Result<Opened> Open(FileSystem& files, const std::string& directory,
                             const Manifest& manifest, const RecordName& after);

  // Appends records up to `last` at most to *out, about `bytes_max` bytes but at least one record
  // if there is one. `manifest` may have grown since. Nothing added: there are no more yet.
  Status Read(const Manifest& manifest, Lsn last, size_t bytes_max, std::string* out);

  // The last record given out, or where it was opened.
  Lsn position() const { return given_; }

 private:
  LogStream(FileSystem& files, std::string directory)
      : window_(files, std::move(directory), kReadBytes) {}

  static constexpr size_t kReadBytes{1 << 20};

  Status OpenSegment(const SegmentEntry& entry);
  // The record at position_, if it is there and counts; moves position_ behind it.
  Result<bool> Next(Lsn last, LogRecord* record);
  // Where it goes on behind that. False: nowhere yet.
  Result<bool> OpenNext(const Manifest& manifest);

  SegmentWindow window_;
  LogPosition position_;      // in its segment
  uint64_t end_{UINT64_MAX};  // of that; an open one has none
  Lsn given_;
};

}  // namespace cellar
