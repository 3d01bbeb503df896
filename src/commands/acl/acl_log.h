// AclLog: who was refused what (ACL LOG). Newest first, at most acllog-max-len entries; the same
// refusal of the same user within a minute counts up in one entry. Names are cut, so that
// unauthenticated clients cannot fill the memory.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace cellar {

// In the order in which Redis prefers them when several selectors refuse for several reasons.
enum class Denied : uint8_t { kNothing, kCommand, kKey, kChannel, kAuth };
std::string_view DeniedWord(Denied denied);

struct AclLogEntry {
  uint64_t count{1};
  Denied reason{Denied::kNothing};
  bool in_transaction{false};
  std::string object;  // command, table or family, channel; AUTH or HELLO
  std::string user;
  std::string client;  // as in CLIENT LIST, at the last time
  int64_t time_micros{0};
};

class AclLog {
 public:
  static constexpr size_t kNameBytesMax{256};

  void Add(AclLogEntry entry, size_t entries_max);
  void Trim(size_t entries_max);
  void Reset() { entries_.clear(); }
  const std::deque<AclLogEntry>& entries() const { return entries_; }

 private:
  std::deque<AclLogEntry> entries_;
};

}  // namespace cellar
