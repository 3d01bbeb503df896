// See opened_row.h.
#include "engine/rows/opened_row.h"

namespace cellar {

bool OpenedRow::IsLive() {
  CELLAR_ASSERT(table_ != nullptr);
  if (access_ != nullptr) view_.Restrict(*access_);
  return view_.RowIsLive({key_.get(), row_bytes_});
}

Status OpenedRow::CheckMayRead(std::string_view name) const {
  std::string_view family;
  std::string_view qualifier;
  if (!SplitColumn(name, &family, &qualifier)) return Status::Ok();  // it is refused otherwise
  return access_->MayRead(family) ? Status::Ok() : NoPermission();
}

}  // namespace cellar
