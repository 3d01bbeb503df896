// The members of Session that need complete types.
#include "commands/session/session.h"

#include <algorithm>

#include "base/assert.h"
#include "commands/catalog/command_table.h"
#include "commands/session/pubsub.h"
#include "commands/session/tracking.h"
#include "commands/session/transaction.h"

namespace cellar {

Session::Session() = default;

// The registry of subscriptions points to sessions.
Session::~Session() { CELLAR_ASSERT(!InSubscribedMode(*this)); }

void Session::OpenGate(size_t position, Lsn lsn) {
  // What stands behind a gate already that waits for as much needs none of its own.
  if (gates.empty() ? lsn == Lsn{} : lsn <= gates.back().lsn) return;
  CELLAR_DEBUG_ASSERT(gates.empty() || position >= gates.back().position);
  CELLAR_DEBUG_ASSERT(position <= output.size());
  gates.push_back({position, lsn});
  gate_grows = true;
}

size_t Session::reply_bytes() const {
  return output.size() + output_in_flight +
         (task == nullptr ? 0 : task->output.size() + task->work->reply_bytes()) +
         (pushes == nullptr ? 0 : pushes->size());
}

size_t Session::kept_bytes() const {
  size_t bytes = name.size() + lib_name.size() + lib_version.size();
  if (transaction) bytes += transaction->memory_bytes();
  if (pubsub) bytes += pubsub->memory_bytes;
  if (tracking) bytes += tracking->prefix_bytes + tracking->held_bytes;
  return bytes;
}

size_t Session::memory_bytes() const {
  return kept_bytes() + output.capacity() + output_in_flight_memory +
         (task == nullptr ? 0 : task->memory_bytes()) +
         (pushes == nullptr ? 0 : pushes->capacity()) + gates.capacity() * sizeof(ReplyGate);
}

size_t RunningTask::memory_bytes() const {
  return sizeof(*this) + output.capacity() + work->memory_bytes();
}

bool Session::in_multi() const { return transaction && transaction->queueing; }

namespace {

bool ReplyBeingWritten(const Session& session) {
  return session.in_command || (session.task && session.task->command->Has(kReadonly));
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
