// TailWriter: where the loop itself writes records, under the policies that acknowledge a record
// before it is synced.
//
//   segment   | synced | written, not synced     | next record ...
//             sync thread: fdatasync, room ahead ^ loop: Write, in the turn that made the records
//
// A reply may leave once the kernel has the record: it then survives the end of this process,
// whatever ends it. The loop would have to wake the sync thread and be woken by it for each turn;
// a write of its own costs a turn less (1 us for a few records, 10 us for 64 KiB).
//
// Two files while the log moves to another segment: which of them is read after a crash depends on
// the manifest that is found, so that both get what is acknowledged meanwhile.
//
//   old    ... a b c d e          the manifest on disk names it as open
//   fresh        | c d e          the manifest being installed: the old one ends behind b
//
// Writes may have to wait: for the file system's journal, for others who fill the page cache faster
// than the disk takes it. After one that took `slow_micros` the tail stays closed for
// kSlowPauseMicros: the sync thread writes, and replies wait for it rather than the loop.
//
// The sync thread opens and closes it, the loop writes; every call under the LogWriter's mutex. As
// long as it is open the sync thread writes nothing behind the segment's end.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/os/file.h"
#include "cellar/clock.h"
#include "cellar/status.h"

namespace cellar {

class TailWriter {
 public:
  TailWriter(Clock& clock, int64_t slow_micros) : clock_(clock), slow_micros_(slow_micros) {}

  // Not soon after a write that was slow.
  bool MayOpen() const { return clock_.MonotonicMicros() >= closed_until_micros_; }
  // Writes go to `file`, which outlives that, from `offset` on.
  void Open(WritableFile* file, uint64_t offset);
  bool is_open() const { return main_.file != nullptr; }
  // Whoever wants to write behind the end, or to close the file, closes the tail first.
  void Close();

  // The same bytes go to another file too. REQUIRES: is_open().
  void OpenMirror(WritableFile* file, uint64_t offset);
  void CloseMirror() { mirror_ = {}; }
  // From now on to that one alone, if there is one.
  void MoveToMirror();

  // True if the kernel has `bytes` behind what was written before. After an error the tail is
  // closed, and the segment to be given up.
  bool Write(std::string_view bytes);
  bool has_error() const { return !error_.ok(); }
  // Of the last Write that failed, once.
  Status TakeError();

 private:
  struct Place {
    WritableFile* file{nullptr};
    uint64_t offset{0};
  };
  static Status WriteTo(Place* place, std::string_view bytes);

  Clock& clock_;
  const int64_t slow_micros_;
  Place main_;
  Place mirror_;
  Status error_;
  int64_t closed_until_micros_{0};
};

// More at once is the sync thread's: the loop would be gone for too long.
inline constexpr size_t kTailWriteBytesMax{256 * 1024};
inline constexpr int64_t kSlowPauseMicros{1'000'000};

}  // namespace cellar
