// See transaction.h. The calls into the store are at the end of this file.
#include "commands/transaction.h"

#include <memory>

#include "commands/host.h"
#include "commands/session.h"

namespace cellar {

void QueueCommand(Session& session, CommandEntry& command, Arguments args) {
  TransactionState& transaction = *session.transaction;
  const auto first = static_cast<uint32_t>(transaction.words.size());
  for (const std::string_view arg : args) {
    transaction.words.push_back({transaction.bytes.size(), arg.size()});
    transaction.bytes.append(arg);
  }
  transaction.queue.push_back({&command, first, static_cast<uint32_t>(args.size())});
}

void DiscardTransaction(Host& host, Session& session) {
  (void)host;
  session.transaction.reset();
}

}  // namespace cellar
