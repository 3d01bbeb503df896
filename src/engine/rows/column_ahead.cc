// See column_ahead.h.
#include "engine/rows/column_ahead.h"

#include "engine/table/version_walk.h"

namespace cellar {

ColumnAhead::ColumnAhead(const ReadView& view, size_t family, std::string_view qualifier)
    : view_(&view), family_(family), qualifier_(qualifier) {
  Reattach(view);
}

void ColumnAhead::Reattach(const ReadView& view) {
  view_ = &view;
  at_.reset();
  at_ = std::make_unique<BTreeCursor>(view.MakeCursor(view.schema().families[family_].group));
}

const CellValue* ColumnAhead::Newest(std::string_view row_key) {
  const FamilySchema& family = view_->schema().families[family_];
  last_.swap(key_);
  key_.assign(row_key);
  PutFamilyId(&key_, family.id);
  key_.append(qualifier_);
  // Rows that have nothing there are many, mostly: the cursor stands behind them all.
  const bool stands =
      at_->valid() && !at_->changed() && last_ < key_ && std::string_view(key_) <= at_->key();
  if (!stands) at_->SeekNear(key_);
  ColumnWalk versions(*at_, key_, {family.policy, view_->all_live(family), view_->now_micros()});
  if (!versions.FindLive(kTimestampMax)) return nullptr;
  ReadStoredCell(versions.value(), &plain_, &value_);
  return &value_;
}

}  // namespace cellar
