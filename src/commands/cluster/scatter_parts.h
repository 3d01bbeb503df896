// ScatterParts: commands that every set with rows of the table is asked once, all beside each
// other, and whose answers are put together when all have come: TABLE SAMPLE, CEXPLAIN, CNEAR by
// an index.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterParts : public ScatterTask {
 public:
  ScatterParts(const CommandContext& ctx, const Table& table, KeyRangeSet rows)
      : ScatterTask(ctx, table), left_(std::move(rows)) {}

 protected:
  // What a set has answered; one that has been asked twice, as its rows have moved, several times.
  struct Answer {
    uint64_t set;
    std::string reply;
  };
  // False: one of them is none that a set gives.
  virtual bool Reply(TaskContext& context, const std::vector<Answer>& answers) = 0;

 private:
  struct Asked {
    uint64_t ticket;
    uint64_t set;
    KeyRangeSet rows;
  };

  TaskProgress Advance(TaskContext& context) final;
  // False: it has to wait, for the map.
  bool AskForRest();
  // False: it has failed.
  bool TakeAnswers(TaskContext& context, bool* moved);

  KeyRangeSet left_;  // that nobody was asked for
  std::vector<Asked> asked_;
  std::vector<Answer> answers_;
};

class ScatterSample final : public ScatterParts {
 public:
  ScatterSample(const CommandContext& ctx, const Table& table, uint64_t parts)
      : ScatterParts(ctx, table, KeyRangeSet::All()), parts_(parts) {}

 private:
  bool Reply(TaskContext& context, const std::vector<Answer>& answers) override;

  const uint64_t parts_;
};

// The plan of the set that expects most rows, with what all expect and have examined, and in
// `sets` that of each.
class ScatterExplain final : public ScatterParts {
 public:
  ScatterExplain(const CommandContext& ctx, const Table& table, KeyRangeSet rows)
      : ScatterParts(ctx, table, std::move(rows)), first_byte_(ctx.reply.resp3() ? '%' : '*') {}

  char FirstByte() const override { return first_byte_; }

 private:
  bool Reply(TaskContext& context, const std::vector<Answer>& answers) override;

  const char first_byte_;
};

}  // namespace cellar
