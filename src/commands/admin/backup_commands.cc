// BACKUP: copies of the store in a folder, made while clients write (store/history/backup.h).
// Words, states and replies are those of Redis 8.10; STATUS also tells the id of the last step.
//
// In a cluster of several sets they are of all of them (commands/cluster/backup_task.h), with LOCAL
// of this node.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "commands/admin/admin_commands.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/backup_task.h"
#include "commands/cluster/cluster_part.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "replica/set_node.h"
#include "store/format/store_files.h"
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
    if (backup.state() != BackupState::kSealed) {
      context.Fail("ERR the backup failed: " + backup.error());
    } else if (!backup.is_part()) {
      context.reply.Ok();
    } else {
      ReplyPart(backup, context.reply);
    }
    return TaskProgress::kDone;
  }

 private:
  // What whoever describes the whole has to know of it.
  static void ReplyPart(const Backup& backup, ReplyWriter& reply) {
    const SnapshotEntry snapshot = backup.sealed_snapshot().value_or(SnapshotEntry());
    reply.Array(4);
    reply.Bulk(backup.id());
    reply.Bulk(FormatFileName(StoreFileKind::kSnapshot, snapshot.number));
    reply.Unsigned(snapshot.bytes);
    reply.Bulk(fmt::format("{:016x}", snapshot.hash));
  }

  Host& host_;
};

// DESCRIBE: likewise, until the file is written.
class DescribeTask final : public Task {
 public:
  explicit DescribeTask(Host& host) : host_(host), number_(host.store().backup().describing()) {}

