// TabletChanges: what a set owns of its cluster, changed as CLUSTER and TABLET say it: each change
// is checked, then one logged mutation (engine/table/tablets.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/table/table.h"

namespace cellar {

class Engine;
class Store;

// The encoded bound that a row's key stands for, or the first components of one; an empty text is
// the front of the table. BADKEY.
Result<std::string> EncodeTabletBound(const Table& table, std::string_view text);
// That bound as text. Empty: the front, or the end, of the table.
std::string TabletBoundText(const Table& table, std::string_view bound);

// Of all tables. O(tables)
size_t TabletsOwned(const Engine& engine);
// TOOLARGE if a set may not have so many more.
Status CheckTabletsFit(const Engine& engine, size_t more);

class TabletChanges {
 public:
  explicit TabletChanges(Store& store) : store_(store) {}

  // The set becomes set 0 of a new cluster, and each table is one tablet. ERR if it is part of one;
  // TRYAGAIN, ERR: not all members know tablets. REQUIRES: cluster_id > 0.
  Status Init(uint64_t cluster_id);
  // The set is part of no cluster any more. REQUIRES: it is, and owns all rows of all tables.
  Status End();
  // The set owns these of `table`, and nothing else of it. ERR: they overlap, or do not ascend.
  Status Assign(Table& table, std::vector<Tablet> tablets);
  // Cuts tablets of `table` at `rows`, all or none. BADKEY, ERR: one ends there already; TOOLARGE;
  // TRYAGAIN: another set's. REQUIRES: the set is part of a cluster.
  Status Split(Table& table, std::span<const std::string_view> rows);
  // The tablet of `row` and the next one become one. Likewise.
  Status Merge(Table& table, std::string_view row);

 private:
  Status RequireLive(const Table& table) const;

  Store& store_;
};

}  // namespace cellar
