// MoveCalls: the steps of moves (cluster/move_steps.h) as calls from one set to another, on command
// links: CLUSTER STEP <step>, a word of calls between nodes and no command. The reply is one bulk
// string, the answer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cluster/move_protocol.h"
#include "commands/session/remote_calls.h"
#include "server/connection/connection.h"

namespace cellar {

class Host;

class MoveCalls {
 public:
  // --- the answering end
  static bool Is(std::span<const std::string_view> words);
  // Carries it out; the reply waits for what it depends on.
  static void Run(Host& host, Session& session, std::span<const std::string_view> words);

  // --- the asking end
  explicit MoveCalls(Host& host);
  // A ticket. What got lost is asked anew: each step may come twice.
  uint64_t Ask(uint64_t set, const MoveStep& step);
  bool IsPending(uint64_t ticket) const;
  // Nothing: nobody has answered. REQUIRES: it is not pending. The ticket is forgotten.
  std::optional<MoveAnswer> Take(uint64_t ticket);
  void Forget(uint64_t ticket);

 private:
  RemoteCalls& remote() const;

  Host& host_;
  ConnectedSession session_;  // on whose behalf nodes ask each other
};

}  // namespace cellar
