// RemoteCalls: what a command that goes over several sets of a cluster asks each of them. The
// server implements it on command links (server/remote_asks.h).
//
// A call is asked on behalf of a session, with its user's rights and its keyspace, of whoever leads
// the set, this node included; it is carried out as any other command of that user's there. Calls
// of one asker run beside each other, in no order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

struct Session;

class RemoteCalls {
 public:
  virtual ~RemoteCalls() = default;

  enum class State : uint8_t {
    kPending,
    kAnswered,  // `bytes` is the reply, whole, in the session's version of RESP
    kMoved,     // nothing was done: the set owns the rows no more. The map is to be asked again
    kFailed,  // nothing was done: `bytes` is the line of an error (no leader, cluster-wait is over)
    kUnknown,  // it writes, and nobody can say what becomes of it
  };
  struct Answer {
    State state{State::kPending};
    std::string bytes{};
  };

  // `text`: PutCallCount and PutCallWords of cluster/call_frames.h; of several commands the last
  // one is answered. A read that was sent and got lost is asked anew, as often as cluster-wait lets
  // it. The ticket costs memory until Forget. Host::WakeTasks is called when an answer has come.
  virtual uint64_t Ask(const Session& session, uint64_t set, std::string text, bool writes) = 0;
  // A read that may wait for what others do, for ever: this node does not wait for it when it
  // leaves.
  virtual uint64_t AskToWait(const Session& session, uint64_t set, std::string text) = 0;
  // Of that node, which carries it out whether it leads or not. It is sent once, as long as that
  // takes: kUnknown when the link is lost.
  virtual uint64_t AskNode(const Session& session, uint64_t node, std::string text) = 0;
  // REQUIRES: a ticket that is not forgotten. Good until the next call of this; who forgets it next
  // may take its bytes.
  virtual Answer& AnswerTo(uint64_t ticket) = 0;
  // What is under way is nobody's: a write may be carried out all the same.
  virtual void Forget(uint64_t ticket) = 0;
};

}  // namespace cellar
