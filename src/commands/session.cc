// The members of Session that need complete types.
#include "commands/session.h"

#include "commands/pubsub.h"
#include "commands/transaction.h"

namespace cellar {

Session::Session() = default;
Session::~Session() = default;

bool Session::in_multi() const { return transaction && transaction->queueing; }

OutputBuffer& PushTarget(Session& session) {
  if (!session.in_command) return session.output;
  if (!session.pushes) session.pushes = std::make_unique<OutputBuffer>();
  return *session.pushes;
}

}  // namespace cellar
