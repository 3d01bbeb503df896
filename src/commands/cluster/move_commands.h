// TABLET MOVE, CANCEL and JOBS: tablets that go from one set to another, as the director has them
// (cluster/move_jobs.h). They are subcommands of TABLET (tablet_commands.cc).
#pragma once

namespace cellar {

struct CommandContext;

void CmdTabletMove(CommandContext& ctx);
void CmdTabletAdopt(CommandContext& ctx);
void CmdTabletCancel(CommandContext& ctx);
void CmdTabletJobs(CommandContext& ctx);

}  // namespace cellar
