// FrozenTables: snapshots without a name, which are made at a moment of all sets of a cluster and
// get their name, or become a copy, once that moment is good (cluster/cut_desk.h). The sweeper
// drops those that nobody holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {

class FrozenTables {
 public:
  explicit FrozenTables(Store& store) : store_(store) {}

  // Of these tables, which are of that keyspace: its id. `ttl_micros` 0: it stays.
  Result<uint64_t> Freeze(std::string_view keyspace, const std::vector<const Table*>& tables,
                          int64_t ttl_micros);
  void Hold(uint64_t id) { store_.copies_.insert(id); }
  void LetGo(uint64_t id) { store_.copies_.erase(id); }
  // Whether a snapshot of that name may be made: the errors of Store::CreateSnapshot.
  Status CheckName(std::string_view keyspace, std::string_view name,
                   Store::Overwrite replace) const {
    return store_.CheckNewSnapshot(keyspace, name, replace);
  }
  // Whether a cursor may have one of its own: there are at most snapshots-max of these, too.
  Status CheckCursors() const;
  // In one record.
  Status Drop(const std::vector<uint64_t>& ids);
  // It gets that name. NOSNAPSHOT if it is gone; the errors of CheckName.
  Status Name(uint64_t id, std::string_view name, Store::Overwrite replace);
  // COPY of what stands still in `frozen`, a table of such a snapshot, which goes with the copy.
  std::unique_ptr<SlicedChange> Copy(Table& frozen, uint64_t snapshot_id, std::string_view keyspace,
                                     std::string_view name, Store::Overwrite replace);
  // READONLY of a frozen table, ERR of one that is the cluster's.
  static Status CheckMayChange(const Table& table) { return Store::CheckLive(table); }

 private:
  Store& store_;
};

}  // namespace cellar
