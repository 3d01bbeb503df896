// What a change of the schema of a cluster waits for: OK is told when every set has it.
#pragma once

#include <cstdint>
#include <string>

#include "cellar/lsn.h"

namespace cellar {

class Host;
struct CommandContext;

// Behind a change that has been made: whether the command goes on as a task that replies, since
// there are other sets, and not all have the newest change.
bool AwaitOtherSets(CommandContext& ctx);

// The same for a task: what a change of the schema that it has just made waits for.
class OtherSetsWait {
 public:
  // `host` outlives it.
  explicit OtherSetsWait(Host& host);
  enum class State : uint8_t { kWaits, kAllHave, kLacks };
  State Look() const;
  // The error, if a set lacks the change still after 10 s: it is logged.
  std::string LacksText() const;
  Lsn record() const { return record_; }

 private:
  Host& host_;
  const uint64_t catalog_;
  const Lsn record_;
  const int64_t deadline_micros_;  // monotonic
};

}  // namespace cellar
