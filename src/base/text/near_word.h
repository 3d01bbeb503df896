// How far a mistyped word is from the one that was meant, for errors that offer it. A slip is a
// letter too many, too few, another one, or two swapped; upper and lower case are the same.
#pragma once

#include <cstddef>
#include <string_view>

namespace cellar {

// The longest word that is compared; a longer one is near nothing.
inline constexpr size_t kNearWordBytesMax{64};

// The fewest slips that make `word` of `name`, no matter how many. O(n * m).
// REQUIRES: both of at most kNearWordBytesMax.
size_t SlipsBetween(std::string_view word, std::string_view name);

// How many slips may be in `word` for it to be taken for another: one in a short word, two in a
// longer one; none, 0, in what cannot be a name at all (other bytes than letters, digits, - and _).
size_t SlipsAllowed(std::string_view word);

// The entry whose name, name_of(entry), `word` is a slip of; of several the first of the nearest;
// entries.end() if there is none.
template <typename Entries, typename NameOf>
auto FindNearWord(const Entries& entries, std::string_view word, NameOf name_of) {
  auto nearest = entries.end();
  size_t slips_best = SlipsAllowed(word) + 1;
  for (auto entry = entries.begin(); slips_best > 1 && entry != entries.end(); ++entry) {
    const size_t slips = SlipsBetween(word, name_of(*entry));
    if (slips >= slips_best) continue;
    nearest = entry;
    slips_best = slips;
  }
  return nearest;
}

}  // namespace cellar
