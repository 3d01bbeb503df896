// Table: one table in memory: its schema, a B-tree for each locality group, its counters, and the
// primitives by which a mutation changes it.
//
//   BeginRow(row)  PutCell / DeleteCell / DeleteRange / DeleteRow / ReclaimColumn ...  EndRow()
//
// The primitives cannot fail: whoever made the mutation has checked it. They keep the counters
// exact. Counters count what is stored. That is what is live, too, unless a family has a policy, a
// cell has an expiry, or a dropped family's cells ("ghosts") have not been swept away yet:
// counts_are_live() tells.
//
// A table is owned by the Engine and used by the loop's thread alone. Scans that outlive a turn
// read snapshots of the trees (TakeSnapshots), never the table.
//
// A frozen table is what one was at some moment (snapshot_set.h): its trees are versions of that
// one's, time stands still in it, and none of the primitives may be called.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/inline.h"
#include "base/key_buffer.h"
#include "btree/btree.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/keys/cell.h"
#include "engine/schema/column_set.h"
#include "engine/schema/known_columns.h"
#include "engine/schema/schema.h"
#include "engine/table/index_set.h"
#include "engine/table/mutation.h"
#include "engine/table/row_puts.h"
#include "engine/table/table_watches.h"
#include "engine/table/tablets.h"

namespace cellar {

struct FamilyCounters {
  uint64_t cells{0};           // stored
  uint64_t bytes{0};           // of their keys and values in the tree
  uint64_t expiring_cells{0};  // of them, those with an expiry of their own
  uint64_t packed_cells{0};    // of them, those whose value is packed (compression.h)
  uint64_t saved_bytes{0};     // by that
  uint64_t reclaimed{0};       // cells that retention has removed so far
  uint64_t logged_bytes{0};    // keys and values of its changes since it was loaded; not stored

  // Is there a cell with a flag, which the last three of the cells' counters tell of?
  bool has_flagged() const { return (expiring_cells | packed_cells) != 0; }
  // A cell that has flags comes, or goes.
  void CountFlagged(std::string_view cell_value);
  void UncountFlagged(std::string_view cell_value);
};

struct TableCounters {
  uint64_t rows{0};  // with any entry, ghosts included
  uint64_t record_number_next{1};
  bool has_ghosts{false};
  std::vector<FamilyCounters> families;  // parallel to TableSchema::families
};

class Table {
 public:
  Table(uint64_t id, std::string keyspace, std::string name, TableSchema schema);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  uint64_t id() const { return id_; }
  const std::string& keyspace() const { return keyspace_; }
  const std::string& name() const { return name_; }
  void Rename(std::string_view keyspace, std::string_view name);  // changes all rows

  // What the table is now, under a number of its own, for a snapshot of that name: groups have
  // trees of the numbers from `tree_id_first` on, indexes are those that are ready. O(trees).
  std::unique_ptr<Table> Freeze(uint64_t id, std::string snapshot, int64_t at_micros,
                                uint64_t tree_id_first) const;
  bool frozen() const { return frozen_micros_ >= 0; }
  // Nobody changes it: it is frozen, or the cluster alone does (kept: state/cluster_state.h).
  bool fixed() const { return fixed_; }
  void SetKept(bool kept) { fixed_ = kept || frozen(); }
  const std::string& snapshot() const { return snapshot_; }  // its name, if frozen
  std::string shown_name() const { return frozen() ? name_ + '@' + snapshot_ : name_; }
  // The moment that decides what is live.
  int64_t ReadTime(int64_t now_micros) const {
    return frozen_micros_ >= 0 ? frozen_micros_ : now_micros;
  }
  // Of a frozen one: memory that nobody newer uses (BTree::held_bytes).
  uint64_t held_bytes() const;
  // And what it needs besides the trees that it shares.
  uint64_t own_bytes() const;
  // For loading: a frozen table, the trees of which come by SetTree.
  void SetFrozen(std::string snapshot, int64_t at_micros);
  void SetTree(size_t group, std::unique_ptr<BTree> tree);

