// ColumnAhead: the newest version of one column in row after row.
//
// It has a cursor of its own, which goes forward to the next row's: in rows that are asked for in
// ascending order a column costs what stands between, and no descent through the tree.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "engine/keys/cell.h"
#include "engine/table/read_view.h"

namespace cellar {

class ColumnAhead {
 public:
  // Of the family at that place in the view's schema; `qualifier` is encoded. `view` must outlive
  // it, or be replaced (Reattach).
  ColumnAhead(const ReadView& view, size_t family, std::string_view qualifier);

  // The newest live version in the row; null: there is none. It dies with the next call, or when
  // the tree changes. Any order of rows is right, the ascending one is fast.
  const CellValue* Newest(std::string_view row_key);
  // The view has been detached, or another one of the same schema takes its place.
  void Reattach(const ReadView& view);

 private:
  const ReadView* view_;
  size_t family_;
  std::string qualifier_;
  std::unique_ptr<BTreeCursor> at_;
  std::string key_;   // of the column asked for last
  std::string last_;  // of the one before
  PlainValue plain_;
  CellValue value_;
};

}  // namespace cellar
