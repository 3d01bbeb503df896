// The members of Session that need complete types.
#include "commands/session/session.h"

#include <algorithm>

#include "commands/catalog/command_table.h"
#include "commands/session/pubsub.h"
#include "commands/session/tracking.h"
#include "commands/session/transaction.h"

namespace cellar {

Session::Session() = default;
Session::~Session() = default;

void Session::OpenGate(size_t position, Lsn lsn) {
  if (gates.empty() ? lsn == Lsn{} : lsn <= gates.back().lsn) return;
  gates.push_back({position, lsn});
  gate_grows = true;
}

bool Session::in_multi() const { return transaction && transaction->queueing; }

namespace {

bool ReplyBeingWritten(const Session& session) {
  return session.in_command || (session.task && session.task_command->Has(kReadonly));
}

}  // namespace

OutputBuffer& PushTarget(Session& session) {
  if (!ReplyBeingWritten(session)) return session.output;
  if (!session.pushes) session.pushes = std::make_unique<OutputBuffer>();
  return *session.pushes;
}

void GatePush(Session& session, Lsn lsn) {
  if (ReplyBeingWritten(session)) {
    session.pushes_depend_on = std::max(session.pushes_depend_on, lsn);
  } else {
    session.AddGate(session.output.size(), lsn);
  }
}

}  // namespace cellar
