// OutputBuffer: bytes on their way to a client, in one growing piece of memory.
//
//   data |<- sent ->|<------ waiting ------>|<- free ->|
//
// Writers reserve room and commit what they wrote; a reply whose length is known only at its end
// inserts its header in front of its body (one move of the body, none when the header was guessed
// right, see ReplyWriter). An empty buffer owns no memory, so an idle connection pays nothing; the
// server hands memory of flushed buffers on to the next writer (Swap).
//
// It does not know sockets nor the protocol. Memory that cannot be had ends the process (rule 9).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/buffer_memory.h"
#include "base/copy_bytes.h"

namespace cellar {

class OutputBuffer {
 public:
  OutputBuffer() = default;
  OutputBuffer(OutputBuffer&& other) noexcept { Swap(other); }
  OutputBuffer& operator=(OutputBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer() { FreeBuffer(data_, capacity_); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }
  const char* data() const { return data_; }
  std::string_view view() const { return {data_, size_}; }

  // Room for `bytes` more at the end; valid until the next call of a non-const member.
  char* Reserve(size_t bytes) {
    if (capacity_ - size_ < bytes) [[unlikely]]
      Grow(bytes);
    return data_ + size_;
  }
  // Memory for `capacity` bytes in all, about: for who knows how much will come.
  void GrowTo(size_t capacity) {
    if (capacity > capacity_) Reallocate(capacity);
  }
  // `end` is where the writer stopped, inside what Reserve gave: not before size().
  void CommitTo(const char* end) {
    CELLAR_DEBUG_ASSERT(end >= data_ + size_);
    size_ = static_cast<size_t>(end - data_);
    CELLAR_ASSERT(size_ <= capacity_);
  }
  void Append(std::string_view bytes) {
    char* to = Reserve(bytes.size());
    CopyBytes(to, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // Puts `bytes` before the byte at `position`. O(size - position).
  void Insert(size_t position, std::string_view bytes) {
    CELLAR_ASSERT(position <= size_);
    if (bytes.empty()) return;
    (void)Reserve(bytes.size());
    std::memmove(data_ + position + bytes.size(), data_ + position, size_ - position);
    std::memcpy(data_ + position, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // Replaces `old_bytes` bytes at `position`. O(1) if the sizes are equal, else O(size - position).
  void Replace(size_t position, size_t old_bytes, std::string_view bytes) {
    CELLAR_ASSERT(position + old_bytes <= size_);
    if (bytes.size() != old_bytes) {
      if (bytes.size() > old_bytes) (void)Reserve(bytes.size() - old_bytes);
      std::memmove(data_ + position + bytes.size(), data_ + position + old_bytes,
                   size_ - position - old_bytes);
      size_ = size_ - old_bytes + bytes.size();
    }
    if (!bytes.empty()) std::memcpy(data_ + position, bytes.data(), bytes.size());
  }
  // Forgets everything from `size` on: a reply that turned into an error takes back what it wrote.
  void Truncate(size_t size) {
    CELLAR_ASSERT(size <= size_);
    size_ = size;
  }
  void Clear() { size_ = 0; }
  void Free() {
    FreeBuffer(data_, capacity_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  void Swap(OutputBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  static constexpr size_t kFirstBytes{1024};

  [[gnu::noinline]] void Grow(size_t bytes) {
    size_t capacity = capacity_ < kFirstBytes ? kFirstBytes : capacity_;
    // What is mapped grows without being moved, so it need not grow far ahead.
    while (capacity - size_ < bytes) capacity += capacity < kMappedBytes ? capacity : capacity / 4;
    Reallocate(capacity);
  }
  void Reallocate(size_t capacity) { data_ = GrowBuffer(data_, &capacity_, capacity); }

  char* data_{nullptr};
  size_t size_{0};
  size_t capacity_{0};
};

}  // namespace cellar
