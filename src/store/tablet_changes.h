// TabletChanges: what a set owns of its cluster, changed as CLUSTER and TABLET say it: each change
// is checked, then one logged mutation (engine/table/tablets.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/state/cluster_state.h"
#include "engine/state/tablet_moves.h"
#include "engine/table/table.h"

namespace cellar {

class CatalogKeeper;
class Engine;
class Store;

// The encoded bound that a row's key stands for, or the first components of one; an empty text is
// the front of the table. BADKEY.
Result<std::string> EncodeTabletBound(const TableSchema& schema, std::string_view text);
// That bound as text. Empty: the front, or the end, of the table.
std::string TabletBoundText(const Table& table, std::string_view bound);
// "from 'm' to 'p'", in the words of its clients; of a table that is not there (null) as encoded.
std::string TabletRangeText(const Table* table, std::string_view begin, std::string_view end);

// Why clients change nothing in the cluster's keyspace.
Status ClusterKeeps();
// Whether clients may make something there: ERR if it is the cluster's.
Status CheckKeyspaceOpen(const Engine& engine, std::string_view keyspace);

// The tablets of a table that is to be created: one, and one more from each of `split_at` on.
// BADKEY, ERR: a bound stands twice, or COLOCATE does not let it.
Result<Tablets::Pointer> TabletsOfNew(const TableSchema& schema,
                                      std::span<const std::string_view> split_at);
// ERR if a tablet that ends there would part rows of one group. REQUIRES: a bound of the table.
Status CheckGroups(const TableSchema& schema, std::string_view bound);
// Whether a tablet may end there: what COLOCATE and WHOLE keep together is in one. As CheckGroups.
bool MayEndThere(const TableSchema& schema, std::string_view bound);
// What the set's tablets of `table` become where `schema` keeps more rows together: those that part
// them are one with what is before them. TRYAGAIN: what is before is another set's, or one of them
// moves. O(tablets)
Result<std::vector<Tablet>> JoinedTablets(const Engine& engine, const Table& table,
                                          const TableSchema& schema);
// Whether an index is UNIQUE, for which a table of a cluster is WHOLE.
bool HasUnique(const TableSchema& schema);
// INDEX CREATE ... UNIQUE: ERR if the table has several tablets, which may come to lie on several
// sets, or do already. `keeper` knows of the others; null: there are none.
Status CheckMayBecomeWhole(const Table& table, const CatalogKeeper* keeper);

// ERR of a frozen table, which its snapshot owns.
Status CheckHasTablets(const Table& table);

// Of all tables. O(tables)
size_t TabletsOwned(const Engine& engine);
// TOOLARGE if a set may not have so many more.
Status CheckTabletsFit(const Engine& engine, size_t more);

class TabletChanges {
 public:
  explicit TabletChanges(Store& store) : store_(store) {}

  // The set becomes set 0 of a new cluster, and each table is one tablet; a UNIQUE index makes it
  // WHOLE. ERR if it is part of one; TRYAGAIN, ERR: not all members know tablets. REQUIRES:
  // cluster_id > 0.
  Status Init(uint64_t cluster_id);
  // The set is part of no cluster any more. REQUIRES: it is, and owns all rows of all tables.
  Status End();
  // The set is in order as that replica set. If it was another one before, it has come back from
  // what was kept of it: jobs that take tablets away from it end, and those in `ended`, as other
  // sets know that they have. TRYAGAIN, ERR: not all members know of it. REQUIRES: the set is part
  // of a cluster.
  Status OpenAs(uint64_t set_id, const std::map<uint64_t, MoveEnd>& ended = {});
  // What a set that has come back is to have (cluster/settlement.h): of the tables that are named
  // these tablets, and these moves. CORRUPTION: one is none that has tablets. REQUIRES: the set is
  // part of a cluster; no transaction.
  Status Settle(const TabletMoves& moves, const TabletsByTable& tablets);
  // The set owns these of `table`, and nothing else of it. ERR: they overlap, or do not ascend.
  Status Assign(Table& table, std::vector<Tablet> tablets);
  // Cuts tablets of `table` at `rows`, all or none. BADKEY, TOOLARGE; ERR: one ends there already,
  // COLOCATE or WHOLE; TRYAGAIN: another set's. REQUIRES: the set is part of a cluster.
  Status Split(Table& table, std::span<const std::string_view> rows);
  // Cuts that one at an encoded key. ERR: it is another one by now; TRYAGAIN: it moves.
  Status SplitAt(Table& table, const Tablet& tablet, std::string_view bound);
  // The tablet of `row` and the next one become one. Likewise.
  Status Merge(Table& table, std::string_view row);
  // That one and the next one, which ends at `end`, become one. ERR, TRYAGAIN: as SplitAt.
  Status MergeAt(Table& table, const Tablet& tablet, std::string_view end);
  // COLOCATE and WHOLE of a table. In a cluster, tablets that part rows of one group become one by
  // the same record. ERR: the key has fewer components, or a UNIQUE index needs WHOLE; TRYAGAIN: a
  // group lies on two sets.
  Status Place(Table& table, const Placement& placement);

 private:
  Status RequireLive(const Table& table) const;

  Store& store_;
};

}  // namespace cellar
