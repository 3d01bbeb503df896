// The members of Session that need complete types.
#include "commands/session.h"

#include "commands/pubsub.h"
#include "commands/transaction.h"

namespace cellar {

Session::Session() = default;
Session::~Session() = default;

bool Session::in_multi() const { return transaction && transaction->queueing; }

}  // namespace cellar
