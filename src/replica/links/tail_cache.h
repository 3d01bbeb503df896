// TailCache: the newest records of the log in memory, for followers that keep up: they are sent
// what has just been written, without a look at a file.
//
//   chunk                 chunk                 chunk being filled
//   | record | record |   | record |            | record | record | ....
//   ^ begin()                                                     ^ end()
//
// Records stand there as in the log (log_format.h), claims too; chunks of some 256 KiB go when the
// newer ones hold `bytes_max`. One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/lsn.h"
#include "store/journal/journal.h"

namespace cellar {

class TailCache final : public RecordSink {
 public:
  explicit TailCache(size_t bytes_max) : bytes_max_(bytes_max) {}

  void SetBytesMax(size_t bytes_max);
  // Forgets everything; the next record will be the one behind `last`.
  void Restart(Lsn last);
  // Of a replica set's member: records may void others (store/format/log_format.h), which go.
  void SetVoids(bool voids) { voids_ = voids; }
  void OnRecords(std::string_view records, Lsn last) override;

  // All records behind begin() up to end() are here.
  Lsn begin() const { return begin_; }
  Lsn end() const { return end_; }
  size_t memory_bytes() const { return bytes_; }

  struct Piece {
    std::string_view records;  // whole ones; good until the cache changes
    Lsn last;
  };
  // Records behind `after`, `bytes_max` bytes at most, or one that is longer; empty at the end.
  // Nullopt if the cache does not reach back so far, or no record is numbered so.
  std::optional<Piece> Behind(Lsn after, size_t bytes_max) const;

 private:
  // A little less than a size that allocators have.
  static constexpr size_t kChunkBytes{(256 << 10) - 64};
  struct Chunk {
    std::string bytes;
    Lsn after;
    Lsn last;
  };

  void Add(std::string_view records, Lsn last);
  // Drops all records from that seq on.
  void VoidFrom(uint64_t seq);

  size_t bytes_max_;
  bool voids_{false};
  size_t bytes_{0};
  Lsn begin_;
  Lsn end_;
  std::deque<Chunk> chunks_;
};

}  // namespace cellar
