// See row_puts.h.
#include "engine/table/row_puts.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"
#include "base/copy_bytes.h"
#include "base/inline.h"

namespace cellar {
namespace {

// a < b, of what stands behind a row's key, which is mostly told by the first bytes of a column.
CELLAR_INLINE bool IsBelow(std::string_view a, std::string_view b) {
  if (a.size() >= sizeof(uint64_t) && b.size() >= sizeof(uint64_t)) [[likely]] {
    const uint64_t of_a = __builtin_bswap64(LoadLittleEndian<uint64_t>(a.data()));
    const uint64_t of_b = __builtin_bswap64(LoadLittleEndian<uint64_t>(b.data()));
    if (of_a != of_b) [[likely]]
      return of_a < of_b;
  }
  return a < b;
}

}  // namespace

// Notes a put; Finish says whether all of them may go to the tree as runs.
void RowPuts::Add(const ResolvedPut& put, std::string_view payload) {
  if (!complete_) return;
  if (put.replaced || keys_.size() + put.key_bytes > kKeysBytesMax) {
    complete_ = false;
    return;
  }
  CELLAR_ASSERT(put.cell_value.data() >= payload.data());
  CELLAR_ASSERT(puts_.empty() || row_bytes_ == put.row_bytes);
  row_bytes_ = put.row_bytes;
  const auto key_at = static_cast<uint32_t>(keys_.size());
  CopyBytes(keys_.Grow(put.key_bytes), put.key, put.key_bytes);
  if (!puts_.empty() && ascends_) [[likely]] {
    const Put& last = puts_.back();
    const char* const keys = keys_.data();
    // They differ behind the row's key only.
    ascends_ = IsBelow({keys + last.key_at + row_bytes_, last.key_bytes - row_bytes_},
                       {keys + key_at + row_bytes_, put.key_bytes - row_bytes_});
  }
  puts_.push_back({put.family, key_at, static_cast<uint32_t>(put.key_bytes),
                   static_cast<uint32_t>(put.cell_value.data() - payload.data()),
                   static_cast<uint32_t>(put.cell_value.size())});
}

bool RowPuts::Finish() {
  if (!complete_ || puts_.empty()) return false;
  if (ascends_) return true;
  const auto rest = [this](const Put& put) { return key(put).substr(row_bytes_); };
  std::sort(puts_.begin(), puts_.end(),
            [&](const Put& a, const Put& b) { return IsBelow(rest(a), rest(b)); });
  ascends_ = true;
  const auto twice = std::adjacent_find(
      puts_.begin(), puts_.end(), [&](const Put& a, const Put& b) { return rest(a) == rest(b); });
  complete_ = twice == puts_.end();
  return complete_;
}

}  // namespace cellar
