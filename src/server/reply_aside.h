// ReplyAside: the output of a session, put aside while a command is carried out whose reply does
// not leave behind what stands there: it waits for replies of other nodes (passed_client.h).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "cellar/lsn.h"
#include "commands/session/session.h"
#include "resp/output_buffer.h"

namespace cellar {

class ReplyAside {
 public:
  // REQUIRES: no message waits for the end of a reply of that session.
  void Begin(Session* session) {
    CELLAR_DEBUG_ASSERT(session->pushes == nullptr);
    Swap(session);
    grows_ = std::exchange(session->gate_grows, false);
    in_command_ = std::exchange(session->in_command, false);
  }
  // The session is as it was; what the reply depends on. REQUIRES: the command is over.
  Lsn End(Session* session) {
    CELLAR_ASSERT(session->task == nullptr);
    Swap(session);
    session->gate_grows = grows_;
    session->in_command = in_command_;
    const Lsn gate = gates_.empty() ? Lsn{} : gates_.back().lsn;
    gates_.clear();
    return gate;
  }
  // Between End and Clear: the reply.
  std::string_view reply() const { return output_.view(); }
  void Clear() {
    if (output_.capacity() > kKeptBytes) return output_.Free();
    output_.Clear();
  }

 private:
  static constexpr size_t kKeptBytes{64 << 10};
  void Swap(Session* session) {
    session->output.Swap(output_);
    session->gates.swap(gates_);
  }

  // The session's while a command runs, then the command's.
  OutputBuffer output_;
  std::vector<ReplyGate> gates_;
  bool grows_{false};
  bool in_command_{false};
};

}  // namespace cellar
