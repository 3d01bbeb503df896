// See change_task.h.
#include "commands/replies/change_task.h"

#include <string>
#include <utility>

#include "base/assert.h"
#include "commands/config/config.h"
#include "commands/session/table_events.h"

namespace cellar {
namespace {

// Cells examined in the handler itself, and between two looks at the clock in a task. Deleting
// costs several times as much as reading.
constexpr uint64_t kFirstSliceCells{2 * 1024};
constexpr uint64_t kSliceCells{128};

// What is needed after the change, when its table may be gone.
struct ChangeEnd {
  ChangeReply reply;
  Host* host;
  std::string keyspace;
  std::string table;

  void Finish(ReplyWriter& writer, const SlicedChange& change) const {
    const bool rows = reply == ChangeReply::kRowsDeleted;
    if (rows) {
      writer.Unsigned(change.rows_deleted());
    } else {
      writer.Ok();
    }
    if (!rows || change.rows_deleted() > 0) Notify();
  }

  void NotifyIfChanged(const SlicedChange& change) const {
    if (change.rows_deleted() > 0) Notify();
  }

  void Notify() const {
    const bool rows = reply == ChangeReply::kRowsDeleted;
    NotifyTable(*host, rows ? kNotifyTable : kNotifyGeneric, rows ? "cdelrange" : "family.alter",
                keyspace, table);
  }
};

class ChangeTask final : public Task {
 public:
  ChangeTask(std::unique_ptr<SlicedChange> change, ChangeEnd end)
      : change_(std::move(change)), end_(std::move(end)) {}

  TaskProgress Step(TaskContext& context) override {
    while (!change_->done()) {
      const Status status = change_->Step(kSliceCells);
      if (!status.ok()) {
        end_.NotifyIfChanged(*change_);  // rows that are gone stay gone
        context.reply.Error(status);
        context.depends_on = end_.host->store().last_lsn();
        return TaskProgress::kDone;
      }
      if (!change_->done() && context.budget.Spent()) return TaskProgress::kMore;
    }
    end_.Finish(context.reply, *change_);
    context.depends_on = end_.host->store().last_lsn();
    return TaskProgress::kDone;
  }

 private:
  std::unique_ptr<SlicedChange> change_;
  ChangeEnd end_;
};

}  // namespace

void RunChange(CommandContext& ctx, const Table& table, std::unique_ptr<SlicedChange> change,
               ChangeReply reply) {
  CELLAR_ASSERT(change != nullptr);
  ChangeEnd end{reply, &ctx.host, table.keyspace(), table.name()};
  if (!change->done()) {
    const Status status = change->Step(kFirstSliceCells);
    if (!status.ok()) end.NotifyIfChanged(*change);
    REPLY_IF_ERROR(ctx, status);
  }
  if (!change->done()) {
    // Inside EXEC the dispatcher runs the task to its end.
    return ctx.Continue(std::make_unique<ChangeTask>(std::move(change), std::move(end)));
  }
  ctx.DependsOn(ctx.store().last_lsn());
  end.Finish(ctx.reply, *change);
}

}  // namespace cellar
