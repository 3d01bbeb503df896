// See change_task.h.
// Run does the first slice, ChangeTask the others. ChangeEnd knows what readers and listeners are
// told, at the end or after an error.
#include "commands/replies/change_task.h"

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "commands/config/config.h"
#include "commands/replies/scan_heat.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "store/sliced_change.h"

namespace cellar {
namespace {

// Cells examined in the handler itself, and between two looks at the clock in a task. Deleting
// costs several times as much as reading.
constexpr uint64_t kStepCells{2 * 1024};
constexpr uint64_t kSliceCells{128};

// What is needed after the change, when its table may be gone.
struct ChangeEnd {
  ChangeReply reply;
  Host* host;
  std::string keyspace;
  std::string table;
  uint64_t rows_told{0};
  bool schema_told{false};
  ScanHeat heat;
  std::unique_ptr<Task> then{};

  void Finish(ReplyWriter& writer, const SlicedChange& change) {
    if (reply == ChangeReply::kOk) {
      writer.Ok();
    } else {
      writer.Unsigned(change.rows());
    }
    NotifyOfRows(change);
  }

  // Behind each slice: of a schema others are told as soon as it is the new one, as followers are
  // by its record.
  void NotifyOfSchema(const SlicedChange& change) {
    if (!change.schema_changed() || std::exchange(schema_told, true)) return;
    CELLAR_ASSERT(reply == ChangeReply::kOk);
    Notify();
  }

  // Of a change that ends before it is done. What its slices did stays done; of a copy there is
  // nothing.
  void NotifyOfPart(const SlicedChange& change) {
    if (reply != ChangeReply::kCopied) NotifyOfRows(change);
  }

  // A conversion of cells is no event: that of the schema has told of it.
  void NotifyOfRows(const SlicedChange& change) {
    if (reply == ChangeReply::kOk) return TellReaders(change);
    if (change.rows() > 0) Notify();
  }

  void Notify() const {
    // In the order of ChangeReply.
    constexpr std::string_view kEvents[]{"cdelrange", "cupdate", "family.alter", "copy_to"};
    CELLAR_ASSERT(static_cast<size_t>(reply) < std::size(kEvents));
    const bool is_of_table = reply == ChangeReply::kOk || reply == ChangeReply::kCopied;
    NotifyTable(*host, is_of_table ? kNotifyGeneric : kNotifyTable,
                kEvents[static_cast<size_t>(reply)], keyspace, table);
  }

  // Behind a slice of an update, a deletion or a conversion, which others see before the rest is
  // done, and which stays if its client leaves.
  void TellReaders(const SlicedChange& change) {
    CELLAR_ASSERT(change.rows() >= rows_told);
    if (reply == ChangeReply::kCopied || change.rows() == rows_told) return;
    rows_told = change.rows();
    Tracking& tracking = host->services().tracking;
    if (tracking.active()) tracking.TableChanged(*host, keyspace, table);
  }

  // An update or a copy may need memory for as long as it runs.
  // The dispatcher has asked when the command came, but the change itself may have used memory
  // since. What deletes is never held up.
  Status CheckMemory(const SlicedChange& change) const {
    if (reply != ChangeReply::kRowsUpdated && reply != ChangeReply::kCopied) return Status::Ok();
    const int64_t memory_max = host->services().config.maxmemory;
    if (memory_max <= 0 || host->memory_used_bytes() <= static_cast<uint64_t>(memory_max)) {
      return Status::Ok();
    }
    if (reply == ChangeReply::kCopied) {
      return Status::Error(ErrorCode::kOom, "command not allowed when used memory > 'maxmemory'.");
    }
    return Status::Error(ErrorCode::kOom, "used memory > 'maxmemory' after " +
                                              FormatUint64(change.rows()) + " rows");
  }
};

class ChangeTask final : public Task {
 public:
  ChangeTask(std::unique_ptr<SlicedChange> change, ChangeEnd end, WorkMemory::Lease lease)
      : lease_(std::move(lease)), change_(std::move(change)), end_(std::move(end)) {}

