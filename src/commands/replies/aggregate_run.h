// AggregateRun: a CAGG's job (engine/aggregate/aggregate_job.h) and then its reply, group by group:
//
//   [[[group value ...], map name -> result] ...]       with STATS: [that, map]
//
// The groups are written when all of them are known, in slices; a reply that would be longer than
// `reply-max-bytes` is taken back and is TOOLARGE: all or an error, never a part.
#pragma once

#include <cstdint>
#include <memory>

#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "commands/replies/scan_heat.h"
#include "commands/session/task.h"
#include "engine/aggregate/aggregate_job.h"
#include "resp/reply_writer.h"

namespace cellar {

class AggregateRun {
 public:
  AggregateRun(std::unique_ptr<AggregateJob> job, size_t reply_bytes_max, Clock* stats_clock);
  AggregateRun(AggregateRun&&) = default;

  AggregateJob& job() { return *job_; }
  const AggregateJob& job() const { return *job_; }
  // Works for about so many cells; true when the reply is complete in `reply`. The same writer, or
  // one of the same buffer, each time; nothing else may write to it before Pull has said true.
  bool Pull(uint64_t cells, ReplyWriter& reply);
  // From here on a part of the reply may be written at a time. Before, Pull writes all or nothing.
  void EnterTask() { in_task_ = true; }

 private:
  void Refuse(const Status& status, ReplyWriter& reply);
  void Begin(ReplyWriter& reply);
  void ReplyStats(ReplyWriter& reply) const;

  std::unique_ptr<AggregateJob> job_;
  size_t reply_bytes_max_;
  Clock* stats_clock_;  // null: no STATS
  int64_t begin_micros_{0};
  bool in_task_{false};
  bool replying_{false};
  size_t begin_position_{0};
  size_t group_at_{0};
  size_t group_end_{0};
};

class AggregateTask final : public Task {
 public:
  AggregateTask(AggregateRun run, Lsn depends_on) : run_(std::move(run)), depends_on_(depends_on) {}
  // Whom what is examined is told to at the end, as rows somewhere in `range`.
  void SetHeat(const ScanHeat& heat, KeyRange range) {
    heat_ = heat;
    range_ = std::move(range);
  }
  TaskProgress Step(TaskContext& context) override;
  size_t memory_bytes() const override { return run_.job().memory_bytes(); }
  char FirstByte() const override { return 0; }

 private:
  AggregateRun run_;
  Lsn depends_on_;
  ScanHeat heat_;
  KeyRange range_;
};

}  // namespace cellar
