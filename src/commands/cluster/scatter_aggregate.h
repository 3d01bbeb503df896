// ScatterAggregate: a CAGG of a table whose rows lie on several sets. Each set folds its rows, and
// answers the groups as it keeps them; here they are merged as those of threads are, and all else
// is done with them that is done with the groups of one server: FILL, HAVING, SORT, LIMIT.
//
// agg-max-memory bounds the groups at each set, and those that are put together.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/cluster/scatter_choice.h"
#include "commands/cluster/scatter_task.h"
#include "commands/replies/aggregate_run.h"
#include "commands/session/work_memory.h"
#include "resp/output_buffer.h"

namespace cellar {

class ScatterAggregate final : public ScatterTask {
 public:
  // `run`: of a job that has found nothing, detached, to which the groups are added. It sees the
  // rows of `rows`, of which `seed` says what is drawn. `lease`: what the groups may take.
  ScatterAggregate(const CommandContext& ctx, const Table& table, AggregateRun run,
                   KeyRangeSet rows, uint64_t seed, WorkMemory::Lease lease);
  // From now on: the rows are chosen; those it was made for are none.
  void Choose(ScatterChoice::Plan choice) { choice_.emplace(std::move(choice)); }

  char FirstByte() const override { return '*'; }
  size_t reply_bytes() const override { return reply_.size(); }
  size_t memory_bytes() const override;

 private:
  struct Asked {
    uint64_t ticket;
    KeyRangeSet rows;
  };
  // An answer that is being merged.
  struct Part {
    std::string bytes;
    std::vector<std::string_view> groups;
    size_t next{0};
  };

  TaskProgress Advance(TaskContext& context) override;
  // False: it has failed.
  bool TakeAnswers(TaskContext& context, bool* moved);
  bool AskForRest();
  bool TakePart(std::string reply);
  // Nothing: there are rows to be asked for, or no more; else how the step ends.
  std::optional<TaskProgress> ChooseRows(TaskContext& context);
  // Until the budget is spent. False: it has failed.
  bool MergeParts(TaskContext& context);
  TaskProgress Reply(TaskContext& context);

  WorkMemory::Lease lease_;  // outlives the run
  AggregateRun run_;
  const uint64_t seed_;
  KeyRangeSet left_;  // that nobody was asked for
  std::vector<Asked> asked_;
  std::deque<Part> parts_;
  std::optional<ScatterChoice> choice_;
  OutputBuffer reply_;
};

}  // namespace cellar
