// ScatterInfo: TABLE INFO, FAMILY INFO and INDEX INFO of a table that lies on several sets. Each
// set describes the rows that it owns; what they count is added, and all else is the same
// everywhere, but for the state of an index: that of the set that is furthest behind.
//
// A set whose rows have moved meanwhile begins all of it anew, so that no row counts twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterInfo final : public ScatterTask {
 public:
  ScatterInfo(const CommandContext& ctx, const Table& table) : ScatterTask(ctx, table) {}

 private:
  TaskProgress Advance(TaskContext& context) override;
  // False: it has to wait, for the map.
  bool AskAll();
  void Reply(TaskContext& context);

  std::vector<uint64_t> asked_;  // tickets, of what has not been answered
  std::vector<std::string> replies_;
  std::string error_;  // the first that came
  bool moved_{true};   // the sets are to be asked
};

}  // namespace cellar
