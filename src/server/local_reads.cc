// See local_reads.h.
#include "server/local_reads.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/text/ascii.h"
#include "commands/catalog/command_keys.h"
#include "commands/session/transaction.h"
#include "engine/table/index.h"
#include "engine/table/index_set.h"

namespace cellar {
namespace {

bool IsUnbuilt(const Table& table, std::string_view name) {
  const IndexSchema* const index = table.schema().FindIndex(name);
  if (index == nullptr || index->state == IndexState::kFailed) return false;
  const Index* const built = table.has_indexes() ? table.indexes()->Find(index->id) : nullptr;
  return index->state == IndexState::kBuilding || built == nullptr || !built->built();
}

bool HasWord(Arguments args, std::string_view wanted) {
  return std::any_of(args.begin(), args.end(),
                     [wanted](std::string_view word) { return EqualsIgnoreCase(word, wanted); });
}

// A word that is no option but looks like INDEX, with an index's name behind it, does no harm: the
// command is passed on without need.
bool NamesUnbuiltIndex(Store& store, const Session& session, const CommandEntry& command,
                       Arguments args) {
  if (!command.Has(kReadonly)) return false;
  const Table* table = nullptr;
  for (size_t i = 1; i + 1 < args.size(); ++i) {
    if (!EqualsIgnoreCase(args[i], "index")) continue;
    if (table == nullptr) {
      const std::vector<size_t> keys = KeyPositions(command.row->keys, args);
      if (!keys.empty()) table = store.FindTableIfAny(session.keyspace, args[keys[0]]);
      if (table == nullptr || table->schema().indexes.empty()) return false;
    }
    if (IsUnbuilt(*table, args[i + 1])) return true;
  }
  return false;
}

bool IsExecOf(const Session& session, const CommandEntry& command) {
  return session.transaction != nullptr && command.Is(CommandRole::kExec);
}

}  // namespace

bool ReadsFeeds(const Session& session, const CommandEntry& command) {
  if (!IsExecOf(session, command)) return command.Is(CommandRole::kFeedRead);
  const auto& queue = session.transaction->queue;
  return std::any_of(queue.begin(), queue.end(), [](const QueuedCommand& queued) {
    return queued.command->Is(CommandRole::kFeedRead);
  });
}

bool ReadsUnbuiltIndex(Store& store, const Session& session, const CommandEntry& command,
                       Arguments args) {
  if (!IsExecOf(session, command)) return NamesUnbuiltIndex(store, session, command, args);
  const TransactionState& transaction = *session.transaction;
  std::vector<std::string_view> words;
  return std::any_of(transaction.queue.begin(), transaction.queue.end(),
                     [&](const QueuedCommand& queued) {
                       transaction.WordsOf(queued, &words);
                       return NamesUnbuiltIndex(store, session, *queued.command, words);
                     });
}

bool BelongsHere(const Session& session, const CommandEntry& command, Arguments args) {
  const auto pins = [](const CommandEntry& each, Arguments words) {
    return each.Is(CommandRole::kScan) &&
           ((words.size() > 2 && words[2] != "0") || HasWord(words, "snapshot"));
  };
  if (!IsExecOf(session, command)) return pins(command, args);
  const TransactionState& transaction = *session.transaction;
  std::vector<std::string_view> words;
  return std::any_of(transaction.queue.begin(), transaction.queue.end(),
                     [&](const QueuedCommand& queued) {
                       transaction.WordsOf(queued, &words);
                       return pins(*queued.command, words);
                     });
}

Lsn ShownByFeeds(Store& store) {
  return std::min(store.journal().settled_lsn(), store.applied_lsn(),
                  [](const Lsn& a, const Lsn& b) { return a.seq < b.seq; });
}

}  // namespace cellar
