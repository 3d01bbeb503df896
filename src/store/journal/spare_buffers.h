// SpareBuffers: memory of batches that are durable, for those to come.
//
//   a batch -> Retire -> Keep -> Take -> another batch
//                            \-> Discard: freed, while nobody waits for the lock
//
// As many bytes of buffers as one sync has freed will be filled before the next one. Fresh memory
// for each would cost more than what is written into it, since the kernel clears it first. But what
// a burst needed is not kept for ever.
//
// Threads: Retire and Discard are the sync thread's; all else is called under the LogWriter's
// mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/byte_buffer.h"

namespace cellar {

class SpareBuffers {
 public:
  // `kept_micros`: how long after the last sync spare buffers are kept, and how long after the last
  // need of so many they begin to get fewer.
  explicit SpareBuffers(int64_t kept_micros) : kept_micros_(kept_micros) {}

  // An empty buffer, which has memory if one was kept.
  ByteBuffer Take();
  // The buffer is no longer needed; its content goes.
  void Retire(ByteBuffer buffer);
  bool has_retired() const { return !retired_.empty(); }
  // What was retired is for Take again, or, beyond what will be needed, to be freed by Discard.
  // `is_over`: nothing has been written for kept_micros.
  void Keep(int64_t now_micros, bool is_over);
  void Discard() { discarded_.clear(); }
  bool has_discarded() const { return !discarded_.empty(); }
  // More is kept than a log that is idle needs.
  bool has_surplus() const;
  int64_t kept_micros() const { return kept_micros_; }
  size_t bytes() const { return bytes_; }

 private:
  const int64_t kept_micros_;
  std::vector<ByteBuffer> spare_;  // empty; the last one is taken
  size_t bytes_{0};                // their capacity
  size_t bytes_max_{0};            // what was kept at most after the last sync
  int64_t needed_micros_{0};       // when half of that at least was needed last
  std::vector<ByteBuffer> retired_;
  std::vector<ByteBuffer> discarded_;
};

}  // namespace cellar
