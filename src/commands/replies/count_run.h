// CountRun: CCOUNT at work. Counts what a scan gives out: rows, super columns (pairs of family and
// first component of the qualifier, row by row), columns or cells. Nothing is collected, so a count
// of millions of rows needs no memory.
//
// Many rows, or cells, are counted as REDUCE ROWS and COUNT of a CAGG count them, where that goes
// straight over the leaves (CountAsFold in count_run.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cellar/lsn.h"
#include "commands/arguments/read_arguments.h"
#include "commands/replies/long_read.h"
#include "commands/replies/scan_heat.h"
#include "commands/session/command_context.h"
#include "commands/session/task.h"
#include "engine/aggregate/aggregate_job.h"
#include "engine/rows/scan.h"
#include "engine/schema/schema.h"
#include "engine/table/table.h"

namespace cellar {

class Store;

class CountRun {
 public:
  CountRun(std::unique_ptr<Scan> scan, CountBy by, const TableSchema& schema);
  // What is examined is told to HEAT.
  void SetHeat(const ScanHeat& heat) { heat_ = heat; }
  // What CCOUNT asks for. The errors of Store::ScanRows.
  static Result<CountRun> Open(Store& store, const Table& table, ReadRequest* request);
  CountRun(CountRun&&) = default;

  // Examines `cells` cells; true when all is counted.
  bool Pull(uint64_t cells);
  // Pull in a worker; the loop calls RecordHeat() before it goes on with the run.
  bool PullOnWorker(uint64_t cells);
  void RecordHeat();
  // After Pull said false, before anything else runs.
  void Detach() { job_ != nullptr ? job_->Detach({}) : scan_->Detach(); }
  uint64_t count() const { return count_; }
  // Whose errors, shape and view are its own, whoever counts.
  const Scan& scan() const { return job_ != nullptr ? job_->scan() : *scan_; }
  // Rows seen, whatever is counted, by a scan.
  uint64_t rows() const { return rows_; }

 private:
  struct FamilyDelimiter {
    std::string family;
    char delimiter;  // '\0': a qualifier is one component
  };
  explicit CountRun(std::unique_ptr<AggregateJob> job) : job_(std::move(job)) {}
  bool PullCells(uint64_t cells);
  bool PullJob(uint64_t cells);
  void Note(bool done);
  void CountGroup(const ScanCell& cell);

  std::unique_ptr<Scan> scan_;
  std::unique_ptr<AggregateJob> job_;  // in its place
  ScanHeat heat_;
  std::string place_;         // of the job, so far
  bool ended_beside_{false};  // and HEAT has not been told
  CountBy by_{CountBy::kRows};
  uint64_t count_{0};
  uint64_t rows_{0};
  // BY GROUPS
  std::vector<FamilyDelimiter> delimiters_;
  const FamilyDelimiter* family_{nullptr};
  bool group_known_{false};  // false at the beginning of a row
  std::string group_;        // of the cell before
};

// A run that has been detached.
class CountRead final : public LongRead {
 public:
  explicit CountRead(CountRun run) : LongRead(kSliceCells), run_(std::move(run)) {}
  const CountRun& run() const { return run_; }

  bool Pull(uint64_t cells) override {
    return in_worker() ? run_.PullOnWorker(cells) : run_.Pull(cells);
  }
  void RecordHeat() override { run_.RecordHeat(); }

 private:
  size_t ReplyBytes() const override { return 0; }
  size_t MemoryBytes() const override { return 0; }

  CountRun run_;
};

// Carries it on, and then replies what the command says of it.
template <char kFirstByte, typename SayCount>
class CountTask final : public LongReadTask {
 public:
  CountTask(Host& host, CountRun run, LongReadStart start, Lsn depends_on, SayCount say)
      : LongReadTask(host, std::make_unique<CountRead>(std::move(run)), start, depends_on),
        say_(std::move(say)) {}
  char FirstByte() const override { return kFirstByte; }

 private:
  void Complete() override {}
  bool Reply(TaskContext& context) override {
    say_(context.reply, static_cast<const CountRead&>(read()).run());
    return true;
  }

  SayCount say_;
};

// Counts in the handler, or hands the run over as a task. What the command says of it is then
// say(ReplyWriter&, const CountRun&), which owns what it needs; kFirstByte as Task::FirstByte.
// REQUIRES: as CommandContext::Continue.
template <char kFirstByte, typename SayCount>
void RunCount(CommandContext& ctx, const Table& table, CountRun run, LongReadStart start,
              SayCount say) {
  const bool is_known_long = start == LongReadStart::kBeside;
  ctx.DependsOn(table.last_lsn());  // what its index has become may have been logged by the read
  if (run.Pull(FirstBudget(ctx.session.exec_running, is_known_long))) return say(ctx.reply, run);
  run.Detach();
  ctx.Continue(std::make_unique<CountTask<kFirstByte, SayCount>>(ctx.host, std::move(run), start,
                                                                 table.last_lsn(), std::move(say)));
}

}  // namespace cellar
