// RangeCopy: the rows of a tablet as they were at one moment, as ops of mutations
// (engine/table/mutation.h), a bounded piece at a time. What is on its way to another set is copied
// so, also what nobody could read any more: the other set has the same cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "btree/btree.h"
#include "engine/table/mutation.h"
#include "engine/table/table.h"
#include "engine/table/tablets.h"

namespace cellar {

class RangeCopy {
 public:
  // Of now. The tablet is one of the table's. While it lives what changes is copied first.
  // O(groups)
  RangeCopy(Table& table, const Tablet& tablet);

  // Adds cells, about `bytes_max` bytes of them. False: there are no more. None, and more to come:
  // it has passed over many of families that were dropped.
  bool Next(size_t bytes_max, MutationBuilder* to);
  uint64_t cells() const { return cells_; }

 private:
  bool OpenGroup();

  const uint64_t table_id_;
  const TableSchema schema_;
  const Tablet tablet_;
  std::vector<BTreeSnapshot> trees_;
  size_t group_{0};
  std::optional<BTreeCursor> at_;
  uint64_t cells_{0};
};

}  // namespace cellar
