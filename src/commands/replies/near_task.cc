// See near_task.h.
#include "commands/replies/near_task.h"

#include <utility>

#include "commands/replies/cell_reply.h"
#include "commands/replies/scan_run.h"
#include "engine/table/table.h"

namespace cellar {
namespace {

void ReplyPlace(ReplyWriter& reply, const NearPlace* place, NearReply form) {
  if (place == nullptr) return reply.Null();
  reply.Array(form == NearReply::kEntry ? 3 : 2);
  if (form == NearReply::kEntry) {
    reply.Array(place->values.size());
    for (const IndexOrder::Value& value : place->values) {
      ReplyValue(reply, value.type, value.stored);
    }
  }
  reply.Bulk(place->row);
  reply.Integer(place->direction);
}

class NearTask final : public Task {
 public:
  NearTask(std::unique_ptr<NearSearch> search, NearReply form, Lsn depends_on)
      : search_(std::move(search)), form_(form), depends_on_(depends_on) {}

  TaskProgress Step(TaskContext& context) override {
    while (!search_->Step(context.budget.unlimited() ? kUnlimited : kSliceCells)) {
      if (context.budget.Spent()) return TaskProgress::kMore;
    }
    ReplyPlace(context.reply, search_->place(), form_);
    context.depends_on = depends_on_;
    return TaskProgress::kDone;
  }

 private:
  std::unique_ptr<NearSearch> search_;
  NearReply form_;
  Lsn depends_on_;
};

}  // namespace

void RunNear(CommandContext& ctx, const Table& table, std::unique_ptr<NearSearch> search,
             NearReply form) {
  if (search->Step(ctx.session.exec_running ? kUnlimited : kFirstSliceCells)) {
    return ReplyPlace(ctx.reply, search->place(), form);
  }
  search->Detach();
  ctx.Continue(std::make_unique<NearTask>(std::move(search), form, table.last_lsn()));
}

}  // namespace cellar
