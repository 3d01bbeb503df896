// BufferPool: memory of outputs that were sent, for the next ones of the same thread. A connection
// at rest keeps none.
#pragma once

#include <cstddef>
#include <vector>

#include "resp/output_buffer.h"

namespace cellar {

class BufferPool {
 public:
  // Gives `buffer` memory if there is some. REQUIRES: it has none.
  void Provide(OutputBuffer* buffer) {
    if (spare_.empty()) return;
    buffer->Swap(spare_.back());
    spare_.pop_back();
  }
  // Takes the memory of `buffer`, whose content is no longer needed; large ones are freed.
  void Recycle(OutputBuffer* buffer) {
    if (buffer->capacity() == 0) return;
    if (buffer->capacity() > kBytesMax || spare_.size() >= kBuffersMax) return buffer->Free();
    buffer->Clear();
    spare_.emplace_back();
    spare_.back().Swap(*buffer);
  }

 private:
  static constexpr size_t kBytesMax{64 * 1024};
  static constexpr size_t kBuffersMax{64};

  std::vector<OutputBuffer> spare_;
};

}  // namespace cellar
