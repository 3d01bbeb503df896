// See transaction.h.
#include "commands/session/transaction.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "commands/session/host.h"
#include "commands/session/session.h"
#include "commands/session/transaction_store.h"

namespace cellar {

TransactionState& TransactionOf(Session& session) {
  if (!session.transaction) session.transaction = std::make_unique<TransactionState>();
  return *session.transaction;
}

void QueueCommand(Session& session, CommandEntry& command, Arguments args) {
  CELLAR_ASSERT(session.in_multi());
  CELLAR_ASSERT(!args.empty());
  TransactionState& transaction = *session.transaction;
  const auto first = static_cast<uint32_t>(transaction.words.size());
  for (const std::string_view arg : args) {
    transaction.words.push_back({transaction.bytes.size(), arg.size()});
    transaction.bytes.append(arg);
  }
  transaction.queue.push_back({&command, first, static_cast<uint32_t>(args.size())});
}

void UnwatchAll(Host& host, Session& session) {
  if (!session.transaction) return;
  for (const Watch& watch : session.transaction->watches) ReleaseWatch(host, watch);
  session.transaction->watches = {};
  session.transaction->watch_bytes = 0;
  session.transaction->broken = false;
  // Nothing is left in it: a session without a transaction stays small.
  if (!session.transaction->queueing) session.transaction.reset();
}

void DiscardTransaction(Host& host, Session& session) {
  if (!session.transaction) return;
  session.transaction->queueing = false;
  UnwatchAll(host, session);
  CELLAR_ASSERT(session.transaction == nullptr);
}

size_t TransactionState::memory_bytes() const {
  return bytes.capacity() + words.capacity() * sizeof(Word) +
         queue.capacity() * sizeof(QueuedCommand) + watch_bytes;
}

void TransactionState::WordsOf(const QueuedCommand& queued,
                               std::vector<std::string_view>* to) const {
  to->clear();
  for (uint32_t i = 0; i < queued.words; ++i) {
    const Word& word = words[queued.first_word + i];
    to->push_back(std::string_view(bytes).substr(word.offset, word.size));
  }
}

void TransactionState::AddWatch(Watch watch) {
  CELLAR_ASSERT(!queueing);  // WATCH inside MULTI is refused
  CELLAR_ASSERT(!watch.of_row || watch.table_id != 0);
  // A watched row is kept by its table too.
  watch_bytes += sizeof(Watch) + watch.keyspace.size() + watch.table.size() + 2 * watch.row.size();
  watches.push_back(std::move(watch));
}

}  // namespace cellar
