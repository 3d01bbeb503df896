// SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE: three words for one operation, the snapshot that
// rotates the log (cellar-admin(7), "DURABILITY"), and what a client may ask about it.
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "commands/admin/admin_commands.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

// SAVE: the client waits until the snapshot that was begun is durable; others are served meanwhile.
class SaveTask final : public Task {
 public:
  explicit SaveTask(Host& host) : host_(host) {}

  TaskProgress Step(TaskContext& context) override {
    if (host_.persistence().save_in_progress) {
      // EXEC ends in this turn, so the loop itself waits until the snapshot is written.
      if (!context.budget.unlimited()) return TaskProgress::kWaiting;
      if (const Status status = host_.FinishSnapshot(); !status.ok())
        context.Fail(status);
      else
        context.reply.Ok();
      return TaskProgress::kDone;
    }
    const PersistenceFigures figures = host_.persistence();
    if (figures.last_save_ok) {
      context.reply.Ok();
    } else {
      context.Fail("ERR the snapshot failed: " + figures.last_save_error);
    }
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
};

void CmdSave(CommandContext& ctx) {
  if (ctx.host.persistence().save_in_progress) {
    return ctx.Fail("ERR Background save already in progress");
  }
  REPLY_IF_ERROR(ctx, ctx.host.StartSnapshot());
  ctx.Continue(std::make_unique<SaveTask>(ctx.host));
}

void CmdBgSave(CommandContext& ctx) {
  const bool schedule = ctx.args.size() == 2 && EqualsIgnoreCase(ctx.args[1], "schedule");
  if (ctx.args.size() > 1 && !schedule) return ctx.SyntaxError();
  if (ctx.host.persistence().save_in_progress) {
    return ctx.Fail("ERR Background save already in progress");
  }
  REPLY_IF_ERROR(ctx, ctx.host.StartSnapshot());
  ctx.reply.SimpleString("Background saving started");
}

void CmdBgRewriteAof(CommandContext& ctx) {
  if (ctx.host.persistence().save_in_progress) {
    return ctx.Fail("ERR Background append only file rewriting already in progress");
  }
  REPLY_IF_ERROR(ctx, ctx.host.StartSnapshot());
  ctx.reply.SimpleString("Background append only file rewriting started");
}

void CmdLastSave(CommandContext& ctx) {
  ctx.reply.Integer(ctx.host.persistence().last_save_unix_s);
}

constexpr uint32_t kSaveFlags = kAdmin | kNoScript;

constexpr Command kPersistenceCommands[] = {
    {.name = "save",
     .arity = 1,
     .flags = kSaveFlags | kNoMulti,
     .group = "server",
     .summary = "Writes a snapshot and replies when it is durable.",
     .complexity = "O(n) in the number of cells, while other clients are served",
     .handler = CmdSave},
    {.name = "bgsave",
     .arity = -1,
     .flags = kSaveFlags,
     .group = "server",
     .summary = "Starts writing a snapshot in the background.",
     .complexity = "O(1)",
     .syntax = "[SCHEDULE]",
     .handler = CmdBgSave},
    {.name = "bgrewriteaof",
     .arity = 1,
     .flags = kSaveFlags,
     .group = "server",
     .summary = "Starts writing a snapshot in the background, which shortens the log.",
     .complexity = "O(1)",
     .handler = CmdBgRewriteAof},
    {.name = "lastsave",
     .arity = 1,
     .flags = kLoading | kStale | kFast,
     .categories = kCategoryAdmin | kCategoryDangerous,
     .group = "server",
     .summary = "Returns the Unix time of the last snapshot, in seconds.",
     .complexity = "O(1)",
     .handler = CmdLastSave},
};

}  // namespace

std::span<const Command> PersistenceCommands() { return kPersistenceCommands; }

}  // namespace cellar
