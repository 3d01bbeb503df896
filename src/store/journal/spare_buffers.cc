// Which buffers are kept for the next records: see spare_buffers.h.
#include "store/journal/spare_buffers.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// A buffer of more is not kept for the next ones.
constexpr size_t kBufferBytesMax = 4 << 20;
// Less is no use to them.
constexpr size_t kBufferBytesMin = 16 << 10;
// Of all together, once nothing has been written for long.
constexpr size_t kBytesIdle = 512 << 10;

}  // namespace

ByteBuffer SpareBuffers::Take() {
  if (spare_.empty()) return {};
  ByteBuffer buffer = std::move(spare_.back());
  spare_.pop_back();
  CELLAR_ASSERT(bytes_ >= buffer.capacity());
  bytes_ -= buffer.capacity();
  return buffer;
}

void SpareBuffers::Retire(ByteBuffer buffer) {
  if (buffer.capacity() > kBufferBytesMax || buffer.capacity() < kBufferBytesMin) return;
  buffer.Clear();
  retired_.push_back(std::move(buffer));
}

// How much is kept follows how much each sync frees: more at once, less only little by little, as a
// quarter of it at a time goes once less has been needed for a while.
void SpareBuffers::Keep(int64_t now_micros, bool is_over) {
  if (retired_.empty() && !is_over) return;
  size_t retired_bytes = 0;
  for (ByteBuffer& buffer : retired_) {
    retired_bytes += buffer.capacity();
    spare_.push_back(std::move(buffer));
  }
  retired_.clear();
  bytes_ += retired_bytes;
  // A quarter more than was needed. Less only after a time, since some syncs come early and some
  // loads come in bursts; and then little by little.
  const size_t wanted = retired_bytes + retired_bytes / 4;
  if (wanted >= bytes_max_ / 2) needed_micros_ = now_micros;
  const bool shrinks = now_micros - needed_micros_ >= kept_micros_;
  const size_t kept = is_over ? 0 : bytes_max_ - (shrinks ? bytes_max_ / 4 : 0);
  bytes_max_ = std::max({kBytesIdle, wanted, kept});
  size_t unneeded = 0;  // the first ones were not reached
  for (; bytes_ > bytes_max_; ++unneeded) {
    CELLAR_ASSERT(unneeded < spare_.size());
    CELLAR_ASSERT(bytes_ >= spare_[unneeded].capacity());
    bytes_ -= spare_[unneeded].capacity();
    discarded_.push_back(std::move(spare_[unneeded]));
  }
  spare_.erase(spare_.begin(), spare_.begin() + static_cast<std::ptrdiff_t>(unneeded));
}

bool SpareBuffers::has_surplus() const { return bytes_ > kBytesIdle; }

}  // namespace cellar
