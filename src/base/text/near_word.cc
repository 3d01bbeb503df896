// See near_word.h.
#include "base/text/near_word.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/assert.h"
#include "base/text/ascii.h"

namespace cellar {
namespace {

constexpr size_t kShortWordBytes{5};

bool IsNameByte(char c) {
  const char lower = LowerChar(c);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

size_t SlipsBetween(std::string_view word, std::string_view name) {
  CELLAR_ASSERT(word.size() <= kNearWordBytesMax);
  CELLAR_ASSERT(name.size() <= kNearWordBytesMax);
  // row[j]: slips between the first i letters of `word` and the first j of `name`.
  using Row = std::array<size_t, kNearWordBytesMax + 1>;
  Row before_last{};
  Row last{};
  Row row{};
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= word.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= name.size(); ++j) {
      const bool same = LowerChar(word[i - 1]) == LowerChar(name[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && LowerChar(word[i - 1]) == LowerChar(name[j - 2]) &&
                           LowerChar(word[i - 2]) == LowerChar(name[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[name.size()];
}

size_t SlipsAllowed(std::string_view word) {
  if (word.size() < 2 || word.size() > kNearWordBytesMax) return 0;
  if (!std::all_of(word.begin(), word.end(), IsNameByte)) return 0;
  return word.size() <= kShortWordBytes ? 1 : 2;
}

}  // namespace cellar
