// AggregateRun: a CAGG's job (engine/aggregate/aggregate_job.h) and then its reply, group by group:
//
//   [[[group value ...], map name -> result] ...]       with STATS: [that, map]
//
// The groups are written when all of them are known, in slices; a reply that would be longer than
// `reply-max-bytes` is taken back and is TOOLARGE: all or an error, never a part.
//
// A node that puts together what several sets have folded gets the groups as they are kept:
//
//   [what was examined, groups, groups ...]       bulk strings (AggregateExamined, AggregateGroups)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/clock.h"
#include "cellar/lsn.h"
#include "commands/replies/long_read.h"
#include "commands/replies/scan_heat.h"
#include "commands/session/task.h"
#include "engine/aggregate/aggregate_job.h"
#include "resp/output_buffer.h"
#include "resp/reply_writer.h"

namespace cellar {

// What a set tells of its part of a CAGG beside the groups.
struct AggregateExamined {
  ScanStats stats;
  uint64_t skipped{0};
  std::vector<std::string> notes;

  // v rows, v cells, v bytes, v groups, v skipped, index b, v count { note b }
  void Encode(std::string* to) const;
  [[nodiscard]] bool Decode(std::string_view from);
};

class AggregateRun {
 public:
  // `notes` (read_notes.h, scan_notes.h) are told with STATS, and those of the scan behind them.
  AggregateRun(std::unique_ptr<AggregateJob> job, size_t reply_bytes_max, Clock* stats_clock,
               std::vector<std::string> notes);
  AggregateRun(AggregateRun&&) = default;
  AggregateRun& operator=(AggregateRun&&) = default;

  AggregateJob& job() { return *job_; }
  const AggregateJob& job() const { return *job_; }
  // Works for about so many cells; true when the reply is complete in `reply`, or refused. The same
  // writer, or one of the same buffer, each time; nothing else may write to it before Pull has said
  // true.
  bool Pull(uint64_t cells, ReplyWriter& reply);
  // Why there is no reply: nothing of it is left, and the error takes its place. OK: there is one.
  const Status& refusal() const { return refusal_; }
  // From here on a part of the reply may be written at a time. Before, Pull writes all or nothing.
  void EnterTask() { in_task_ = true; }
  // The reply is for another node.
  void TellFolded() { tells_folded_ = true; }
  // Notes of others, which are told behind its own.
  void AddNotes(const std::vector<std::string>& notes);

 private:
  void Refuse(Status status, ReplyWriter& reply);
  void Begin(ReplyWriter& reply);
  void ReplyStats(ReplyWriter& reply);
  // A slice of it; true when that was all.
  bool ReplyFolded(uint64_t groups, ReplyWriter& reply);

  std::unique_ptr<AggregateJob> job_;
  size_t reply_bytes_max_;
  Clock* stats_clock_;  // null: no STATS
  std::vector<std::string> notes_;
  Status refusal_;
  int64_t begin_micros_{0};
  bool in_task_{false};
  bool tells_folded_{false};
  bool replying_{false};
  size_t begin_position_{0};
  size_t group_at_{0};
  size_t group_end_{0};
  ReplyWriter::Mark folded_{};  // the array of what is told so
  uint64_t folded_elements_{0};
};

// A run whose job has been detached, and its reply.
class AggregateRead final : public LongRead {
 public:
  AggregateRead(AggregateRun run, RespVersion version)
      : LongRead(kSliceCells * 8), run_(std::move(run)), version_(version) {
    run_.EnterTask();
  }
  AggregateRun& run() { return run_; }
  OutputBuffer& reply() { return reply_; }
  // Whom what is examined is told to at the end, as rows somewhere in `range`.
  void SetHeat(const ScanHeat& heat, KeyRange range) {
    heat_ = heat;
    range_ = std::move(range);
  }

  bool Pull(uint64_t cells) override;
  void RecordHeat() override;

 private:
  size_t ReplyBytes() const override { return reply_.size(); }
  size_t MemoryBytes() const override { return reply_.capacity() + run_.job().memory_bytes(); }

  AggregateRun run_;
  const RespVersion version_;
  OutputBuffer reply_;
  ScanHeat heat_;
  KeyRange range_;
};

class AggregateTask final : public LongReadTask {
 public:
  using LongReadTask::LongReadTask;
  char FirstByte() const override { return '*'; }

 private:
  void Complete() override {}
  bool Reply(TaskContext& context) override;
};

}  // namespace cellar