  const TableSchema& schema() const { return schema_; }
  const TableCounters& counters() const { return counters_; }
  const FamilyCounters& family_counters(const FamilySchema& family) const {
    return counters_.families[static_cast<size_t>(&family - schema_.families.data())];
  }
  uint64_t cells() const;
  uint64_t memory_bytes() const;
  // True if every stored cell of the family (of the table) is live at any time.
  bool family_is_all_live(const FamilySchema& family) const {
    return family.policy.keeps_everything() && family_counters(family).expiring_cells == 0;
  }
  bool counts_are_live() const;
  // What `name` (family:qualifier) stands for: *family, which dies with the next change of the
  // schema, and the column's part of the keys of its cells, family id and encoded qualifier. That
  // is written to *to, where kColumnPartBytesMax bytes are; *to becomes its end. NOFAMILY,
  // TOOLARGE, BADKEY; ERR unless IsColumn(name). Names that come again are known
  // (known_columns.h): a comparison and a copy.
  CELLAR_INLINE Status EncodeColumn(std::string_view name, const FamilySchema** family,
                                    char** to) const {
    const KnownColumn* const known = known_columns_.Find(name);
    if (known == nullptr) [[unlikely]]
      return EncodeNewColumn(name, family, to);
    *family = &known->family();
    *to = known->CopyKey(*to);
    return Status::Ok();
  }
  // May retention have dropped cells that are still stored? False while everything is kept, or
  // while all that can be dropped goes by its rank alone and nothing has changed since `changes`
  // changes, when somebody began to reclaim all of it and came to the end (NoteSwept). O(families).
  bool MayHoldDropped() const;
  void NoteSwept(uint64_t changes) { swept_changes_ = changes; }

  size_t groups() const { return groups_.size(); }
  const BTree& tree(size_t group) const { return *groups_[group].tree; }
  // Does it pay to prefetch rows of the group? A smaller tree is in the caches anyway.
  bool IsWorthPrefetch(size_t group) const {
    constexpr uint64_t kTreeBytesMin{2 << 20};
    return tree(group).memory_bytes() >= kTreeBytesMin;
  }
  // For loading a snapshot.
  BTree* mutable_tree(size_t group) { return groups_[group].tree.get(); }
  // Those of the groups and of the indexes, for work that changes no content.
  std::vector<BTree*> Trees() const;
  // A cursor over a group's live tree, kept for short reads. Whoever uses it positions it first; it
  // is nobody's from one call to the next.
  BTreeCursor& cursor(size_t group) const { return *groups_[group].cursor; }

  // What WATCH and CWATCH compare. The primitives below count what they do.
  const TableWatches& watches() const { return watches_; }
  TableWatches& watches() { return watches_; }
  uint64_t changes() const { return watches_.changes(); }
  // The LSN of the last change, on which replies about this table depend.
  Lsn last_lsn() const { return last_lsn_; }
  void set_last_lsn(Lsn lsn) { last_lsn_ = lsn; }

  // Does any entry of the row stand in any tree, live or not? O(groups log n).
  bool RowIsStored(std::string_view row_key) const;

  // --- primitives of Engine::Apply
  void BeginRow(std::string_view row_key);  // ends the row before
  void EndRow();                            // nothing to do if no row is open
  bool row_is_open() const { return row_.open; }
  void PutCell(const FamilySchema& family, std::string_view qualifier, int64_t timestamp,
               std::string_view cell_value);
  // PutCell, and the version at `replaced`, which the family's policy drops by it, is reclaimed if
  // it is there. REQUIRES: replaced < timestamp.
  void ReplaceCell(const FamilySchema& family, std::string_view qualifier, int64_t timestamp,
                   int64_t replaced, std::string_view cell_value);
  // The HyperLogLog of a cell gets an input more (kAddInput) or those of a state (kMergeState); a
  // cell that is not there begins with them. REQUIRES: family.is_hll().
  void FoldHll(MutationOp op, const FamilySchema& family, std::string_view qualifier,
               int64_t timestamp, std::string_view input);
  // BeginRow, PutCell or ReplaceCell, and EndRow, for a cell whose key is put together already.
  void ApplyPut(const ResolvedPut& put);
  // Adds to `puts`, instead of PutCell. REQUIRES: row_is_open(); as RowPuts::Add.
  void AddPut(const FamilySchema& family, std::string_view qualifier, int64_t timestamp,
              std::string_view cell_value, std::string_view payload, RowPuts* puts);
  // BeginRow, PutCell for each, and EndRow. REQUIRES: puts.Finish() was true; `payload` is of the
  // mutation whose puts these are; the table has no indexes, which want to know of each column
  // before it is changed.
  void ApplyPuts(const RowPuts& puts, std::string_view payload);
  void DeleteCell(const FamilySchema& family, std::string_view qualifier, int64_t timestamp);
  void DeleteRange(const FamilySchema& family, std::string_view begin, std::string_view end);
  void DeleteRow();
  void ReclaimColumn(const FamilySchema& family, std::string_view qualifier, int64_t now_micros);
  void DeleteRows(std::string_view begin, std::string_view end);
  void SetRecordNumberNext(uint64_t next) { counters_.record_number_next = next; }
  // Families and groups may have come, changed or gone. The cells of a family that is gone become
  // ghosts. REQUIRES: groups have only been added.
  void SetSchema(TableSchema schema);

