// See acl_log.h.
#include "commands/acl/acl_log.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// Redis' numbers: how far back an equal entry is looked for, and how old it may be.
constexpr size_t kLookBack{10};
constexpr int64_t kTogetherMicros{60'000'000};

bool Together(const AclLogEntry& a, const AclLogEntry& b) {
  const int64_t apart = a.time_micros - b.time_micros;
  return a.reason == b.reason && a.in_transaction == b.in_transaction && a.object == b.object &&
         a.user == b.user && apart <= kTogetherMicros && -apart <= kTogetherMicros;
}

}  // namespace

std::string_view DeniedWord(Denied denied) {
  switch (denied) {
    case Denied::kNothing:
      break;
    case Denied::kCommand:
      return "command";
    case Denied::kKey:
      return "key";
    case Denied::kChannel:
      return "channel";
    case Denied::kAuth:
      return "auth";
  }
  return "unknown";
}

void AclLog::Add(AclLogEntry entry, size_t entries_max) {
  CELLAR_ASSERT(entry.count == 1);
  CELLAR_ASSERT(entry.reason != Denied::kNothing);
  if (entry.object.size() > kNameBytesMax) entry.object.resize(kNameBytesMax);
  if (entry.user.size() > kNameBytesMax) entry.user.resize(kNameBytesMax);
  const size_t looked_at = std::min(entries_.size(), kLookBack);
  for (size_t i = 0; i < looked_at; ++i) {
    if (!Together(entries_[i], entry)) continue;
    entry.count = entries_[i].count + 1;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  entries_.push_front(std::move(entry));
  Trim(entries_max);
}

void AclLog::Trim(size_t entries_max) {
  while (entries_.size() > entries_max) entries_.pop_back();
}

}  // namespace cellar
