// The matcher keeps two positions and one pair to return to: the last star and the text it has
// swallowed so far. An earlier star never needs to be tried again, because the later one can
// swallow whatever the earlier one could have left over.
#include "base/text/glob.h"

#include <cstddef>
#include <vector>

#include "base/text/ascii.h"

namespace cellar {
namespace {

uint8_t Fold(char c, GlobCase letter_case) {
  return static_cast<uint8_t>(letter_case == GlobCase::kInsensitive ? LowerChar(c) : c);
}

// Is `c` in the class that begins at pattern[*at] (the character behind the '[')? *at then stands
// behind the class.
bool ClassContains(std::string_view pattern, size_t* at, char c, GlobCase letter_case) {
  size_t i = *at;
  const bool negated = i < pattern.size() && pattern[i] == '^';
  if (negated) ++i;
  const uint8_t wanted = Fold(c, letter_case);
  bool found = false;
  while (i < pattern.size() && pattern[i] != ']') {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      found = found || Fold(pattern[i + 1], letter_case) == wanted;
      i += 2;
    } else if (i + 2 < pattern.size() && pattern[i + 1] == '-') {
      uint8_t low = Fold(pattern[i], letter_case);
      uint8_t high = Fold(pattern[i + 2], letter_case);
      if (low > high) {
        const uint8_t swapped = low;
        low = high;
        high = swapped;
      }
      found = found || (wanted >= low && wanted <= high);
      i += 3;
    } else {
      found = found || Fold(pattern[i], letter_case) == wanted;
      ++i;
    }
  }
  *at = i < pattern.size() ? i + 1 : i;  // behind the ']'
  return found != negated;
}

// Does the item at pattern[*at], which is no star, match `c`? *at then stands behind the item.
bool ItemMatches(std::string_view pattern, size_t* at, char c, GlobCase letter_case) {
  const char item = pattern[*at];
  ++*at;
  if (item == '?') return true;
  if (item == '[') return ClassContains(pattern, at, c, letter_case);
  if (item == '\\' && *at < pattern.size()) {
    const char escaped = pattern[*at];
    ++*at;
    return Fold(escaped, letter_case) == Fold(c, letter_case);
  }
  return Fold(item, letter_case) == Fold(c, letter_case);
}

}  // namespace

bool GlobMatch(std::string_view pattern, std::string_view text, GlobCase letter_case) {
  constexpr size_t kNoStar = std::string_view::npos;
  size_t at = 0;
  size_t position = 0;
  size_t star = kNoStar;     // where the pattern goes on behind the last star
  size_t star_position = 0;  // where the text goes on behind what that star has swallowed
  while (position < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_position = position;
      if (star == pattern.size()) return true;
      continue;
    }
    size_t next = at;
    if (at < pattern.size() && ItemMatches(pattern, &next, text[position], letter_case)) {
      at = next;
      ++position;
      continue;
    }
    if (star == kNoStar) return false;
    at = star;
    position = ++star_position;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

// Follows all ways through the pattern at once, as a set of places in it, so that many stars cost
// no backtracking. A pattern that the prefix uses up matches the prefix itself and nothing behind
// it.
GlobReach GlobReachBehind(std::string_view pattern, std::string_view prefix) {
  // reached[i]: the pattern's first i bytes can match what has been read of the prefix.
  std::vector<bool> reached(pattern.size() + 1);
  std::vector<bool> next(pattern.size() + 1);
  const auto pass_stars = [pattern](std::vector<bool>& set) {
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (set[i] && pattern[i] == '*') set[i + 1] = true;
    }
  };
  reached[0] = true;
  pass_stars(reached);
  for (const char c : prefix) {
    next.assign(next.size(), false);
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (!reached[i]) continue;
      size_t at = i;
      if (pattern[i] == '*') {
        next[i] = true;
      } else if (ItemMatches(pattern, &at, c, GlobCase::kSensitive)) {
        next[at] = true;
      }
    }
    reached.swap(next);
    pass_stars(reached);
  }
  GlobReach reach = GlobReach::kNone;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (!reached[i]) continue;
    if (pattern.find_first_not_of('*', i) == std::string_view::npos) return GlobReach::kAll;
    reach = GlobReach::kSome;
  }
  return reach;
}

bool GlobIsLiteral(std::string_view pattern) {
  return pattern.find_first_of("*?[\\") == std::string_view::npos;
}

}  // namespace cellar
