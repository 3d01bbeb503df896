// ConditionsAhead: whether all of some conditions hold, asked of row after row. Each has a cursor
// that goes forward with the rows (column_ahead.h).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/rows/column_ahead.h"
#include "engine/rows/condition.h"
#include "engine/table/read_view.h"

namespace cellar {

class ConditionsAhead {
 public:
  // Both outlive it.
  ConditionsAhead(const ReadView& view, std::span<const Condition> conditions);

  // Any order of rows is right, the ascending one is fast.
  bool Hold(std::string_view row_key);
  // The view has been detached, or another one of the same schema takes its place.
  void Reattach(const ReadView& view);

 private:
  const ReadView* view_;
  std::span<const Condition> conditions_;
  std::vector<std::unique_ptr<ColumnAhead>> columns_;  // by condition; null: it asks for none
};

}  // namespace cellar
