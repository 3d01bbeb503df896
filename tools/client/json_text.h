// Texts as JSON, whatever bytes they are.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cellar::client {

// Whether any of eight characters is none that a JSON string has as it is: a control character, a
// quote, a backslash, or beyond ASCII.
inline bool HasUnplainJson(uint64_t eight) {
  constexpr uint64_t kOnes{0x0101010101010101};
  constexpr uint64_t kHigh{0x8080808080808080};
  const uint64_t quote = eight ^ kOnes * '"';
  const uint64_t backslash = eight ^ kOnes * '\\';
  // x - 1 borrows from the highest bit where x is zero; exact as to whether there is any.
  const uint64_t found = (eight - kOnes * ' ') & ~eight;
  return ((eight | found | ((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash)) &
          kHigh) != 0;
}

// Whether `text` between quotes is a JSON string already. Most texts are.
inline bool IsPlainJson(std::string_view text) {
  const char* at = text.data();
  size_t left = text.size();
  uint64_t eight = 0;
  for (; left >= sizeof(eight); at += sizeof(eight), left -= sizeof(eight)) {
    std::memcpy(&eight, at, sizeof(eight));
    if (HasUnplainJson(eight)) return false;
  }
  char rest[sizeof(eight)];
  std::memset(rest, ' ', sizeof(rest));
  if (left >= 4) {  // two overlapping halves
    std::memcpy(rest, at, 4);
    std::memcpy(rest + 4, at + left - 4, 4);
  } else {
    for (size_t i = 0; i < left; ++i) rest[i] = at[i];
  }
  std::memcpy(&eight, rest, sizeof(eight));
  return !HasUnplainJson(eight);
}

// Appends a JSON string. REQUIRES: valid UTF-8.
void AppendJsonString(std::string_view text, std::string* out);
// Appends a JSON string, or {"b64": ...} of what is not UTF-8.
void AppendJsonText(std::string_view text, std::string* out);

}  // namespace cellar::client
