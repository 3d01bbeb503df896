// LogBatch: records on their way from the loop to the disk. Each side of the hand-over owns it in
// turn, and its memory goes round, so that a record costs no allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "cellar/lsn.h"

namespace cellar {

// Bytes that grow without being cleared first, as std::string would.
class ByteBuffer {
 public:
  // Room for `size` more bytes, which count at once; their content is anything.
  char* Grow(size_t size) {
    if (capacity_ - size_ < size) Enlarge(size);
    char* at = bytes_.get() + size_;
    size_ += size;
    return at;
  }
  void Append(std::string_view bytes) {
    std::memcpy(Grow(bytes.size()), bytes.data(), bytes.size());
  }
  void Clear() { size_ = 0; }

  std::string_view view() const { return {bytes_.get(), size_}; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }

 private:
  void Enlarge(size_t size) {
    const size_t capacity = std::max({size_ + size, capacity_ * 2, size_t{16 * 1024}});
    auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(bytes.get(), bytes_.get(), size_);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  size_t size_{0};
  size_t capacity_{0};
};

struct LogBatch {
  ByteBuffer bytes;  // whole records, see log_format.h
  Lsn last;          // of the last record
  uint64_t last_hash{0};
  // Position behind the batch in the stream of all record bytes since the journal was opened.
  uint64_t stream_end{0};
  int64_t submitted_micros{0};
  bool begins_segment{false};  // a snapshot was taken just before it
};

}  // namespace cellar
