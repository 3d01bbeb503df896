// See route_window.h.
#include "commands/cluster/route_window.h"

#include <algorithm>

#include "engine/table/table.h"

namespace cellar {

bool RouteWindow::Note(const Table* table, uint64_t map_version) {
  if (table == nullptr) return false;
  if (tables_.empty()) map_version_ = map_version;
  if (map_version != map_version_) return false;
  const uint64_t id = table->id();
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [id](const OfTable& noted) { return noted.id == id; });
  if (found != tables_.end()) return found->owned.get() == table->tablets();
  if (tables_.size() == kTablesMax) return false;
  tables_.push_back({id, table->shared_tablets()});
  return true;
}

}  // namespace cellar
