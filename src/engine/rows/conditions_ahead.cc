// See conditions_ahead.h.
#include "engine/rows/conditions_ahead.h"

namespace cellar {

ConditionsAhead::ConditionsAhead(const ReadView& view, std::span<const Condition> conditions)
    : view_(&view), conditions_(conditions) {
  for (const Condition& condition : conditions) {
    const auto column = condition.column();
    columns_.push_back(
        column ? std::make_unique<ColumnAhead>(view, column->family, column->qualifier) : nullptr);
  }
}

void ConditionsAhead::Reattach(const ReadView& view) {
  view_ = &view;
  for (const auto& column : columns_) {
    if (column != nullptr) column->Reattach(view);
  }
}

bool ConditionsAhead::Hold(std::string_view row_key) {
  for (size_t i = 0; i < conditions_.size(); ++i) {
    const Condition& condition = conditions_[i];
    const bool holds = columns_[i] != nullptr ? condition.HoldsOf(columns_[i]->Newest(row_key))
                                              : condition.Holds(*view_, row_key);
    if (!holds) return false;
  }
  return true;
}

}  // namespace cellar