  // Removes ghosts, examining about `cells_max` entries; where it got to is kept in `*position`
  // (begin with an empty one). True when none is left.
  bool SweepGhosts(uint64_t cells_max, std::string* position);

  // --- in a set of a cluster: the rows that the set owns
  // Null outside of a cluster, where every row is.
  const Tablets* tablets() const { return tablets_.get(); }
  // Null too while the set owns every row: then nobody need ask.
  const Tablets* clamp() const { return clamp_; }
  const Tablets::Pointer& shared_tablets() const { return tablets_; }
  // Of a row that a client names, where there is a clamp(): TRYAGAIN unless the set owns it.
  // Commands come to its owner; who comes elsewhere has read an older map.
  Status CheckOwned(std::string_view row_key) const;
  Status NotOwned(std::string_view row_key) const;
  void SetTablets(Tablets::Pointer tablets);
  // What reads and sliced changes that begin now may see of it: clamp(), or the part of it that a
  // call is for. Null: every row.
  const Tablets* shown() const { return shown_; }
  const Tablets::Pointer& shared_shown() const { return piece_ != nullptr ? piece_ : tablets_; }
  // From now on they see these rows alone; null: as before. REQUIRES: the set owns them all.
  void ShowPiece(Tablets::Pointer piece);

  // While what it returns lives, no rows of the table are given to another set: a change that goes
  // on over several turns holds them.
  std::shared_ptr<void> HoldRows() const;
  bool rows_are_held() const { return !rows_hold_.expired(); }

  // --- indexes
  bool has_indexes() const { return indexes_ != nullptr && !indexes_->empty(); }
  // Null if there are none.
  IndexSet* indexes() const { return indexes_.get(); }
  // The moment at which UNIQUE indexes are checked.
  void SetIndexTime(int64_t now_micros) {
    if (indexes_ != nullptr) indexes_->SetTime(now_micros);
  }
  // Trees that dropped or restarted indexes have left behind.
  std::vector<std::unique_ptr<BTree>> TakeRetiredTrees();

  // --- undo: what a table was, taken in O(groups).
  struct Checkpoint {
    TableSchema schema;
    TableCounters counters;
    std::string keyspace;
    std::string name;
    TableWatches watches;
    Tablets::Pointer tablets;
    std::vector<BTreeSnapshot> trees;
    IndexSet::Checkpoint indexes;
  };
  Checkpoint TakeCheckpoint();
  // REQUIRES: the checkpoint is of this table. Changes made since are undone.
  void RollBackTo(const Checkpoint& checkpoint);

  // What outlives TRUNCATE, which is a change of all rows: the record number, the watches, who owns
  // which rows.
  void TakeOver(const Table& truncated);

  std::vector<BTreeSnapshot> TakeSnapshots();
  // For a serialiser (BTree::TakeSnapshotForImages).
  std::vector<BTreeSnapshot> TakeSnapshotsForImages();
  // Gives up the trees, for a slow end elsewhere. Nothing but destruction is allowed afterwards.
  std::vector<std::unique_ptr<BTree>> ReleaseTrees();

  // --- catalog of a snapshot file
  void EncodeCounters(std::string* to) const;
  Status DecodeCounters(std::string_view* from);
  // Those of the entries that are there (CountTable).
  void SetCounters(TableCounters counters) { counters_ = std::move(counters); }

 private:
  struct Group {
    std::unique_ptr<BTree> tree;
    std::unique_ptr<BTreeCursor> cursor;
  };
  // The row that the primitives are changing.
  struct RowChange {
    bool open{false};
    bool existence_known{false};  // whether it was stored before the first primitive
    bool existed{false};
    bool perhaps_empty{false};  // something was deleted from it, and what is left is not known
    bool visible{false};        // more was changed than what nobody could see was reclaimed
    size_t row_bytes{0};
  };

