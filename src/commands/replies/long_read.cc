// See long_read.h.
#include "commands/replies/long_read.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/cycle_clock.h"
#include "btree/btree.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "engine/rows/row_reader.h"
#include "engine/table/read_view.h"
#include "engine/table/table.h"

namespace cellar {
namespace {

// From so many cells on a read is long: about half a millisecond.
constexpr double kLongCells{4'096};
// With more ranges it is not worth looking at each.
constexpr size_t kRangesMax{16};

double ShareBefore(BTreeCursor& at, const KeyBound& bound) {
  if (bound.at_end) return 1;
  at.Seek(bound.bytes);
  return at.valid() ? at.share_before() : 1;
}

// Which part of the group's entries stands in the scan's ranges; 0 where that is not looked at.
double ShareOfRanges(const ReadView& view, const ScanShape& shape, size_t group) {
  if (shape.ranges->size() > kRangesMax) return 0;
  BTreeCursor at = view.MakeCursor(group);
  double share = 0;
  for (const KeyRange& range : *shape.ranges) {
    const bool is_all = range.begin.bytes.empty() && range.end.at_end;
    if (!range.empty())
      share +=
          is_all ? 1 : std::max(0.0, ShareBefore(at, range.end) - ShareBefore(at, range.begin));
  }
  return share;
}

// Cells that are examined of a row, about, of a group of `entries`.
double CellsOfRow(const CellPlan& plan, double entries, double rows) {
  const double all = std::max(1.0, entries / rows);
  size_t ranges = 0;
  for (const ColumnSet::Family& family : plan.choice.columns.families()) {
    if (family.whole) return all;
    ranges += family.ranges.size();
  }
  return std::min(all, static_cast<double>(std::max<size_t>(ranges, 1)));
}

}  // namespace

// An estimate from counters and from where the ranges lie in the largest tree; no cell is read. It
// errs towards short: a long read that begins in the loop only costs a few slices there, while a
// short one in a worker would wait for a thread.
bool IsKnownLong(const Host& host, const Table& table, const Scan& scan, uint64_t rows_max,
                 uint64_t cells_max) {
  // Without workers there is no choice to be made.
  if (host.services().config.read_threads == 0) return false;
  const auto cells = static_cast<double>(table.cells());
  if (cells < kLongCells) return false;
  const auto rows = static_cast<double>(std::max<uint64_t>(table.counters().rows, 1));
  const double row_cells = std::max(1.0, cells / rows);
  if (static_cast<double>(rows_max) * row_cells < kLongCells) return false;
  const ScanShape shape = scan.shape();
  // How much of an index is walked is not estimated: such a scan counts as short.
  if (shape.index_order != nullptr || shape.ranges == nullptr || shape.plan == nullptr)
    return false;
  // How soon it has enough of those that it chooses, nobody knows.
  const bool is_limited = rows_max != kUnlimited || cells_max != kUnlimited;
  if (is_limited && (!shape.takes_all_rows || shape.plan->filter != nullptr)) return false;
  const ReadView& view = scan.view();
  size_t largest = 0;
  double entries = 0;
  for (size_t group = 0; group < shape.groups.size(); ++group) {
    if (!shape.groups[group] || static_cast<double>(view.entries(group)) < entries) continue;
    largest = group;
    entries = static_cast<double>(view.entries(group));
  }
  if (entries < kLongCells) return false;
  double rows_expected = ShareOfRanges(view, shape, largest) * rows;
  if (rows_max != kUnlimited)
    rows_expected = std::min(rows_expected, static_cast<double>(rows_max));
  double expected = rows_expected * CellsOfRow(*shape.plan, entries, rows);
  if (cells_max != kUnlimited) expected = std::min(expected, static_cast<double>(cells_max));
  return expected >= kLongCells;
}

// --- the read

void LongRead::Offload(WorkerPool& workers, size_t threads) {
  CELLAR_ASSERT(!beside_);
  PublishSizes();
  beside_ = true;
  in_worker_ = true;
  workers.Start(this, threads);
}

uint64_t LongRead::TakeBack() {
  CELLAR_ASSERT(beside_);
  CELLAR_ASSERT(done());
  beside_ = false;
  in_worker_ = false;
  return cycles_;
}

void LongRead::PublishSizes() {
  reply_bytes_.store(ReplyBytes(), std::memory_order_relaxed);
  memory_bytes_.store(MemoryBytes(), std::memory_order_relaxed);
}

WorkerPool::Progress LongRead::Run(WorkerPool::Turn& turn) {
  CELLAR_ASSERT(in_worker_);
  const uint64_t begin = CycleClock::Now();
  bool pulled = false;
  uint32_t slices = 0;
  do {
    pulled = PullSlice();
    if (++slices % kSlicesBetweenFigures == 0) PublishSizes();
  } while (!pulled && !turn.MustPause());
  PublishSizes();
  cycles_ += CycleClock::Now() - begin;
  return pulled ? WorkerPool::Progress::kDone : WorkerPool::Progress::kPaused;
}

// --- the task

LongReadTask::~LongReadTask() {
  if (read_->beside()) host_.services().readers.Abandon(std::move(read_));
}

// Most reads end within a slice or two; only what is still going on then is worth a worker.
bool LongReadTask::PullInLoop(TaskContext& context, TaskProgress* progress) {
  CELLAR_ASSERT(!read_->beside());
  if (context.budget.unlimited()) {
    const bool pulled = read_->Pull(kUnlimited);
    CELLAR_ASSERT(pulled);
    return true;
  }
  const auto threads = static_cast<size_t>(host_.services().config.read_threads);
  bool spent = false;
  // Without workers: until the turn is over, and again in the next one. With them: a few slices,
  // and the rest goes to a worker in this very step.
  while (threads == 0 || (start_ == LongReadStart::kInLoop && slices_ < kLoopSlices && !spent)) {
    if (read_->PullSlice()) return true;
    ++slices_;
    spent = context.budget.Spent();
    if (threads > 0 || !spent) continue;
    *progress = TaskProgress::kMore;
    return false;
  }
  ++host_.services().stats.reads_beside;
  read_->Offload(host_.services().readers, threads);
  *progress = TaskProgress::kWaiting;
  return false;
}

bool LongReadTask::PullToEnd(TaskContext& context, TaskProgress* progress) {
  if (!read_->beside() && (read_->may_work() || context.budget.unlimited()))
    return PullInLoop(context, progress);
  *progress = TaskProgress::kWaiting;
  if (!read_->beside() || !read_->done()) return false;
  context.cycles_beside = read_->TakeBack();
  return true;
}

TaskProgress LongReadTask::Step(TaskContext& context) {
  TaskProgress progress = TaskProgress::kMore;
  if (!complete_) {
    if (!PullToEnd(context, &progress)) return progress;
    // The read is the loop's again, which alone may speak to HEAT.
    read_->RecordHeat();
    Complete();
    complete_ = true;
    if (read_->may_work()) read_->KeepWhatItHolds();
  }
  context.depends_on = depends_on_;
  return Reply(context) ? TaskProgress::kDone : TaskProgress::kMore;
}

}  // namespace cellar