  TaskProgress Step(TaskContext& context) override {
    if (host_.loading()) {
      context.Fail("ERR the store was opened again meanwhile");
      return TaskProgress::kDone;
    }
    // Another one may have written it anew since.
    const Backup::Description& done = host_.store().backup().described();
    if (done.number < number_) return TaskProgress::kWaiting;
    if (done.status.ok())
      context.reply.Ok();
    else
      context.Fail(done.status);
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  const uint64_t number_;
};

enum class Scope : uint8_t {
  kHere,     // this node's store
  kPart,     // the part of this node's set in a backup of the cluster
  kCluster,  // all sets
};

// LOCAL, or nothing: that is the cluster, where there is one of several sets. False: it was
// answered.
bool ReadScope(CommandContext& ctx, Scope* scope) {
  *scope = ctx.host.routes() ? Scope::kCluster : Scope::kHere;
  if (ctx.args.size() == 2) return true;
  if (ctx.args.size() == 3 && EqualsIgnoreCase(ctx.args[2], "LOCAL")) {
    *scope = Scope::kHere;
    return true;
  }
  ctx.Fail(UnexpectedWord(ctx.args[2], "LOCAL"));
  return false;
}

// What the leader of a set does with its part. False: it was answered.
bool MayHavePart(CommandContext& ctx) {
  const SetNode* const set = ctx.host.replication().set();
  if (!ClusterPart::IsOfCluster(ctx)) return false;
  if (set->open()) return true;
  ctx.Fail("TRYAGAIN this node does not lead its set");
  return false;
}

// Whether the command is of all sets, or wrong, and so was answered.
bool GoesOver(CommandContext& ctx, BackupTask::Verb verb) {
  Scope scope{};
  if (!ReadScope(ctx, &scope)) return true;
  if (scope != Scope::kCluster) return false;
  ctx.Continue(std::make_unique<BackupTask>(ctx, verb));
  return true;
}

void CmdStart(CommandContext& ctx) {
  if (ctx.args.size() == 3 && EqualsIgnoreCase(ctx.args[2], "PART")) {
    if (!MayHavePart(ctx)) return;
    REPLY_IF_ERROR(ctx, ctx.store().backup().StartPart(ctx.store().engine().cluster().set));
    return ctx.reply.Ok();
  }
  if (GoesOver(ctx, BackupTask::Verb::kStart)) return;
  REPLY_IF_ERROR(ctx, ctx.store().backup().Start());
  ctx.reply.Ok();
}

void CmdSeal(CommandContext& ctx) {
  if (ctx.args.size() == 4 && EqualsIgnoreCase(ctx.args[2], "PART")) {
    ASSIGN_OR_REPLY(ctx, const uint64_t cut, ParseCount("PART", ctx.args[3], 1));
    if (!MayHavePart(ctx)) return;
    REPLY_IF_ERROR(ctx, ctx.store().backup().SealCut(cut));
    return ctx.Continue(std::make_unique<SealTask>(ctx.host));
  }
  if (ctx.args.size() > 3) return ctx.SyntaxError();
  if (GoesOver(ctx, BackupTask::Verb::kSeal)) return;
  REPLY_IF_ERROR(ctx, ctx.store().backup().Seal());
  ctx.Continue(std::make_unique<SealTask>(ctx.host));
}

void CmdDescribe(CommandContext& ctx) {
  if (!MayHavePart(ctx)) return;
  REPLY_IF_ERROR(ctx, ctx.store().backup().Describe(std::string(ctx.args[2])));
  ctx.Continue(std::make_unique<DescribeTask>(ctx.host));
}

void CmdAbort(CommandContext& ctx) {
  if (GoesOver(ctx, BackupTask::Verb::kAbort)) return;
  REPLY_IF_ERROR(ctx, ctx.store().backup().Abort("aborted"));
  ctx.reply.Ok();
}

void CmdCleanup(CommandContext& ctx) {
  if (GoesOver(ctx, BackupTask::Verb::kCleanup)) return;
  REPLY_IF_ERROR(ctx, ctx.store().backup().Cleanup());
  ctx.reply.Ok();
}

void CmdList(CommandContext& ctx) {
  if (GoesOver(ctx, BackupTask::Verb::kList)) return;
  const std::vector<std::string> paths = ctx.store().backup().Files();
  ctx.reply.Array(paths.size());
  for (const std::string& path : paths) ctx.reply.Bulk(path);
}

void CmdStatus(CommandContext& ctx) {
  if (GoesOver(ctx, BackupTask::Verb::kStatus)) return;
  const Backup& backup = ctx.store().backup();
  ctx.reply.Map(backup.is_part() ? 6 : 5);
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
  if (!backup.is_part()) return;
  ctx.reply.Bulk("cut");
  ctx.reply.Unsigned(backup.cut());
}

constexpr uint32_t kChangeFlags = kAdmin | kNoScript;

constexpr Command kBackupRows[] = {
    {.name = "start",
     .arity = -2,
     .flags = kChangeFlags,
     .group = "server",
     .summary = "Begins a backup: writes a snapshot into the backup folder, in the background.",
     .complexity = "O(n) in the number of locality groups and indexes",
     .syntax = "[LOCAL|PART]",
     .handler = CmdStart},
    {.name = "seal",
     .arity = -2,
     .flags = kChangeFlags | kNoMulti,
     .group = "server",
     .summary = "Ends a backup with this moment, and replies when its files are complete.",
     .complexity = "O(1), while other clients are served",
     .syntax = "[LOCAL|PART cut]",
     .handler = CmdSeal},
    {.name = "status",
     .arity = -2,
     .flags = kAdmin | kStale,
     .group = "server",
     .summary = "Returns the state of the backup, when it was begun and sealed, and its last step.",
     .complexity = "O(1)",
     .syntax = "[LOCAL]",
     .handler = CmdStatus},
    {.name = "list",
     .arity = -2,
     .flags = kAdmin | kStale,
     .group = "server",
     .summary = "Returns the paths of the backup's files that are complete.",
     .complexity = "O(n) in the number of files",
     .syntax = "[LOCAL]",
     .handler = CmdList},
    {.name = "abort",
     .arity = -2,
     .flags = kChangeFlags,
     .group = "server",
     .summary = "Gives a backup up that is not sealed.",
     .complexity = "O(1)",
     .syntax = "[LOCAL]",
     .handler = CmdAbort},
    {.name = "cleanup",
     .arity = -2,
     .flags = kChangeFlags,
     .group = "server",
     .summary = "Removes a backup that is sealed or has failed.",
     .complexity = "O(1)",
     .syntax = "[LOCAL]",
     .handler = CmdCleanup},
    {.name = "describe",
     .arity = 3,
     .flags = kChangeFlags | kNoMulti,
     .group = "server",
     .summary =
         "Writes down what a backup of the cluster is made of, beside the part of a set. For "
         "nodes of the cluster.",
     .complexity = "O(1), while other clients are served",
     .syntax = "text",
     .handler = CmdDescribe},
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
