// See row_place.h.
#include "commands/cluster/row_place.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/schema/column_set.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {

// That the map says that it is this set's, where the truth here says that it is not, is a
// contradiction: where this node leads, the truth is no older than a map.
KeyOwner OwnerOfKey(const Table& table, std::string_view key, const RowSources& sources) {
  using Kind = KeyOwner::Kind;
  if (table.tablets()->Owns(key)) return {Kind::kSet, sources.own_set, nullptr};
  if (sources.map == nullptr) return {};
  const MapEntry* const entry = sources.map->FindTablet(table.id(), key);
  if (entry == nullptr) return {};
  if (IsLost(entry->set)) return {Kind::kLost, entry->set, entry};
  if (entry->set == sources.own_set && sources.leads) return {};
  return {Kind::kSet, entry->set, entry};
}

bool RowPlace::Find(Store& store, std::string_view keyspace, const CommandEntry& command,
                    Arguments args, const RowSources& sources) {
  CELLAR_DEBUG_ASSERT(command.reach == CommandReach::kRow);
  const KeySpec& keys = command.row->keys;
  const auto table_at = static_cast<size_t>(keys.first);
  const auto row_at = static_cast<size_t>(keys.row);
  if (args.size() <= std::max(table_at, row_at)) return false;
  table_ = store.FindTableIfAny(keyspace, args[table_at]);
  if (table_ == nullptr || table_->tablets() == nullptr) return false;
  const std::string_view row = args[row_at];
  // Who writes it says which number it gets.
  if (row == "*" && table_->schema().key.is_recno()) return false;
  key_.clear();
  if (!EncodeRowKey(table_->schema(), row, &key_).ok()) return false;
  const KeyOwner owner = OwnerOfKey(*table_, key_, sources);
  set_ = owner.set;
  return owner.kind == KeyOwner::Kind::kSet;
}

}  // namespace cellar
