// RunInSlices: a read that mostly ends in its handler and else goes on in the loop, slice by slice
// (CNEAR, CEXPLAIN ANALYZE). What may go on in a worker too is a LongRead (long_read.h).
//
// A Read has
//   bool Pull(uint64_t cells)          examines about so many cells; true: it has ended
//   void Detach()                      goes over to snapshots, before anything else runs
//   void Reply(ReplyWriter& reply)     when it has ended
//   char FirstByte() const             as Task::FirstByte
#pragma once

#include <memory>
#include <utility>

#include "cellar/lsn.h"
#include "commands/replies/long_read.h"
#include "commands/session/command_context.h"
#include "commands/session/task.h"
#include "engine/rows/scan.h"

namespace cellar {

template <typename Read>
class SlicedRead final : public Task {
 public:
  SlicedRead(Read read, Lsn depends_on) : read_(std::move(read)), depends_on_(depends_on) {}

  TaskProgress Step(TaskContext& context) override {
    while (!read_.Pull(context.budget.unlimited() ? kUnlimited : kSliceCells)) {
      if (context.budget.Spent()) return TaskProgress::kMore;
    }
    read_.Reply(context.reply);
    context.depends_on = depends_on_;
    return TaskProgress::kDone;
  }
  char FirstByte() const override { return read_.FirstByte(); }

 private:
  Read read_;
  Lsn depends_on_;
};

// Does a first slice, and replies or hands the rest over. REQUIRES: as CommandContext::Continue.
template <typename Read>
void RunInSlices(CommandContext& ctx, Read read, Lsn depends_on) {
  ctx.DependsOn(depends_on);
  if (read.Pull(FirstBudget(ctx.session.exec_running, false))) return read.Reply(ctx.reply);
  read.Detach();
  ctx.Continue(std::make_unique<SlicedRead<Read>>(std::move(read), depends_on));
}

}  // namespace cellar
