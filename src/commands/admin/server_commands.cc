// INFO, TIME, ROLE, WAIT, SHUTDOWN, LOLWUT.
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/os/log.h"
#include "base/text/quote.h"
#include "cellar/version.h"
#include "commands/admin/admin_commands.h"
#include "commands/reports/info.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

void CmdInfo(CommandContext& ctx) {
  const bool all = ctx.rights == nullptr || ctx.rights->MayReadEverything();
  const InfoScope scope = all ? InfoScope::kAll : InfoScope::kWithoutData;
  ctx.reply.Verbatim(InfoText(ctx.host, ctx.args.subspan(1), scope), "txt");
}

void CmdTime(CommandContext& ctx) {
  const int64_t micros = ctx.host.clock().WallMicros();
  ctx.reply.Array(2);
  ctx.reply.BulkInteger(micros / 1'000'000);
  ctx.reply.BulkInteger(micros % 1'000'000);
}

// Success has no reply, as in Redis: the connection ends. In a replica set a leader hands over
// first unless NOW is given, and may be called back by ABORT until it has.
void CmdShutdown(CommandContext& ctx) {
  ShutdownMode mode = ShutdownMode::kDefault;
  bool abort = false;
  bool now = false;
  bool other = false;
  ArgumentCursor at(ctx.args, 1);
  while (!at.done()) {
    if (mode == ShutdownMode::kDefault && at.TakeWord("save")) {
      mode = ShutdownMode::kSave;
    } else if (mode == ShutdownMode::kDefault && at.TakeWord("nosave")) {
      mode = ShutdownMode::kNoSave;
    } else if (at.TakeWord("now")) {
      now = other = true;
    } else if (at.TakeWord("force")) {
      other = true;
    } else if (at.TakeWord("abort")) {
      abort = true;
    } else {
      return ctx.SyntaxError();
    }
  }
  if (abort) {
    if (other || mode != ShutdownMode::kDefault) return ctx.SyntaxError();
    if (ctx.host.CancelShutdown()) return ctx.reply.Ok();
    return ctx.Fail("ERR No shutdown in progress.");
  }
  const std::string who =
      "SHUTDOWN by user " + Quote(ctx.session.user_name) + " from " + ctx.session.address;
  const bool later = !now && ctx.host.ShutdownLater(mode);
  const Status status = later ? Status::Ok() : ctx.host.Shutdown(mode);
  if (!status.ok()) {
    Log(LogSeverity::kNotice, who + ": staying");
    return ctx.Fail("ERR Errors trying to SHUTDOWN. Check logs.");
  }
  Log(LogSeverity::kNotice, who + (later ? ": leaving, what is under way first" : ": leaving"));
  ctx.session.EndAfterReplies();
}

void CmdLolwut(CommandContext& ctx) {
  ctx.reply.Verbatim(
      "A cellar keeps what a table cannot hold.\nCellar ver. " + std::string(kVersion) + "\n",
      "txt");
}

constexpr Command kServerCommands[] = {
    {.name = "info",
     .arity = -1,
     .flags = kLoading | kStale,
     .categories = kCategoryDangerous,
     .group = "server",
     .summary = "Returns information and statistics about the server.",
     .complexity = "O(n) in the number of tables and clients",
     .syntax = "[section...]",
     .handler = CmdInfo},
    {.name = "time",
     .arity = 1,
     .flags = kLoading | kStale | kFast,
     .group = "server",
     .summary = "Returns the server's time: seconds and microseconds.",
     .complexity = "O(1)",
     .handler = CmdTime},
    {.name = "shutdown",
     .arity = -1,
     .flags = kAdmin | kNoScript | kLoading | kStale | kNoMulti | kAllowBusy,
     .group = "server",
     .summary = "Makes the data durable and stops the server.",
     .complexity = "O(n) in the number of cells with SAVE",
     .syntax = "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
     .handler = CmdShutdown},
    {.name = "lolwut",
     .arity = -1,
     .flags = kReadonly | kFast,
     .group = "server",
     .summary = "Returns the version and a saying.",
     .complexity = "O(1)",
     .syntax = "[VERSION version]",
     .handler = CmdLolwut},
};

}  // namespace

std::span<const Command> ServerCommands() { return kServerCommands; }

}  // namespace cellar
