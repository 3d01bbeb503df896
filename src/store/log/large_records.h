// LargeRecords: records of the log that are too large to be read in one go: each is read in slices
// to memory of its own, and stays there while somebody has a place in it.
//
//   loading   one at a time; whoever asks for any goes on with it
//   pinned    somebody goes on in it: kPinnedBytesMax together, or one of any size
//
// What nobody has pinned makes way for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/os/file.h"
#include "cellar/status.h"
#include "store/format/log_format.h"

namespace cellar {

class LargeRecords {
 public:
  static constexpr size_t kBytesMin{64 << 10};
  static constexpr size_t kSliceBytes{4 << 20};
  static constexpr size_t kPinnedBytesMax{64 << 20};

  LargeRecords(FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  enum class Found : uint8_t {
    kRecord,
    kNone,  // no sound record stands there
    kLater  // ask again: a slice has been read, or there is no room for now
  };
  // The record of `bytes` bytes at `offset` of a segment. Its payload stays where it is until the
  // next call, or as long as it is pinned.
  Result<Found> Get(uint64_t segment, uint64_t offset, size_t bytes, LogRecord* record);
  // True, once, if somebody was told kLater because of what is pinned.
  bool TakeWantsRoom() { return std::exchange(wants_room_, false); }
  // `payload` is that of a record that Get has given.
  void Pin(std::string_view payload);
  void Unpin(std::string_view payload);

  size_t memory_bytes() const;

 private:
  struct Held {
    uint64_t segment{0};
    uint64_t offset{0};
    size_t size{0};
    std::unique_ptr<char[]> bytes;  // not zeroed: a slice touches no more than it reads
    size_t loaded{0};
    std::unique_ptr<ReadableFile> file;  // until it is whole
    LogRecord record;
    uint32_t pins{0};
    uint32_t passed_over{0};  // how often others have asked since it is whole and nobody came
    bool taken{false};
  };

  Held* Find(uint64_t segment, uint64_t offset, size_t bytes);
  void DropUnused();
  // True: it is whole. kCorruption: it is none.
  static Result<bool> Load(Held* held);
  void Drop(const Held* held);

  FileSystem& files_;
  const std::string directory_;
  std::vector<std::unique_ptr<Held>> held_;
  Held* loading_{nullptr};
  bool wants_room_{false};
};

}  // namespace cellar
