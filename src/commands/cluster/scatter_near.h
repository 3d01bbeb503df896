// ScatterNear: CNEAR of a row of a table whose rows lie on several sets. The owner of the row is
// asked first, then what lies behind its rows, then what lies before, until somebody has one. Of
// an index each set has entries of its own rows: all are asked, and the nearest one is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/cluster/scatter_parts.h"
#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterNear final : public ScatterTask {
 public:
  // `key`: of the row, encoded.
  ScatterNear(const CommandContext& ctx, const Table& table, const std::string& key);

 private:
  TaskProgress Advance(TaskContext& context) override;
  // False: it has to wait, for the map.
  bool AskNext();
  // Where it is to be looked next; false: nowhere.
  bool LookFurther();

  KeyRange at_;  // the rows of who is asked begin there; backwards: end there
  bool backwards_{false};
  KeyRange run_;                    // who is asked has these
  std::optional<KeyRange> before_;  // the rows before those of the row's owner
  std::optional<uint64_t> ticket_;
  std::string nearest_;  // the reply so far; empty: none has a row
};

class ScatterNearEntry final : public ScatterParts {
 public:
  ScatterNearEntry(const CommandContext& ctx, const Table& table)
      : ScatterParts(ctx, table, KeyRangeSet::All()) {}

 private:
  bool Reply(TaskContext& context, const std::vector<Answer>& answers) override;
};

}  // namespace cellar
