// MULTI [ATOMIC], EXEC, DISCARD, WATCH, CWATCH, UNWATCH.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "commands/clients/client_info.h"
#include "commands/data/data_commands.h"
#include "commands/dispatch/dispatch.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/transaction.h"
#include "commands/session/transaction_store.h"
#include "store/store.h"

namespace cellar {
namespace {

void CmdMulti(CommandContext& ctx) {
  if (ctx.args.size() > 2) {
    return ctx.Fail("ERR wrong number of arguments for 'multi' command");
  }
  const bool atomic = ctx.args.size() == 2;
  if (atomic && !EqualsIgnoreCase(ctx.args[1], "atomic")) {
    return ctx.Fail(UnexpectedWord(ctx.args[1], "ATOMIC"));
  }
  if (ctx.session.in_multi()) return ctx.Fail("ERR MULTI calls can not be nested");
  TransactionState& transaction = TransactionOf(ctx.session);
  transaction.queueing = true;
  transaction.atomic = atomic;
  ctx.reply.Ok();
}

void CmdDiscard(CommandContext& ctx) {
  if (!ctx.session.in_multi()) return ctx.Fail("ERR DISCARD without MULTI");
  DiscardTransaction(ctx.host, ctx.session);
  ctx.reply.Ok();
}

// Runs the queue; the error line that stopped an atomic one, or nothing.
std::string RunQueue(CommandContext& ctx, const TransactionState& transaction) {
  Dispatcher& dispatcher = ctx.host.dispatcher();
  const Config& config = ctx.host.services().config;
  const auto reply_bytes_max = static_cast<size_t>(config.reply_max_bytes);
  const size_t begin = ctx.session.output.size();
  // Queued words lie in `bytes`, which grows no more: views of them are good for the whole run.
  std::vector<std::string_view> words;
  for (const QueuedCommand& queued : transaction.queue) {
    transaction.WordsOf(queued, &words);
    Session& session = ctx.session;
    // A read has no effect but its reply: nobody gets it, or it would be too long.
    const bool reads = queued.command->Has(kReadonly);
    if (session.ended() && reads) continue;
    Outcome outcome;
    if (reads && session.output.size() - session.exec_position > reply_bytes_max) {
      ReplyWriter reply = session.writer();
      outcome.Fail(reply,
                   Status::Error(ErrorCode::kTooLarge,
                                 "the replies of this EXEC are longer than reply-max-bytes"));
    } else {
      outcome = dispatcher.Call(session, *queued.command, words);
    }
    // In a plain transaction an error is the reply of its command alone, and the others run.
    if (transaction.atomic && outcome.failed()) return outcome.error();
    if (session.ended() || BeyondHardLimit(session, config)) [[unlikely]] {
      // What waits goes now; what the transaction writes stands, as in Redis.
      if (!session.ended()) ctx.host.EndForOutput(session);
      // What stood before the first reply of the queue stays, so that positions in the output hold.
      OutputBuffer head;
      head.Append(session.output.view().substr(0, begin));
      session.output.Swap(head);
    }
  }
  return {};
}

// All commands run in this turn, and their replies go straight into this one. If an atomic
// transaction is refused, the data, the selected keyspace and the reply go back to what they were.
void CmdExec(CommandContext& ctx) {
  Session& session = ctx.session;
  if (!session.in_multi()) return ctx.Fail("ERR EXEC without MULTI");
  const auto& watches = session.transaction->watches;
  const bool broken = session.transaction->broken ||
                      std::any_of(watches.begin(), watches.end(), [&ctx](const Watch& watch) {
                        return WatchIsBroken(ctx.host, watch);
                      });
  if (session.transaction->aborted) {
    DiscardTransaction(ctx.host, session);
    return ctx.Fail("EXECABORT Transaction discarded because of previous errors.");
  }
  if (broken) {
    ctx.DependsOn(ctx.store().last_lsn());  // it tells of a change
    DiscardTransaction(ctx.host, session);
    return ctx.reply.NullArray();
  }
  UnwatchAll(ctx.host, session);
  // The session leaves MULTI before its commands run: they are ordinary ones now.
  const std::unique_ptr<TransactionState> transaction = std::move(session.transaction);
  const size_t position = ctx.reply.position();
  const std::string keyspace = session.keyspace;
  ctx.reply.Array(transaction->queue.size());
  // From here on handlers and the dispatcher know that this is EXEC: a command ends at once, and
  // one gate holds all replies.
  session.exec_running = true;
  session.exec_position = position;
  session.exec_depends_on = Lsn{};
  CELLAR_ASSERT(!session.in_multi());
  ctx.store().BeginTransaction(transaction->atomic ? Store::Atomicity::kAll
                                                   : Store::Atomicity::kRedis);
  const std::string refusal = RunQueue(ctx, *transaction);
  session.exec_running = false;
  if (!refusal.empty()) {
    RollBackStoreTransaction(ctx.host);
    session.keyspace = keyspace;
    ctx.reply.Truncate(position);
    return ctx.Fail("EXECABORT " + refusal);
  }
  // For its own record, and for what its reads have seen of others.
  ctx.DependsOn(CommitStoreTransaction(ctx.host));
  ctx.DependsOn(session.exec_depends_on);
}

// The state is taken note of now, at the command, and compared at EXEC.
void CmdWatch(CommandContext& ctx) {
  if (ctx.session.in_multi()) return ctx.Fail("ERR WATCH inside MULTI is not allowed");
  // A watch is memory that a client makes us keep, here and in the table.
  REPLY_IF_ERROR(ctx, CheckKept(ctx.session, ctx.host.services().config));
  ctx.DependsOn(ctx.store().last_lsn());
  for (const std::string_view table : ctx.args.subspan(1)) {
    ASSIGN_OR_REPLY(ctx, Watch watch, WatchTable(ctx.host, ctx.session.keyspace, table));
    TransactionOf(ctx.session).AddWatch(std::move(watch));
  }
  ctx.reply.Ok();
}

void CmdCWatch(CommandContext& ctx) {
  if (ctx.session.in_multi()) return ctx.Fail("ERR CWATCH inside MULTI is not allowed");
  REPLY_IF_ERROR(ctx, CheckKept(ctx.session, ctx.host.services().config));
  ctx.DependsOn(ctx.store().last_lsn());
  ASSIGN_OR_REPLY(ctx, Watch watch,
                  WatchTableRow(ctx.host, ctx.session.keyspace, ctx.args[1], ctx.args[2]));
  TransactionOf(ctx.session).AddWatch(std::move(watch));
  ctx.reply.Ok();
}

void CmdUnwatch(CommandContext& ctx) {
  UnwatchAll(ctx.host, ctx.session);
  ctx.reply.Ok();
}

constexpr uint32_t kAlways = kNoScript | kLoading | kStale | kFast;

constexpr Command kTransactionCommands[] = {
    {.name = "multi",
     .arity = -1,
     .flags = kAlways | kImmediate | kAllowBusy,
     .categories = kCategoryTransaction,
     .group = "transactions",
     .summary = "Starts a transaction. With ATOMIC, one refused command undoes everything.",
     .complexity = "O(1)",
     .syntax = "[ATOMIC]",
     .handler = CmdMulti},
    {.name = "exec",
     .arity = 1,
     .flags = kNoScript | kLoading | kStale | kSkipSlowlog | kImmediate,
     .categories = kCategoryTransaction,
     .group = "transactions",
     .summary =
         "Runs the commands of a transaction in one step. Null if something watched has changed.",
     .complexity = "that of its commands",
     .handler = CmdExec},
    {.name = "discard",
     .arity = 1,
     .flags = kAlways | kImmediate | kAllowBusy,
     .categories = kCategoryTransaction,
     .group = "transactions",
     .summary = "Discards the commands of a transaction.",
     .complexity = "O(n) in the number of commands",
     .handler = CmdDiscard},
    {.name = "watch",
     .arity = -2,
     .flags = kAlways | kImmediate | kAllowBusy,
     .categories = kCategoryTransaction,
     .keys = {.first = 1, .last = -1, .access = KeyAccess::kRead, .scope = KeyScope::kTable},
     .group = "transactions",
     .summary = "Watches tables: if one changes, the next EXEC does nothing.",
     .complexity = "O(n) in the number of tables",
     .syntax = "table...",
     .handler = CmdWatch},
    {.name = "cwatch",
     .arity = 3,
     .flags = kAlways | kImmediate | kAllowBusy,
     .categories = kCategoryTransaction | kCategoryCell,
     .keys = {.first = 1, .access = KeyAccess::kRead, .row = 2, .scope = KeyScope::kTable},
     .group = "transactions",
     .summary = "Watches a row: if it changes, the next EXEC does nothing.",
     .complexity = "O(log n)",
     .syntax = "table row",
     .handler = CmdCWatch},
    {.name = "unwatch",
     .arity = 1,
     .flags = kAlways | kAllowBusy,
     .categories = kCategoryTransaction,
     .group = "transactions",
     .summary = "Ends all watches.",
     .complexity = "O(n) in the number of watches",
     .handler = CmdUnwatch},
};

}  // namespace

std::span<const Command> TransactionCommands() { return kTransactionCommands; }

}  // namespace cellar
