// Entering families, and columns whose newest version is not the live one.
#include "engine/rows/whole_row.h"

namespace cellar {

// The cursor of a group is moved on from family to family where their ids ascend as their names do.
bool WholeRow::SeekFamily() {
  const FamilySchema& family = view_.schema().families[family_at_];
  const bool goes_on =
      family_ != nullptr && family_->group == family.group && family_->id < family.id;
  if (!goes_on) at_ = &view_.cursor(family.group);
  family_ = &family;
  all_live_ = view_.all_live(family);
  may_drop_newest_ = family.policy.Risks(1);
  key_.Truncate(row_bytes_);
  PutFamilyId(&key_, family.id);
  family_bytes_ = key_.size();
  // It stands behind all of the family before.
  if (!goes_on || (at_->valid() && at_->key() < key_.view())) at_->Seek(key_.view());
  return at_->valid() && at_->key().starts_with(key_.view());
}

bool WholeRow::EnterFamily() {
  const size_t families = view_.schema().families.size();
  for (; family_at_ < families; ++family_at_) {
    if (!SeekFamily()) continue;
    ++family_at_;
    in_family_ = true;
    EnterColumn(0);
    return true;
  }
  in_family_ = false;
  return false;
}

bool WholeRow::FindLive(CellValue* value) {
  VersionWalk walk(family_->policy, all_live_, view_.now_micros());
  for (;;) {
    walk.Count();
    ReadStoredCell(at_->value(), &plain_, value);
    const Fate fate = walk.FateOf(StoredTimestamp(version()), value->expiry_micros);
    if (fate != Fate::kDropped) return fate == Fate::kLive;
    at_->Next();
    in_column_ = at_->StillBegins(column_bytes_);
    if (!in_column_) return false;
  }
}

void WholeRow::ShowDecoded() {
  const std::string_view qualifier =
      at_->key().substr(family_bytes_, column_bytes_ - family_bytes_);
  const std::string_view text = family_->order.TextOf(qualifier, &text_);
  if (text.data() != text_.data()) text_.assign(text);
}

ScanPosition WholeRow::PositionAfterCell(uint64_t cells) const {
  CELLAR_ASSERT(in_column_);
  ScanPosition position;
  position.row_key = key_.view().substr(0, row_bytes_);
  position.inside_row = true;
  position.cell_key = at_->key().substr(row_bytes_);
  position.cells_before = cells;
  position.columns_before = cells;
  return position;
}

}  // namespace cellar
