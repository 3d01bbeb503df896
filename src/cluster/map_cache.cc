// See map_cache.h.
#include "cluster/map_cache.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

bool HasLost(const std::map<uint64_t, MapTable>& tables) {
  return std::any_of(tables.begin(), tables.end(), [](const auto& table) {
    const auto& tablets = table.second.tablets;
    return std::any_of(tablets.begin(), tablets.end(),
                       [](const MapEntry& entry) { return IsLost(entry.set); });
  });
}

}  // namespace

size_t MapCache::size() const {
  size_t count = 0;
  for (const auto& [id, table] : tables_) count += table.tablets.size();
  return count;
}

const MapTable* MapCache::Find(uint64_t table_id) const {
  const auto found = tables_.find(table_id);
  return found == tables_.end() ? nullptr : &found->second;
}

const MapEntry* MapCache::FindTablet(uint64_t table_id, std::string_view row_key) const {
  const MapTable* const table = Find(table_id);
  if (table == nullptr) return nullptr;
  const auto behind =
      std::partition_point(table->tablets.begin(), table->tablets.end(),
                           [row_key](const MapEntry& entry) { return entry.begin <= row_key; });
  if (behind == table->tablets.begin()) return nullptr;
  const MapEntry& entry = *std::prev(behind);
  return entry.Contains(row_key) ? &entry : nullptr;
}

void MapCache::Begin(uint64_t version, uint64_t floor, uint64_t number_next) {
  version_ = version;
  floor_ = floor;
  number_next_ = number_next;
  tables_.clear();
  has_lost_ = false;
}

void MapCache::Add(uint64_t table_id, std::string_view name, MapEntry entry) {
  MapTable& table = tables_[table_id];
  // Those of one table are written together, so that they have one name.
  if (table.name != name) table.name = name;
  table.tablets.push_back(std::move(entry));
}

void MapCache::Sort() {
  for (auto& [id, table] : tables_) {
    std::sort(table.tablets.begin(), table.tablets.end(),
              [](const MapEntry& a, const MapEntry& b) { return a.begin < b.begin; });
  }
  has_lost_ = HasLost(tables_);
}

void MapCache::Apply(MapChange&& change) {
  CELLAR_ASSERT(change.version == version_ + 1);
  version_ = change.version;
  floor_ = change.floor;
  number_next_ = change.number_next;
  const bool may_have_lost = has_lost_ || HasLost(change.tables);
  for (auto& [id, table] : change.tables) tables_[id] = std::move(table);
  for (const uint64_t id : change.gone) tables_.erase(id);
  has_lost_ = may_have_lost && HasLost(tables_);
}

}  // namespace cellar
