// See command_keys.h.
#include "commands/command_keys.h"

#include <cstdint>

namespace cellar {

std::vector<size_t> KeyPositions(const KeySpec& keys, size_t words) {
  std::vector<size_t> positions;
  if (keys.first == 0) return positions;
  const auto count = static_cast<int64_t>(words);
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
