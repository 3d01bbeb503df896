// See change_task.h.
#include "commands/change_task.h"

#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// Cells examined in the handler itself, and between two looks at the clock in a task. Deleting
// costs several times as much as reading.
constexpr uint64_t kFirstSliceCells{2 * 1024};
constexpr uint64_t kSliceCells{128};

void WriteReply(ReplyWriter& reply, const SlicedChange& change, ChangeReply kind) {
  if (kind == ChangeReply::kRowsDeleted) return reply.Unsigned(change.rows_deleted());
  reply.Ok();
}

class ChangeTask final : public Task {
 public:
  ChangeTask(std::unique_ptr<SlicedChange> change, ChangeReply reply, Store& store)
      : change_(std::move(change)), reply_(reply), store_(&store) {}

  TaskProgress Step(TaskContext& context) override {
    while (!change_->done()) {
      const Status status = change_->Step(kSliceCells);
      if (!status.ok()) {
        context.reply.Error(status);
        context.depends_on = store_->last_lsn();
        return TaskProgress::kDone;
      }
      if (!change_->done() && context.budget.Spent()) return TaskProgress::kMore;
    }
    WriteReply(context.reply, *change_, reply_);
    context.depends_on = store_->last_lsn();
    return TaskProgress::kDone;
  }

 private:
  std::unique_ptr<SlicedChange> change_;
  ChangeReply reply_;
  Store* store_;
};

}  // namespace

void RunChange(CommandContext& ctx, std::unique_ptr<SlicedChange> change, ChangeReply reply) {
  CELLAR_ASSERT(change != nullptr);
  if (!change->done()) REPLY_IF_ERROR(ctx, change->Step(kFirstSliceCells));
  if (!change->done()) {
    // Inside EXEC the dispatcher runs the task to its end.
    return ctx.Continue(std::make_unique<ChangeTask>(std::move(change), reply, ctx.store()));
  }
  ctx.DependsOn(ctx.store().last_lsn());
  WriteReply(ctx.reply, *change, reply);
}

}  // namespace cellar
