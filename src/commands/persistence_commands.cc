// SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, WAITAOF: three words for one operation, the snapshot that
// rotates the log (cellar-admin(7), "DURABILITY"), and what a client may ask about it.
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "commands/command_groups.h"
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
      if (!context.budget.unlimited()) return TaskProgress::kWaiting;
      const Status status = host_.FinishSnapshot();
      context.reply.StatusReply(status);
      return TaskProgress::kDone;
    }
    const PersistenceFigures figures = host_.persistence();
    if (figures.last_save_ok) {
      context.reply.Ok();
    } else {
      context.reply.Error("ERR the snapshot failed: " + figures.last_save_error);
    }
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
};

void CmdSave(CommandContext& ctx) {
  if (ctx.host.persistence().save_in_progress) {
    return ctx.reply.Error("ERR Background save already in progress");
  }
  REPLY_IF_ERROR(ctx, ctx.host.StartSnapshot());
  ctx.Continue(std::make_unique<SaveTask>(ctx.host));
}

void CmdBgSave(CommandContext& ctx) {
  const bool schedule = ctx.args.size() == 2 && EqualsIgnoreCase(ctx.args[1], "schedule");
  if (ctx.args.size() > 1 && !schedule) return ctx.SyntaxError();
  if (ctx.host.persistence().save_in_progress) {
    return ctx.reply.Error("ERR Background save already in progress");
  }
  REPLY_IF_ERROR(ctx, ctx.host.StartSnapshot());
  ctx.reply.SimpleString("Background saving started");
}

void CmdBgRewriteAof(CommandContext& ctx) {
  if (ctx.host.persistence().save_in_progress) {
    return ctx.reply.Error("ERR Background append only file rewriting already in progress");
  }
  REPLY_IF_ERROR(ctx, ctx.host.StartSnapshot());
  ctx.reply.SimpleString("Background append only file rewriting started");
}

void CmdLastSave(CommandContext& ctx) {
  ctx.reply.Integer(ctx.host.persistence().last_save_unix_s);
}

// Waits until the log holds, on disk, all that was written before.
class WaitAofTask final : public Task {
 public:
  WaitAofTask(Host& host, Lsn wanted, int64_t deadline_micros)
      : host_(host), wanted_(wanted), deadline_micros_(deadline_micros) {}

  TaskProgress Step(TaskContext& context) override {
    const bool durable = host_.durable_lsn() >= wanted_;
    if (!durable && !unblocked_ && !context.budget.unlimited() &&
        context.now_micros < deadline_micros_) {
      return TaskProgress::kWaiting;
    }
    if (unblocked_ == UnblockReason::kError) {
      context.reply.Error(kUnblockedError);
      return TaskProgress::kDone;
    }
    context.reply.Array(2);
    context.reply.Integer(durable ? 1 : 0);
    context.reply.Integer(0);
    return TaskProgress::kDone;
  }
  bool Unblock(UnblockReason reason) override {
    unblocked_ = reason;
    return true;
  }

 private:
  Host& host_;
  Lsn wanted_;
  int64_t deadline_micros_;
  std::optional<UnblockReason> unblocked_{};
};

void CmdWaitAof(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const int64_t local,
                  IntegerArgument(ctx.args[1], 0, 1, "value is out of range, must be positive"));
  ASSIGN_OR_REPLY(ctx, const int64_t replicas, IntegerArgument(ctx.args[2]));
  const auto timeout = IntegerArgument(ctx.args[3]);
  constexpr int64_t kMillisMax{std::numeric_limits<int64_t>::max() / 4000};
  if (!timeout.ok() || *timeout > kMillisMax) {
    return ctx.reply.Error("ERR timeout is not an integer or out of range");
  }
  if (*timeout < 0) return ctx.reply.Error("ERR timeout is negative");
  if (local > 0 && !ctx.host.services().config.appendonly) {
    return ctx.reply.Error(
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  }
  (void)replicas;  // there are none to wait for
  const int64_t deadline = local == 0      ? 0
                           : *timeout == 0 ? std::numeric_limits<int64_t>::max()
                                           : ctx.now_micros + *timeout * 1000;
  ctx.Continue(std::make_unique<WaitAofTask>(ctx.host, ctx.host.last_lsn(), deadline));
}

constexpr uint32_t kSaveFlags = kAdmin | kNoScript;

constexpr Command kRows[] = {
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
    {.name = "waitaof",
     .arity = 4,
     .flags = kNoScript | kBlocking,
     .categories = kCategoryConnection,
     .group = "generic",
     .summary = "Waits until all writes so far are in the log on disk.",
     .complexity = "O(1)",
     .syntax = "numlocal numreplicas timeout",
     .handler = CmdWaitAof},
};

}  // namespace

std::span<const Command> PersistenceCommands() { return kRows; }

}  // namespace cellar
