// The part of CommonPrefix that is too long to be inlined. See bytes.h.
#include "btree/nodes/bytes.h"

namespace cellar::btree_internal {

size_t LongCommonPrefix(const uint8_t* a, const uint8_t* b, size_t bytes_max) {
  constexpr size_t kWord{sizeof(uint64_t)};
  // How much of the word at `at` is the same.
  const auto same = [&](size_t at) {
    const uint64_t difference =
        LoadLittleEndian<uint64_t>(a + at) ^ LoadLittleEndian<uint64_t>(b + at);
    return difference == 0 ? kWord : static_cast<size_t>(std::countr_zero(difference)) / 8;
  };
  size_t n = 0;
  for (; n + kWord <= bytes_max; n += kWord)
    if (const size_t more = same(n); more < kWord) return n + more;
  if (n == bytes_max) return n;
  // The rest, by a word that ends where it does: the bytes before it are known to be the same.
  if (bytes_max >= kWord) return bytes_max - kWord + same(bytes_max - kWord);
  while (n < bytes_max && a[n] == b[n]) ++n;
  return n;
}

}  // namespace cellar::btree_internal
