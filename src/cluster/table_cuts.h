// TableCuts: where tables that are created are cut into tablets without being asked, so that tests
// of one server run over several sets. DEBUG CLUSTER CUT-TABLES says it; nothing else does.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/keys/order.h"
#include "engine/schema/schema.h"

namespace cellar {

class TableCuts {
 public:
  bool empty() const { return rows_.empty(); }
  void Clear() { rows_.clear(); }
  // Of keys whose first component is of this type; texts of that component, copied.
  void Set(ComponentType type, std::vector<std::string> rows) { rows_[type] = std::move(rows); }
  // SPLIT AT of a table that does not say where it is split, whose key begins so. None: its rows
  // stay together, by its placement or because nobody has said where. The views live until the next
  // change.
  std::vector<std::string_view> For(ComponentType first, const Placement& placement) const {
    if (rows_.empty() || placement.any()) return {};
    const auto found = rows_.find(first);
    if (found == rows_.end()) return {};
    return {found->second.begin(), found->second.end()};
  }

 private:
  std::map<ComponentType, std::vector<std::string>> rows_;
};

}  // namespace cellar
