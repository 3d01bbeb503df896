// See command_keys.h.
#include "commands/catalog/command_keys.h"

#include <cstdint>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "resp/decimal.h"

namespace cellar {

// Of words that do not fit, such as a number of keys beyond them, there are none: the command is
// going to be refused.
std::vector<size_t> KeyPositions(const KeySpec& keys, Arguments words) {
  std::vector<size_t> positions;
  const auto count = static_cast<int64_t>(words.size());
  if (keys.count > 0) {
    int64_t keys_wanted = 0;
    const int64_t left = count - keys.count - 1;
    if (left < 0 || !ParseStrictInt64(words[static_cast<size_t>(keys.count)], &keys_wanted)) {
      return positions;
    }
    for (int64_t i = 1; keys_wanted <= left && i <= keys_wanted; ++i) {
      positions.push_back(static_cast<size_t>(keys.count + i));
    }
    return positions;
  }
  if (keys.first == 0 || (keys.if_odd && count % 2 == 0)) return positions;
  if (!keys.keyword.empty()) {
    auto at = static_cast<size_t>(keys.first);
    while (at < words.size() && !EqualsIgnoreCase(words[at], keys.keyword)) ++at;
    const size_t behind = at < words.size() ? words.size() - at - 1 : 0;
    for (size_t i = 0; i < behind / 2; ++i) positions.push_back(at + 1 + i);
    return positions;
  }
  CELLAR_ASSERT(keys.step > 0);
  int64_t last = keys.last == 0 ? keys.first : keys.last;
  if (last < 0) last += count;
  for (int64_t at = keys.first; at <= last && at < count; at += keys.step) {
    positions.push_back(static_cast<size_t>(at));
  }
  return positions;
}

std::vector<std::string_view> KeyAccessFlags(KeyAccess access) {
  switch (access) {
    case KeyAccess::kRead:
      return {"RO", "access"};
    case KeyAccess::kWrite:
      return {"OW", "update"};
    case KeyAccess::kReadWrite:
      return {"RW", "access", "update"};
    case KeyAccess::kNone:
      break;
  }
  return {};
}

}  // namespace cellar
