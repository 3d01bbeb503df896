// BACKUP: copies of the store in a folder, made while clients write (store/history/backup.h).
// Words, states and replies are those of Redis 8.10; STATUS also tells the id of the last step.
#include <memory>
#include <string>

#include "commands/admin/admin_commands.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "store/store.h"

namespace cellar {
namespace {

// SEAL: the client waits until the backup is sealed; others are served meanwhile.
class SealTask final : public Task {
 public:
  explicit SealTask(Host& host) : host_(host) {}

  TaskProgress Step(TaskContext& context) override {
    if (host_.loading()) {
      context.Fail("ERR the store was opened again meanwhile");
      return TaskProgress::kDone;
    }
    const Backup& backup = host_.store().backup();
    if (backup.sealing()) return TaskProgress::kWaiting;
    if (backup.state() == BackupState::kSealed) {
      context.reply.Ok();
    } else {
      context.Fail("ERR the backup failed: " + backup.error());
    }
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
};

void CmdStart(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, ctx.store().backup().Start());
  ctx.reply.Ok();
}

void CmdSeal(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, ctx.store().backup().Seal());
  ctx.Continue(std::make_unique<SealTask>(ctx.host));
}

void CmdAbort(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, ctx.store().backup().Abort("aborted"));
  ctx.reply.Ok();
}

void CmdCleanup(CommandContext& ctx) {
  REPLY_IF_ERROR(ctx, ctx.store().backup().Cleanup());
  ctx.reply.Ok();
}

void CmdList(CommandContext& ctx) {
  const std::vector<std::string> paths = ctx.store().backup().Files();
  ctx.reply.Array(paths.size());
  for (const std::string& path : paths) ctx.reply.Bulk(path);
}

void CmdStatus(CommandContext& ctx) {
  const Backup& backup = ctx.store().backup();
  ctx.reply.Map(5);
  ctx.reply.Bulk("state");
  ctx.reply.Bulk(BackupStateName(backup.state()));
  ctx.reply.Bulk("error");
  ctx.reply.Bulk(backup.error());
  ctx.reply.Bulk("start_time");
  ctx.reply.Integer(backup.start_unix_s());
  ctx.reply.Bulk("end_time");
  ctx.reply.Integer(backup.end_unix_s());
  ctx.reply.Bulk("id");
  ctx.reply.Bulk(backup.id());
}

constexpr uint32_t kChangeFlags = kAdmin | kNoScript;

constexpr Command kBackupRows[] = {
    {.name = "start",
     .arity = 2,
     .flags = kChangeFlags,
     .group = "server",
     .summary = "Begins a backup: writes a snapshot into the backup folder, in the background.",
     .complexity = "O(n) in the number of locality groups and indexes",
     .syntax = "",
     .handler = CmdStart},
    {.name = "seal",
     .arity = 2,
     .flags = kChangeFlags | kNoMulti,
     .group = "server",
     .summary = "Ends a backup with this moment, and replies when its files are complete.",
     .complexity = "O(1), while other clients are served",
     .syntax = "",
     .handler = CmdSeal},
    {.name = "status",
     .arity = 2,
     .flags = kAdmin | kStale,
     .group = "server",
     .summary = "Returns the state of the backup, when it was begun and sealed, and its last step.",
     .complexity = "O(1)",
     .syntax = "",
     .handler = CmdStatus},
    {.name = "list",
     .arity = 2,
     .flags = kAdmin | kStale,
     .group = "server",
     .summary = "Returns the paths of the backup's files that are complete.",
     .complexity = "O(n) in the number of files",
     .syntax = "",
     .handler = CmdList},
    {.name = "abort",
     .arity = 2,
     .flags = kChangeFlags,
     .group = "server",
     .summary = "Gives a backup up that is not sealed.",
     .complexity = "O(1)",
     .syntax = "",
     .handler = CmdAbort},
    {.name = "cleanup",
     .arity = 2,
     .flags = kChangeFlags,
     .group = "server",
     .summary = "Removes a backup that is sealed or has failed.",
     .complexity = "O(1)",
     .syntax = "",
     .handler = CmdCleanup},
    HelpSubcommand("server"),
};

constexpr Command kBackupCommands[] = {
    {.name = "backup",
     .arity = -2,
     .group = "server",
     .summary = "Makes copies of the store while clients write.",
     .complexity = "Depends on the subcommand.",
     .subcommands = kBackupRows},
};

}  // namespace

std::span<const Command> BackupCommands() { return kBackupCommands; }

}  // namespace cellar
