// See heat_task.h.
#include "commands/reports/heat_task.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "engine/table/table.h"
#include "heat/heat_reading.h"
#include "resp/reply_writer.h"
#include "store/store.h"

namespace cellar {
namespace {

// A number takes some nanoseconds: so many are done in the handler.
constexpr size_t kNumbersAtOnce{64 * 1024};
// Between two looks at the clock.
constexpr size_t kSliceFrames{16};
constexpr size_t kSliceSteps{16};

struct Metric {
  std::string_view name;
  HeatMetric metric;
};
constexpr Metric kMetrics[] = {
    {"reads", HeatMetric::kReads}, {"writes", HeatMetric::kWrites}, {"bytes", HeatMetric::kBytes}};

void ReplyStep(ReplyWriter& reply, const HeatReport& report, size_t step, HeatMetric metric) {
  constexpr std::string_view kZero{":0\r\n"};
  const size_t ranges = report.keys.size();
  reply.Array(ranges);
  char* to = reply.buffer().Reserve(ranges * ReplyWriter::kIntegerBytesMax);
  CELLAR_ASSERT(step < report.steps.size());
  if (report.steps[step]) {
    CELLAR_ASSERT(report.steps[step]->ranges() == ranges);  // for which there is room
    for (const double count : report.steps[step]->of(metric)) {
      // Nothing that is counted is below zero; llround took a seventh of HEAT's time.
      // NOLINTNEXTLINE(bugprone-incorrect-roundings)
      to = ReplyWriter::EncodeInteger(to, static_cast<int64_t>(count + 0.5));
    }
  } else {
    for (size_t i = 0; i < ranges; ++i) to = std::copy(kZero.begin(), kZero.end(), to);
  }
  reply.buffer().CommitTo(to);
}

// What both forms of the reply begin with.
void ReplyHead(ReplyWriter& reply, std::string_view table, const HeatReport& report) {
  reply.Bulk("table");
  reply.Bulk(table);
  reply.Bulk("from");
  reply.Integer(report.from_minute * 60);
  reply.Bulk("step");
  reply.Integer(report.step_minutes * 60);
  reply.Bulk("keys");
  reply.Array(report.keys.size());
  for (const std::string& key : report.keys) reply.Bulk(key);
}

class HeatTask final : public Task {
 public:
  HeatTask(HeatReading reading, std::string table, Lsn depends_on)
      : reading_(std::move(reading)), table_(std::move(table)), depends_on_(depends_on) {}

  TaskProgress Step(TaskContext& context) override {
    while (!pulled_) {
      const Result<bool> pulled =
          reading_.Pull(context.budget.unlimited() ? HeatReading::kAllFrames : kSliceFrames);
      if (!pulled.ok()) {
        context.Fail(pulled.status());
        return TaskProgress::kDone;
      }
      pulled_ = *pulled;
      if (!pulled_ && context.budget.Spent()) return TaskProgress::kMore;
    }
    context.depends_on = depends_on_;
    return Reply(context) ? TaskProgress::kDone : TaskProgress::kMore;
  }
  bool Streams() const override { return pulled_; }
  size_t memory_bytes() const override { return reading_.memory_bytes(); }

 private:
  void Tail(ReplyWriter& reply) const;
  // True when all has been written.
  bool Reply(TaskContext& context);

  HeatReading reading_;
  std::string table_;
  Lsn depends_on_;
  bool pulled_{false};
  bool begun_{false};
  size_t metric_{0};  // what comes next
  size_t step_{0};
};

void HeatTask::Tail(ReplyWriter& reply) const {
  const HeatReport& report = reading_.report();
  reply.Bulk("large");
  reply.Array(report.large.size());
  for (const LargeRow& row : report.large) {
    reply.Array(2);
    reply.Bulk(row.row);
    reply.Unsigned(row.bytes);
  }
}

bool HeatTask::Reply(TaskContext& context) {
  const HeatReport& report = reading_.report();
  ReplyWriter& reply = context.reply;
  if (!begun_) {
    reply.Map(8);
    ReplyHead(reply, table_, report);
  }
  begun_ = true;
  for (; metric_ < std::size(kMetrics); ++metric_, step_ = 0) {
    if (step_ == 0) {
      reply.Bulk(kMetrics[metric_].name);
      reply.Array(report.steps.size());
    }
    while (step_ < report.steps.size()) {
      ReplyStep(reply, report, step_++, kMetrics[metric_].metric);
      if (step_ % kSliceSteps == 0 && context.budget.Spent()) return false;
    }
  }
  Tail(reply);
  return true;
}

}  // namespace

void RunHeat(CommandContext& ctx, const Table& table, const HeatQuery& query) {
  ASSIGN_OR_REPLY(
      ctx, HeatReading reading,
      HeatReading::Begin(&ctx.host.services().heat, table, query, ctx.store().now_micros()));
  if (query.head_only) {
    ctx.reply.Map(5);
    ReplyHead(ctx.reply, table.name(), reading.report());
    ctx.reply.Bulk("fine");
    ctx.reply.Integer(reading.report().fine_minute * 60);
    return ctx.DependsOn(table.last_lsn());
  }
  const bool is_short = reading.numbers() <= kNumbersAtOnce;
  auto task = std::make_unique<HeatTask>(std::move(reading), table.name(), table.last_lsn());
  // A short one takes a single step, here and now.
  if (!is_short) return ctx.Continue(std::move(task));
  const TaskBudget budget = TaskBudget::Unlimited();
  TaskContext step{.reply = ctx.reply, .budget = budget, .now_micros = ctx.now_micros};
  const TaskProgress progress = task->Step(step);
  CELLAR_ASSERT(progress == TaskProgress::kDone);
  ctx.DependsOn(step.depends_on);
  ctx.outcome = std::move(step.outcome);
}

}  // namespace cellar
