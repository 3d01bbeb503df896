// The part of CommonPrefix that is too long to be inlined. See bytes.h.
#include "btree/bytes.h"

namespace cellar::btree_internal {

size_t LongCommonPrefix(const uint8_t* a, const uint8_t* b, size_t bytes_max) {
  // How much of `Word` at `at` is the same.
  auto same = [&]<typename Word>(size_t at, Word) {
    const Word difference = LoadLittleEndian<Word>(a + at) ^ LoadLittleEndian<Word>(b + at);
    return difference == 0 ? sizeof(Word) : static_cast<size_t>(std::countr_zero(difference)) / 8;
  };
  size_t n = 0;
  for (; n + 8 <= bytes_max; n += 8)
    if (const size_t more = same(n, uint64_t{}); more < 8) return n + more;
  if (n == bytes_max) return n;
  // The rest, by words that end where it does: the bytes before it are known to be the same.
  if (bytes_max >= 8) return bytes_max - 8 + same(bytes_max - 8, uint64_t{});
  if (bytes_max >= 4) {
    if (const size_t more = same(0, uint32_t{}); more < 4) return more;
    return bytes_max - 4 + same(bytes_max - 4, uint32_t{});
  }
  while (n < bytes_max && a[n] == b[n]) ++n;
  return n;
}

}  // namespace cellar::btree_internal
