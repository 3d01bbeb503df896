// Transactions: MULTI [ATOMIC], EXEC, DISCARD, WATCH, CWATCH, UNWATCH.
//
// A queued command is checked when it comes (that it exists, its arity, rights) and kept as a copy
// of its words; EXEC runs the queue between Store::BeginTransaction and CommitTransaction, so that
// all of it is one log record. A watch remembers a number that grows with every change of the table
// or row (engine/table/table_watches.h); EXEC compares. It names its table by an id, never by a
// pointer, so that it outlives the table, and a state that is loaded again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands/arguments/arguments.h"

namespace cellar {

struct CommandEntry;
struct CommandContext;
class Host;
struct Session;

struct QueuedCommand {
  CommandEntry* command;
  uint32_t first_word;  // in TransactionState::words
  uint32_t words;
};

struct Watch {
  std::string keyspace;
  std::string table;
  std::string row{};  // CWATCH only: its key, encoded
  bool of_row{false};
  uint64_t table_id{0};  // 0: there was no such table
  uint64_t lineage{0};   // of the state that the id belongs to
  uint64_t version{0};
};

struct TransactionState {
  bool queueing{false};
  bool atomic{false};   // MULTI ATOMIC
  bool aborted{false};  // a command was refused while queueing
  bool broken{false};   // what was watched is not known any more
  std::vector<QueuedCommand> queue;
  std::string bytes;  // the words of all queued commands, one after the other
  struct Word {
    uint64_t offset;
    uint64_t size;
  };
  std::vector<Word> words;
  std::vector<Watch> watches;
  size_t watch_bytes{0};  // their memory, here and in the table

  void AddWatch(Watch watch);
  // Views of `bytes`, in place of what *to holds.
  void WordsOf(const QueuedCommand& queued, std::vector<std::string_view>* to) const;
  size_t memory_bytes() const;
};

// The session's state, made if it has none.
TransactionState& TransactionOf(Session& session);

// Appends a command to the queue of a session in MULTI.
void QueueCommand(Session& session, CommandEntry& command, Arguments args);
void UnwatchAll(Host& host, Session& session);
// Leaves MULTI, forgets the queue and all watches (DISCARD, RESET, the end of the connection).
void DiscardTransaction(Host& host, Session& session);

}  // namespace cellar
