// ScatterSum: commands whose reply is a number to which each set adds its own: CCOUNT, CDELRANGE,
// CUPDATE.
//
// All sets work beside each other. With a limit (CUPDATE) they are asked one behind the other, in
// the order of the keys, each for what is left of it. An error is told of the row range that comes
// first, once all sets have answered; what the others have done stays, and an error of CUPDATE or
// CDELRANGE says how many rows that were.
//
// Where it takes all sets to say which rows those are (scatter_choice.h) they are asked for these,
// a batch at a time; with a limit for no more than what is left of it, since a row that an update
// leaves as it is does not count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/cluster/scatter_choice.h"
#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterSum final : public ScatterTask {
 public:
  // Of these rows; at most `limit`. `seed`: of what is drawn.
  ScatterSum(const CommandContext& ctx, const Table& table, KeyRangeSet rows, uint64_t limit,
             uint64_t seed)
      : ScatterTask(ctx, table), left_(std::move(rows)), limit_(limit), seed_(seed) {}
  // Of rows that are chosen. `counts_them`: their number is the reply, nothing is done with them.
  ScatterSum(const CommandContext& ctx, const Table& table, ScatterChoice::Plan choice,
             uint64_t limit, bool counts_them);

  // Of a count; a change goes on though nobody waits for it.
  char FirstByte() const override { return writes() ? '\0' : ':'; }
  size_t memory_bytes() const override { return choice_ ? choice_->memory_bytes() : 0; }

 private:
  struct Asked {
    uint64_t ticket;
    KeyRangeSet rows;
    uint64_t rows_max;  // 0: only what is wrong is to be told
  };
  struct Error {
    KeyBound at;
    std::string line;
    bool counts;  // it said how many rows were changed before it
  };

  TaskProgress Advance(TaskContext& context) override;
  void TakeAnswers();
  // False: it has to wait, for the map.
  bool AskForRest();
  bool AskForAll();
  void AskFor(uint64_t set, KeyRangeSet rows);
  // What is wrong with the command is told by whoever is asked first, for no row.
  bool AskWhatIsWrong();
  // More rows are chosen, or the sum is complete: nothing; else how the step ends.
  std::optional<TaskProgress> Choose(TaskContext& context);
  TaskProgress Reply(TaskContext& context);
  // How many rows the sets have changed before one of them could not go on.
  std::string EndOfErrors() const override;

  KeyRangeSet left_;  // that nobody was asked for
  const uint64_t limit_;
  const uint64_t seed_;
  uint64_t sum_{0};
  std::vector<Asked> asked_;
  std::optional<Error> error_;
  uint64_t done_before_errors_{0};  // rows
  bool moved_{false};
  std::optional<ScatterChoice> choice_;
  bool counts_chosen_{false};
  bool is_to_check_{false};  // what is wrong
  bool is_begun_{false};
};

}  // namespace cellar
