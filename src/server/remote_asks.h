// RemoteAsks: what commands that go over several sets ask each of them (commands/session/
// remote_calls.h), on the command links of this node.
//
//   Ask --> waits for a link --> sent --> kAnswered, kMoved
//             ^      | cluster-wait        |
//             |      `-> kFailed           |  the owner is lost, or leads no more
//             `----------- reads ----------+
//                          writes ---------`-> kUnknown, or as reads if nothing was done
//
// Each call has a channel of its own for as long as it takes: calls run beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cluster/entry_link.h"
#include "commands/session/host.h"
#include "commands/session/remote_calls.h"

namespace cellar {

class RemoteAsks final : public RemoteCalls {
 public:
  // A link to who leads that set; null: there is none at the moment. It is good for the turn.
  using FindLink = std::function<EntryLink*(uint64_t set)>;
  // A link to that node.
  using FindNodeLink = std::function<EntryLink*(uint64_t node)>;
  // The line of an error: there was none for too long.
  using LateText = std::function<std::string(uint64_t set)>;

  RemoteAsks(Host& host, FindLink find_link, FindNodeLink find_node_link, LateText late_text);
  ~RemoteAsks() override;

  // --- RemoteCalls
  uint64_t Ask(const Session& session, uint64_t set, std::string text, bool writes) override;
  uint64_t AskToWait(const Session& session, uint64_t set, std::string text) override;
  uint64_t AskNode(const Session& session, uint64_t node, std::string text) override;
  Answer& AnswerTo(uint64_t ticket) override;
  void Forget(uint64_t ticket) override;

  // What waits is sent, channels of what has been answered end. O(calls)
  void OnTurn();
  // Some call waits for a link.
  bool waits() const;
  size_t memory_bytes() const;

 private:
  class AskedCall;
  uint64_t Add(std::unique_ptr<AskedCall> call);
  void Try(AskedCall* call);

  Host& host_;
  const FindLink find_link_;
  const FindNodeLink find_node_link_;
  const LateText late_text_;
  uint64_t last_ticket_{0};
  std::map<uint64_t, std::unique_ptr<AskedCall>> calls_;  // by ticket
};

}  // namespace cellar
