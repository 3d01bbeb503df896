// ScatterSum: commands whose reply is a number to which each set adds its own: CCOUNT, CDELRANGE,
// CUPDATE.
//
// All sets work beside each other. With a limit (CUPDATE) they are asked one behind the other, in
// the order of the keys, each for what is left of it. An error is told of the row range that comes
// first, once all sets have answered; what the others have done stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterSum final : public ScatterTask {
 public:
  // Of these rows; at most `limit`. `seed`: of what is drawn.
  ScatterSum(const CommandContext& ctx, const Table& table, KeyRangeSet rows, uint64_t limit,
             uint64_t seed)
      : ScatterTask(ctx, table), left_(std::move(rows)), limit_(limit), seed_(seed) {}

 private:
  struct Asked {
    uint64_t ticket;
    KeyRangeSet rows;
  };
  struct Error {
    KeyBound at;
    std::string line;
  };

  TaskProgress Advance(TaskContext& context) override;
  void TakeAnswers();
  // False: it has to wait, for the map.
  bool AskForRest();
  void AskFor(uint64_t set, KeyRangeSet rows);

  KeyRangeSet left_;  // that nobody was asked for
  const uint64_t limit_;
  const uint64_t seed_;
  uint64_t sum_{0};
  std::vector<Asked> asked_;
  std::optional<Error> error_;
  bool moved_{false};
};

}  // namespace cellar
