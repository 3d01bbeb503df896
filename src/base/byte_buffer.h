// ByteBuffer: bytes that grow at their end without being cleared first, as std::string would.
//
// Two ways to write: Grow(n) when the size is known, Reserve(n) and CommitTo(end) when only a bound
// of it is. Clear() keeps the memory, so that a buffer used for one record after the other
// allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/assert.h"

namespace cellar {

class ByteBuffer {
 public:
  // One that holds these bytes and has room for no more.
  static ByteBuffer CopyOf(std::string_view bytes) {
    ByteBuffer copy;
    copy.bytes_ = std::make_unique_for_overwrite<char[]>(bytes.size());
    copy.capacity_ = bytes.size();
    copy.Append(bytes);
    return copy;
  }
  // Room for `size` more bytes, which count at once; their content is anything.
  char* Grow(size_t size) {
    char* at = Reserve(size);
    size_ += size;
    return at;
  }
  // Room for `size` more bytes, which do not count before CommitTo.
  char* Reserve(size_t size) {
    if (capacity_ - size_ < size) [[unlikely]]
      Enlarge(size);
    return bytes_.get() + size_;
  }
  // `end` is where the writer stopped, inside what Reserve gave.
  void CommitTo(const char* end) {
    size_ = static_cast<size_t>(end - bytes_.get());
    CELLAR_ASSERT(size_ <= capacity_);
  }
  void Append(std::string_view bytes) {
    std::memcpy(Grow(bytes.size()), bytes.data(), bytes.size());
  }
  void Clear() { size_ = 0; }
  // Forgets everything from `size` on.
  void Truncate(size_t size) {
    CELLAR_ASSERT(size <= size_);
    size_ = size;
  }

  std::string_view view() const { return {bytes_.get(), size_}; }
  char* data() { return bytes_.get(); }
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

}  // namespace cellar