  TaskProgress Step(TaskContext& context) override {
    if (has_finished_) return end_.then->Step(context);
    if (!lease_.granted() && !context.budget.unlimited()) return TaskProgress::kWaiting;
    while (!change_->done()) {
      Status status = context.budget.unlimited() ? Status::Ok() : end_.CheckMemory(*change_);
      if (status.ok()) status = change_->Step(kSliceCells);
      end_.NotifyOfSchema(*change_);
      end_.heat.NoteRows(change_->rows(), change_->place(), HeatMetric::kWrites);
      if (!status.ok()) {
        end_.NotifyOfPart(*change_);
        context.Fail(status);
        // The error tells of the slices that were logged before it.
        context.depends_on = end_.host->store().last_lsn();
        return TaskProgress::kDone;
      }
      if (!change_->done() && context.budget.Spent()) {
        end_.TellReaders(*change_);
        return TaskProgress::kMore;
      }
    }
    context.depends_on = end_.host->store().last_lsn();
    if (end_.then != nullptr) {
      has_finished_ = true;
      end_.NotifyOfRows(*change_);
      change_.reset();  // rows that it keeps where they are may go
      return end_.then->Step(context);
    }
    end_.Finish(context.reply, *change_);
    return TaskProgress::kDone;
  }

  void Abandon() override {
    if (!has_finished_) end_.NotifyOfPart(*change_);
  }

  size_t memory_bytes() const override { return change_ == nullptr ? 0 : change_->memory_bytes(); }

 private:
  WorkMemory::Lease lease_;  // outlives the change
  std::unique_ptr<SlicedChange> change_;
  ChangeEnd end_;
  bool has_finished_{false};
};

// What it takes in all, from what was `held` for its list, or else for what it will gather from
// here on, of which it has next to nothing yet.
WorkMemory::Lease TakeRest(CommandContext& ctx, const SlicedChange& change,
                           WorkMemory::Lease held) {
  const size_t bytes = change.memory_bytes_max();
  held.ShrinkTo(bytes);
  if (held.bytes() == bytes) return held;
  held = {};
  const Config& config = ctx.host.services().config;
  WorkMemory& work = ctx.host.services().work_memory;
  work.Configure(config.work_max_memory, config.maxmemory);
  return ctx.session.exec_running ? work.TakeAtOnce(WorkKind::kUpdate, bytes)
                                  : work.Take(WorkKind::kUpdate, bytes);
}

}  // namespace

static void Run(CommandContext& ctx, std::unique_ptr<SlicedChange> change, ChangeEnd end,
                WorkMemory::Lease held) {
  if (!change->done()) {
    // A small change ends in this first slice and never becomes a task.
    const Status status = change->Step(kStepCells);
    end.NotifyOfSchema(*change);
    end.heat.NoteRows(change->rows(), change->place(), HeatMetric::kWrites);
    ctx.DependsOn(ctx.store().last_lsn());
    if (!status.ok()) end.NotifyOfPart(*change);
    if (!status.ok()) return ctx.Fail(status);
  }
  if (!change->done()) {
    end.TellReaders(*change);
    // Inside EXEC the dispatcher runs the task to its end.
    held = TakeRest(ctx, *change, std::move(held));
    return ctx.Continue(
        std::make_unique<ChangeTask>(std::move(change), std::move(end), std::move(held)));
  }
  ctx.DependsOn(ctx.store().last_lsn());
  if (end.then != nullptr) {
    end.NotifyOfRows(*change);
    return ctx.Continue(std::move(end.then));
  }
  end.Finish(ctx.reply, *change);
}

void RunChange(CommandContext& ctx, const Table& table, std::unique_ptr<SlicedChange> change,
               ChangeReply reply, WorkMemory::Lease held, std::unique_ptr<Task> then) {
  CELLAR_ASSERT(change != nullptr);
  ChangeEnd end{reply, &ctx.host, table.keyspace(), table.name(), 0, false, {}, std::move(then)};
  if (reply != ChangeReply::kOk) end.heat = ScanHeat(ctx.host, table, ScanHeat::Way::kJumps);
  Run(ctx, std::move(change), std::move(end), std::move(held));
}

std::unique_ptr<Task> ChangeAsTask(Host& host, const Table& table,
                                   std::unique_ptr<SlicedChange> change,
                                   std::unique_ptr<Task> then) {
  CELLAR_ASSERT(change != nullptr);
  ChangeEnd end{ChangeReply::kOk, &host, table.keyspace(), table.name(), 0, false, {},
                std::move(then)};
  return std::make_unique<ChangeTask>(std::move(change), std::move(end), WorkMemory::Lease());
}

void RunCopy(CommandContext& ctx, std::string_view keyspace, std::string_view table,
             std::unique_ptr<SlicedChange> change) {
  CELLAR_ASSERT(change != nullptr);
  Run(ctx, std::move(change),
      ChangeEnd{
          ChangeReply::kCopied, &ctx.host, std::string(keyspace), std::string(table), 0, false, {}},
      {});
}

}  // namespace cellar
