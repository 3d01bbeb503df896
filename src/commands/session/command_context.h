// CommandContext: all that a handler gets. It parses `args`, calls the store, writes one reply (an
// error is a reply too) and returns; what takes long it hands over as a Task.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "commands/acl/acl_check.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"
#include "commands/session/host.h"
#include "commands/session/outcome.h"
#include "commands/session/session.h"
#include "commands/session/task.h"
#include "resp/reply_writer.h"

namespace cellar {

struct CommandContext {
  Arguments args;               // args[0] is the command's name as the client wrote it
  const CommandEntry& command;  // of a subcommand: the subcommand's
  Session& session;
  Host& host;
  ReplyWriter reply;
  int64_t now_micros;  // wall clock of the turn; stands still inside EXEC
  // What the user may do; null: everything. Dies with the handler, so a task must not keep it.
  const CommandRights* rights{nullptr};

  Store& store() const { return host.store(); }

  // The reply must not leave before record `lsn` is durable (under appendfsync always). FindTable
  // (replies/visible_table.h) says it of what a handler finds; one that changes something says it
  // again afterwards. The dispatcher's asserts hold it to that.
  void DependsOn(Lsn lsn) {
    if (lsn > depends_on) depends_on = lsn;
  }
  // The command goes on as `task`, which writes the reply (see task.h). REQUIRES: called last, with
  // nothing written to `reply`.
  void Continue(std::unique_ptr<Task> work) {
    session.task = std::make_unique<RunningTask>(std::move(work));
  }

  // Replies an error, once, in place of everything else. REQUIRES: !status.ok(), and `line` begins
  // with the code: "ERR no such client".
  void Fail(const Status& status) { outcome.Fail(reply, status); }
  void Fail(std::string_view line) { outcome.Fail(reply, line); }
  void SyntaxError() { Fail("ERR syntax error"); }

  // Read by dispatch after the handler.
  Lsn depends_on{};
  Outcome outcome{};
};

}  // namespace cellar

// Inside a handler: replies the Status of `expression` and returns, unless that is OK.
#define REPLY_IF_ERROR(ctx, expression)                                                   \
  do {                                                                                    \
    if (::cellar::Status status_of_expression = (expression); !status_of_expression.ok()) \
        [[unlikely]]                                                                      \
      return (ctx).Fail(status_of_expression);                                            \
  } while (false)

// Inside a handler: ASSIGN_OR_REPLY(ctx, auto table, ctx.store().FindTable(...)).
#define ASSIGN_OR_REPLY(ctx, target, expression) \
  ASSIGN_OR_REPLY_INNER(CELLAR_CONCAT(reply_of_line_, __LINE__), ctx, target, expression)
#define ASSIGN_OR_REPLY_INNER(result, ctx, target, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) [[unlikely]]                               \
    return (ctx).Fail(result.status());                        \
  target = *std::move(result)
