// KeyBuffer: a key that is put together from its parts, again and again.
//
// What std::string does, for the paths that every command takes: short keys live in the buffer
// itself, appending is inlined, and nothing is terminated or cleared. Memory taken for a long key
// stays for the next one. Not copied, not moved: it is a member of whoever works with keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/assert.h"
#include "base/copy_bytes.h"
#include "base/inline.h"

namespace cellar {

class KeyBuffer {
 public:
  KeyBuffer() = default;
  KeyBuffer(const KeyBuffer&) = delete;
  KeyBuffer& operator=(const KeyBuffer&) = delete;

  std::string_view view() const { return {bytes_, size_}; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void Clear() { size_ = 0; }
  // Forgets everything from `size` on.
  void Truncate(size_t size) {
    CELLAR_ASSERT(size <= size_);
    size_ = size;
  }
  // `bytes` may not lie in this buffer, here and in Append.
  CELLAR_INLINE void Assign(std::string_view bytes) {
    size_ = 0;
    Append(bytes);
  }
  CELLAR_INLINE void Append(std::string_view bytes) {
    char* to = Reserve(bytes.size());
    CopyBytes(to, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void PushBack(char byte) {
    *Reserve(1) = byte;
    ++size_;
  }
  // The end of the keys that begin with this one takes its place; an empty buffer stands for no
  // bound.
  void ToSuccessor() {
    while (size_ > 0 && bytes_[size_ - 1] == '\xff') --size_;
    if (size_ > 0) ++bytes_[size_ - 1];
  }
  // Room for `size` more bytes, which do not count before Commit.
  CELLAR_INLINE char* Reserve(size_t size) {
    if (capacity_ - size_ < size) [[unlikely]]
      Enlarge(size);
    return bytes_ + size_;
  }
  // The first `size` of the bytes given by Reserve have been written.
  void Commit(size_t size) {
    size_ += size;
    CELLAR_ASSERT(size_ <= capacity_);
  }
  // All bytes before `end`, in the room given by Reserve, have been written.
  void CommitTo(const char* end) {
    CELLAR_DEBUG_ASSERT(end >= bytes_ + size_);
    size_ = static_cast<size_t>(end - bytes_);
    CELLAR_ASSERT(size_ <= capacity_);
  }

 private:
  static constexpr size_t kShortBytes{128};

  void Enlarge(size_t size) {
    const size_t capacity = std::max(size_ + size, capacity_ * 2);
    auto longer = std::make_unique_for_overwrite<char[]>(capacity);
    std::memcpy(longer.get(), bytes_, size_);
    long_ = std::move(longer);
    bytes_ = long_.get();
    capacity_ = capacity;
  }

  char* bytes_{short_};
  size_t size_{0};
  size_t capacity_{kShortBytes};
  std::unique_ptr<char[]> long_;
  char short_[kShortBytes];
};

}  // namespace cellar
