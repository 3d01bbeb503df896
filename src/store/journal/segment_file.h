// SegmentFile: the one log segment that is being written (format: log_format.h). Owned by one
// thread; another may write at its end (tail_writer.h), which it is told of afterwards.
//
//   0        64               durable_offset    end_offset       zeroed_offset    allocated_offset
//   | header | synced records | written records | written zeros  | reserved zeros |
//
// Room that is only reserved reads as zeros, but the file system has yet to note that something was
// written there: the sync of a record in it writes metadata too, which costs as much again. In room
// that holds zeros already a sync is the record and nothing else. The file's content is the same.
//
// What is durable may leave the page cache (DropDurable): the server does not read it before the
// next start. So the log does not push other files out nor count against the service's memory
// limit, and it is written into the same few pages again and again: a page that the kernel takes
// from free memory costs a virtual machine up to 10 us where its host has to back it first.
//
// Not its business: what to do after an error (log_writer.h), which files the store has
// (manifest.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/os/file.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"

namespace cellar {

// How much room to reserve at once: `wanted`, or what half, a quarter ... of it the disk has, but
// not less than `least`. The disk has so much more as `left`, which stays free: without it no
// manifest could be written, by which old log goes and makes room.
struct AllocationSize {
  uint64_t wanted{0};
  uint64_t least{0};
  uint64_t left{0};
};

class SegmentFile {
 public:
  // Makes the file and writes its header; nothing is synced yet. `stream_begin` is the position of
  // its first record in the stream of all record bytes (LogBatch). After an error no file is left
  // behind if that could be done.
  static Result<std::unique_ptr<SegmentFile>> Create(FileSystem& files,
                                                     const std::string& directory,
                                                     const SegmentHeader& header,
                                                     uint64_t stream_begin, AllocationSize size);

  // Opens the store's last segment again to go on behind `end`, which recovery found; what stood
  // behind it is cut off, and what is before it is synced. The stream of record bytes begins there.
  static Result<std::unique_ptr<SegmentFile>> Reopen(FileSystem& files,
                                                     const std::string& directory,
                                                     const SegmentEntry& entry,
                                                     const LogPosition& end);

  // Writes behind the end. After an error the file is to be given up.
  Status Append(std::string_view records, Lsn last);
  // Somebody else has written so many bytes behind the end.
  void NoteAppended(uint64_t bytes, Lsn last);
  // For whoever does that. Dies with Close().
  WritableFile* file() { return file_.get(); }
  // After an error the file is to be given up.
  Status Sync();
  // Up to here it is written and, by somebody else's sync, durable.
  struct End {
    uint64_t offset{0};
    Lsn last;
  };
  void SetDurable(const End& end);
  // Lets what is durable leave the page cache, once that is worth a call (0.2 ms for a mebibyte).
  void DropDurable();
  // Has zeros written where the next `bytes` go, kZeroAheadBytes of them at a time, as far as room
  // is reserved. After an error the file is to be given up.
  Status ZeroAhead(uint64_t bytes);
  // Reserves more behind what is reserved. An error leaves everything as it was.
  Status Allocate(AllocationSize size);
  // Gives the file up; reserved room goes back to the disk if `trim`.
  enum class Trim : uint8_t { kNo, kYes };
  void Close(Trim trim);

  uint64_t number() const { return entry_.number; }
  uint64_t end_offset() const { return end_offset_; }
  uint64_t durable_offset() const { return durable_offset_; }
  uint64_t allocated_offset() const { return allocated_offset_; }
  // Up to where the stream of record bytes has room here.
  uint64_t stream_allocated() const { return stream_begin_ + (allocated_offset_ - begin_offset_); }
  bool has_unsynced() const { return durable_offset_ < end_offset_; }
  End end() const { return {end_offset_, last_}; }

  // As it stands in the manifest: open, or closed behind the last durable record.
  const SegmentEntry& OpenEntry() const { return entry_; }
  SegmentEntry ClosedEntry() const {
    return {.number = entry_.number,
            .after = entry_.after,
            .end = SegmentEntry::End{durable_offset_, durable_last_}};
  }
  bool holds_durable_records() const { return durable_offset_ > kSegmentHeaderBytes; }

 private:
  SegmentFile(std::unique_ptr<WritableFile> file, const SegmentEntry& entry, const LogPosition& end,
              uint64_t stream_begin);

  std::unique_ptr<WritableFile> file_;
  const SegmentEntry entry_;
  // This offset of the file is that position of the stream.
  const uint64_t begin_offset_;
  const uint64_t stream_begin_;
  uint64_t end_offset_;
  uint64_t durable_offset_;
  uint64_t cached_offset_;     // what is before it may have left the page cache
  uint64_t zeroed_offset_{0};  // not before end_offset_ if it counts
  uint64_t allocated_offset_;
  Lsn last_;
  Lsn durable_last_;
};

// Enough for the commits of some milliseconds, and no more than a sync writes in a fraction of one.
inline constexpr uint64_t kZeroAheadBytes{256 * 1024};

}  // namespace cellar
