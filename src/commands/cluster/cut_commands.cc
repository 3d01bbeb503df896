// See cut_commands.h.
#include "commands/cluster/cut_commands.h"

#include <memory>
#include <vector>

#include "base/text/ascii.h"
#include "cluster/map_tables.h"
#include "commands/arguments/arguments.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/cut_run.h"
#include "commands/session/command_context.h"
#include "commands/session/task.h"
#include "store/store.h"

namespace cellar {
namespace {

class CutTask final : public Task {
 public:
  CutTask(Host& host, CutPurpose purpose) : host_(host), run_(host, {.purpose = purpose}) {}

  TaskProgress Step(TaskContext& context) override {
    if (context.budget.unlimited()) {
      context.Fail("CROSSSET a cut waits for other sets, which no EXEC does");
      return TaskProgress::kDone;
    }
    const CutRun::State state = run_.Step();
    if (state == CutRun::State::kRuns) return TaskProgress::kWaiting;
    context.depends_on = host_.last_lsn();
    if (state == CutRun::State::kGood)
      context.reply.Unsigned(run_.number());
    else
      context.Fail(run_.status());
    return TaskProgress::kDone;
  }

 private:
  Host& host_;
  CutRun run_;
};

}  // namespace

std::unique_ptr<Task> MakeCutTask(Host& host, CutPurpose purpose) {
  return std::make_unique<CutTask>(host, purpose);
}

void CmdClusterCut(CommandContext& ctx) {
  const bool is_backup = ctx.args.size() == 3;
  if (is_backup && !EqualsIgnoreCase(ctx.args[2], "BACKUP"))
    return ctx.Fail(UnexpectedWord(ctx.args[2], "BACKUP"));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ctx.Continue(MakeCutTask(ctx.host, is_backup ? CutPurpose::kBackup : CutPurpose::kRestorePoint));
}

void CmdClusterCuts(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const uint64_t count, ClusterPart::CountAsked(ctx.args.subspan(2)));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ctx.DependsOn(ctx.host.last_lsn());
  const std::vector<MapTables::CutRow> cuts = MapTables(ctx.store()).Cuts(count);
  ctx.reply.Array(cuts.size());
  for (const MapTables::CutRow& cut : cuts) {
    ctx.reply.Map(4);
    ctx.reply.Bulk("cut");
    ctx.reply.Unsigned(cut.number);
    ctx.reply.Bulk("time");
    ctx.reply.Integer(cut.time_micros);
    ctx.reply.Bulk("purpose");
    ctx.reply.Bulk(cut.purpose);
    ctx.reply.Bulk("state");
    ctx.reply.Bulk(MapTables::CutStateName(cut.state));
  }
}

}  // namespace cellar