  static_assert(KnownColumn::kKeyBytesMax <= kColumnPartBytesMax);

  // EncodeColumn of a name that is not known, which is noted.
  Status EncodeNewColumn(std::string_view name, const FamilySchema** family, char** to) const;
  Group MakeGroup() const;
  void CloseRow();
  // What PutCell and ReplaceCell do with the tree and the counters; `key` is the cell's, the
  // column's key at its front takes `column_bytes`. `place` as in ResolvedPut.
  BTreeWriteResult PutVersion(const FamilySchema& family, std::string_view key,
                              std::string_view cell_value, BTreePlace* place);
  BTreeWriteResult ReplaceVersion(const FamilySchema& family, std::string_view key,
                                  size_t column_bytes, int64_t replaced,
                                  std::string_view cell_value, BTreePlace* place);
  // Before these columns of the open row change.
  void WillChange(const ChangedColumns& columns) {
    if (indexes_ != nullptr) indexes_->WillChange(columns);
  }
  void SyncIndexes(const TableSchema& before);
  FamilyCounters& mutable_counters(const FamilySchema& family) {
    return counters_.families[static_cast<size_t>(&family - schema_.families.data())];
  }
  std::string_view open_row_key() const { return key_.view().substr(0, row_.row_bytes); }
  // key_ becomes row + family (+ qualifier).
  CELLAR_INLINE void SetKey(const FamilySchema& family, std::string_view qualifier);
  void LearnExistence();
  // Behind the put of the open row's cell whose key is key_.
  void NotePut(const FamilySchema& family, const BTreeWriteResult& result);
  // After a cell was put in a row: was there another one?
  bool RowHasOther(const FamilySchema& family, std::string_view key, size_t row_bytes,
                   const BTreeWriteResult& result) const;
  bool SeekOther(const FamilySchema& family, std::string_view key, size_t row_bytes,
                 const BTreeWriteResult& result) const;
  // PutVersion for some of the puts of a row, which are all of one family, as one run.
  BTreeWriteResult PutVersions(const RowPuts& puts, std::span<const RowPuts::Put> of_family,
                               std::string_view payload);
  // After these were put: did the row have anything else before?
  bool RowHadOther(const RowPuts& puts, std::span<const RowPuts::Put> of_family,
                   const BTreeWriteResult& result) const;
  // Before the entry is overwritten or removed.
  CELLAR_INLINE void UncountFlags(const FamilySchema& family, std::string_view key) {
    if (family_counters(family).has_flagged()) [[unlikely]]
      UncountFlagsAt(family, key);
  }
  void UncountFlagsAt(const FamilySchema& family, std::string_view key);
  // Whether there was anything to remove.
  bool RemoveEntry(const FamilySchema& family, std::string_view key);
  bool RemoveRange(const FamilySchema& family, std::string_view begin, std::string_view end);
  // Takes an entry out of the counters of its family.
  void UncountEntry(std::string_view key, size_t row_bytes, std::string_view value);

  uint64_t id_;
  int64_t frozen_micros_{-1};  // when it was frozen; -1: it is not
  bool fixed_{false};
  std::string keyspace_;
  std::string name_;
  std::string snapshot_;
  TableSchema schema_;
  mutable KnownColumns known_columns_;  // a memory of what schema_ says
  TableCounters counters_;
  Tablets::Pointer tablets_;
  const Tablets* clamp_{nullptr};  // of tablets_
  Tablets::Pointer piece_;         // null: none is asked for
  const Tablets* shown_{nullptr};  // of piece_, else clamp_
  mutable std::weak_ptr<char> rows_hold_;
  std::vector<Group> groups_;
  TableWatches watches_;
  std::optional<uint64_t> swept_changes_;  // since the schema is what it is
  Lsn last_lsn_;
  RowChange row_;
  KeyBuffer key_;                      // begins with the open row's key
  KeyBuffer replaced_key_;             // scratch of ReplaceCell
  std::string folded_;                 // scratch of FoldHll: a state
  std::string cell_value_;             // likewise, a cell's value
  std::vector<BTreePut> run_;          // scratch of PutVersions
  std::vector<int64_t> dropped_;       // scratch of ReclaimColumn
  std::unique_ptr<IndexSet> indexes_;  // null: none; reads the trees of groups_
};

// An error about a name in a table, NOFAMILY or NOINDEX, with that of the table; others stay.
Status InTable(Status status, const Table& table);

}  // namespace cellar
