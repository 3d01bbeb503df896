// Engine: all keyspaces and tables in memory, and the one function that changes them.
//
//   keyspace -> name -> Table         tables are also found by their id, which never changes
//
// Apply() carries out a mutation (mutation.h), whoever brings it: a command that has just been
// resolved, the log at the start, an EXEC. The engine has no clock, no files and no sockets; it
// belongs to the loop's thread. As a StateMachine it is what the journal recovers and snapshots.
//
// What was loaded can take the place of another engine that clients are using (DEBUG RELOAD): the
// old one gives up an CarriedState, which is all that outlives it, and the new one takes it over.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/equal_bytes.h"
#include "base/inline.h"
#include "cellar/status.h"
#include "engine/feeds/feed_set.h"
#include "engine/state/cluster_state.h"
#include "engine/state/mutation_check.h"
#include "engine/state/snapshot_set.h"
#include "engine/state/state_machine.h"
#include "engine/state/table_copy.h"
#include "engine/table/mutation.h"
#include "engine/table/table.h"

namespace cellar {

inline constexpr int kKeyspacesBuiltIn{16};  // "0".."15", so that a client's SELECT 0 works
bool IsBuiltInKeyspace(std::string_view keyspace);

// A name without a table that somebody watches: how often a table has come by it.
struct WatchedName {
  uint64_t changes{0};
  uint64_t watchers{0};
};

// Whether a state that was loaded under running clients is the one that they have seen before.
enum class Continuity : uint8_t { kSameState, kOtherState };

// Which trees outlive it: those that scans still read, or all, to be freed in slices.
enum class Trees : uint8_t { kInUse, kAll };

// All that outlives an engine whose state is dropped and loaded again while clients go on: what
// they hold on to and no file holds. Everything else of the old engine dies with it, every Table
// pointer too; what lasts longer than a turn (tasks, watches, cursors) has ids and looks them up.
struct CarriedState {
  // Watches, by table id and by the names of tables that are not there. Of the same state they go
  // on as if nothing had happened. Of another one they are all broken, by the lineage, since ids
  // may stand for other tables then.
  std::map<uint64_t, TableWatches> watches;
  std::map<std::pair<std::string, std::string>, WatchedName> watched_names;
  uint64_t lineage{0};
  // Trees that scans still read: they are freed, as those of a dropped table, when the scans end.
  std::vector<std::unique_ptr<BTree>> trees_in_use;
};

class PreImages;

class Engine final : public StateMachine {
 public:
  Engine();
  ~Engine() override;

  // --- lookup
  bool KeyspaceExists(std::string_view name) const { return keyspaces_.contains(name); }
  std::vector<std::string> Keyspaces() const;  // ascending
  // Null if there is none. O(log n), and O(1) for the one that was asked for last. `name` may be
  // table@snapshot: a frozen table, which is found in no other way but FindFrozenById.
  CELLAR_INLINE Table* FindTable(std::string_view keyspace, std::string_view name) const {
    if (EqualBytes(cached_name_, name) && EqualBytes(cached_keyspace_, keyspace)) [[likely]]
      return cached_table_;
    return FindTableAnew(keyspace, name);
  }
  Table* FindTableById(uint64_t id) const;
  // The table with the smallest id that is not below `id`; null if there is none.
  Table* FindTableFrom(uint64_t id) const;
  std::vector<Table*> Tables(std::string_view keyspace) const;  // ascending by name

  // Ids for what is about to be created; Apply moves the counters.
  uint64_t table_id_next() const { return numbers_.table_id; }
  uint64_t tree_id_next() const { return numbers_.tree_id; }
  const FeedSet& feeds() const { return feeds_; }

  // --- the cluster (cluster_state.h); which rows are owned here, each table says
  const ClusterState& cluster() const { return numbers_.cluster; }

  // --- named snapshots (snapshot_set.h)
  const SnapshotSet& snapshots() const { return snapshots_; }
  Table* FindFrozenById(uint64_t id) const { return snapshots_.FindTableById(id); }
  // The table itself, whichever it is of.
  Table& Mutable(const Table& table) const {
    return *(table.frozen() ? FindFrozenById(table.id()) : FindTableById(table.id()));
  }
  // From here on nobody finds what is due by then.
  void HideDueSnapshots(int64_t now_micros) {
    if (now_micros >= snapshots_.next_due_micros() && snapshots_.HideDue(now_micros)) ForgetNames();
  }
  // The next kCopyTable of this source takes it.
  void PrepareCopy(std::unique_ptr<TableCopy> copy) { prepared_copy_ = std::move(copy); }
  // Versions of tables that no feed can ask for any more go. REQUIRES: undo has not begun.
  void ForgetHistoryBefore(int64_t micros) { feeds_.history().ForgetBefore(micros); }
  // The newest timestamp given out by the server (the stamp of the newest mutation).
  int64_t stamp() const { return numbers_.stamp; }

  // --- change
  // A mutation from elsewhere, the log or a peer: each op is checked first (mutation_check.h).
  // After an error the ops before the one at fault have been carried out.
  Status Apply(std::string_view payload) override;
  // The ops of a mutation of this server's own, without the stamp in front
  // (MutationBuilder::Since).
  Status ApplyOps(std::string_view ops) { return CarryOut(ops, nullptr); }
  // What ApplyOps does with ops that are one put and nothing else, without reading them back.
  CELLAR_INLINE void ApplyPut(Table* table, const ResolvedPut& put) {
    SaveForUndo(table);
    table->ApplyPut(put);
  }
  // Likewise with ops that are several puts of one row; `payload` is their mutation's.
  void ApplyPuts(Table* table, const RowPuts& puts, std::string_view payload) {
    SaveForUndo(table);
    table->ApplyPuts(puts, payload);
  }
  // The entry of a tree, for people: row 'r' f:q at 1700000000000000. Bytes that are no key of the
  // tree are quoted.
  std::string KeyText(uint64_t tree_id, std::string_view key) const;
  void SetStamp(int64_t stamp) { numbers_.stamp = stamp; }

  // --- what feeds tell of cells that were there (pre_images.h)
  // Does any feed tell of it?
  bool tells_old() const { return feeds_.tells_old(); }
  // Does one that covers this table, or a part of it? O(feeds) after a change of any schema.
  bool TellsOldOf(const Table& table) const;
  // Ops of this server's own are taken down before they are carried out, from here on; null: they
  // are not.
  void TakePreImages(PreImages* to) { pre_images_ = to; }

  // --- undo: from BeginUndo on, every change can be taken back at once. O(1) for each table
  // touched.
  void BeginUndo();
  void RollBack();    // REQUIRES: undo has begun
  void ForgetUndo();  // REQUIRES: undo has begun

  // --- watches of tables that are not there (those of tables: Table::watches)
  uint64_t WatchName(std::string_view keyspace, std::string_view name);
  // Nothing happens, and there are no changes, if nobody watches it.
  void UnwatchName(std::string_view keyspace, std::string_view name);
  uint64_t NameChanges(std::string_view keyspace, std::string_view name) const;

  // --- taking the place of another engine
  // Which of the states that clients have been shown since the start this is: 0, 1, ...
  uint64_t lineage() const { return lineage_; }
  // Nothing but destruction is allowed afterwards, which frees the trees that are not given up.
  // REQUIRES: undo has not begun.
  CarriedState GiveUp(Trees trees);
  // REQUIRES: the state has been loaded, and no client has seen it yet.
  void Inherit(CarriedState carried, Continuity continuity);

  // --- trees of dropped tables, and what snapshots have left behind in any tree
  // Frees at most about `entries_max` entries or nodes of them, fewer if they are large. True if
  // nothing is left to free.
  bool CollectGarbage(uint64_t entries_max);
  // What another engine has given up is freed by this one; nothing else of it lives on.
  void TakeGarbage(std::vector<std::unique_ptr<BTree>> trees);
  uint64_t garbage_bytes() const;

  // --- compaction of memory (btree/nodes/arena.h)
  // Begins a round over all trees if much memory lies idle, or goes on with it: moves about
  // `nodes_max` nodes. True if nothing is left to do.
  bool Compact(size_t nodes_max);
  bool compacting() const { return compaction_.running; }

  // --- StateMachine
  // For ops of this server's own any time behind the last commit will do (feeds/feed_set.h).
  void SetCommitTime(int64_t micros) override { commit_micros_ = micros; }
  StateSnapshot TakeSnapshot() override;
  StateSnapshot TakeSnapshotOfCut(uint64_t cut) override;
  // Of an engine whose BeginLoad has been given the catalog of a snapshot file: which family has
  // how much of it. Trees are divided by the bytes of their families' cells, what an index has goes
  // to the family of its first column, what a named snapshot keeps to the table whose name it has.
  // What is none of the trees' is divided as these are. O(tables + families).
  struct TreeInFile {
    uint64_t tree_id{0};
    uint64_t bytes{0};
  };
  struct FamilyInFile {
    uint64_t table_id{0};
    uint32_t family_id{0};
    uint64_t bytes{0};
  };
  std::vector<FamilyInFile> DivideFile(const std::vector<TreeInFile>& trees,
                                       uint64_t file_bytes) const;
  Status BeginLoad(std::string_view catalog) override;
  BTree* TreeForLoad(uint64_t tree_id) override;
  std::vector<uint64_t> TreesForLoad() const override;
  Status FinishLoad() override;
  Status FinishSalvage(const std::vector<LoadGap>& gaps, std::vector<std::string>* lost) override;
  void Reset() override;
  std::string Describe(std::string_view mutation) override;

 private:
  using Keyspace = std::map<std::string, Table*, std::less<>>;
  struct Undo;
  // Of the catalog, besides its tables.
  struct Numbers {
    uint64_t table_id{1};  // the next one's
    uint64_t tree_id{1};
    int64_t stamp{0};
    ClusterState cluster;
  };
  // A tree of a frozen table.
  struct VersionInFile {
    uint64_t file_id{0};
    BTree* tree{nullptr};
    uint64_t newer_id{0};  // of what it is told beside; 0: of nothing
  };
  // Where a round of compaction goes on.
  struct Compaction {
    bool running{false};
    uint64_t table_id{0};
    size_t tree{0};  // of the table
    std::string position{};
  };

  void AddBuiltInKeyspaces();
  std::string EncodeCatalog(const std::vector<VersionInFile>& versions) const;
  Status SalvageTable(Table* table, const std::vector<LoadGap>& gaps,
                      std::vector<std::string>* lost);
  BTree* IndexTreeForLoad(uint64_t tree_id);
  Status CarryOut(std::string_view ops, MutationCheck* check);
  // The ops that follow in `reader`, up to the next row, step or table, are at once several puts of
  // the table's open row, correct, and none twice: applies them as a run; the reader stands behind
  // them. False: nothing was done. `ops` is what the reader reads.
  bool ApplyRowAsRun(std::string_view ops, Table* table, MutationReader* reader);
  // That, where the row before makes it likely that it is worth while.
  void TryRowAsRun(std::string_view ops, Table* table, MutationReader* reader);
  // `later` is what follows in the mutation.
  Status ApplySchemaOp(const DecodedOp& op, const MutationReader& later);
  Status CarryOutSchemaOp(const DecodedOp& op);
  // --- engine_feeds.cc
  Status ApplyFeedOp(const DecodedOp& op);
  Status CreateFeed(const DecodedOp& op);
  // Feeds are told of tables as they are from here on. `before` are those that may be gone.
  void NoteHistory(uint64_t table_id);
  void NoteHistoryOf(const DecodedOp& op, const std::vector<uint64_t>& dropped);
  void SeedHistory(int64_t micros);
  Status ApplyCellOp(const DecodedOp& op, Table* table);
  Status CreateTable(const DecodedOp& op);
  Status SetSchema(const DecodedOp& op);
  Status RenameTable(const DecodedOp& op);
  void AddTable(std::unique_ptr<Table> table);
  void DropTable(Table* table);
  void TruncateTable(Table* table, uint64_t tree_id_first);
  // Before a table changes: what it was is kept, if undo has begun.
  void SaveForUndo(Table* table) {
    if (undo_ != nullptr) [[unlikely]]
      SaveForUndoOf(table);
  }
  void SaveForUndoOf(Table* table);
  void Retire(std::unique_ptr<Table> table);
  void CollectRetired(Table* table);
  // The schema has changed: names that are remembered may mean something else now.
  void ForgetNames();

  void NoteName(const Table& table);  // that it has come by its name

  // --- engine_tablets.cc
  Status ApplyTabletOp(const DecodedOp& op);
  Status ApplyMoveOp(const DecodedOp& op);
  // A tablet that the op takes from, or gives to, what the set owns of a table.
  [[nodiscard]] bool ChangeOwned(uint64_t table_id, const Tablet& tablet, bool owned);
  void EncodeTablets(std::string* to) const;
  bool HasPlacement() const;
  [[nodiscard]] bool TakeTablets(std::string_view state);
  static bool FitTable(const Tablets& tablets, const TableSchema& schema);
  // Tables of the cluster's keyspace are kept in a cluster, and not outside of one.
  void KeepClusterTables();
  // --- engine_snapshots.cc
  static constexpr uint64_t kSnapshotIdMax{uint64_t{1} << 48};
  struct LoadingVersions;
  Status ApplySnapshotOp(const DecodedOp& op);
  Status CreateSnapshot(const DecodedOp& op);
  Status NameSnapshot(const DecodedOp& op);
  Status AdoptSnapshot(const DecodedOp& op);
  Status CopyTable(const DecodedOp& op);
  void DropSnapshot(uint64_t id);
  void RetireSnapshot(NamedSnapshot& snapshot);
  uint64_t undo_table_id_next() const;
  void KeepForUndo(std::unique_ptr<NamedSnapshot> snapshot);
  void NoteNamedForUndo(uint64_t snapshot_id);
  // Indexes whose entries stand in a file, by their number there; those that may.
  static std::vector<std::pair<uint64_t, Index*>> IndexesInFile(const Table& table);
  static std::vector<std::pair<uint64_t, uint64_t>> IndexIdsInFile(const Table& table);
  std::vector<VersionInFile> VersionsInFile() const;
  void EncodeSnapshots(const std::vector<VersionInFile>& versions, std::string* to) const;
  [[nodiscard]] bool DecodeSnapshots(std::string_view* from);
  [[nodiscard]] bool DecodeSnapshot(std::string_view* from);
  [[nodiscard]] bool PlanChains(const std::map<uint64_t, uint64_t>& older,
                                std::vector<uint64_t> without_newer);
  void AppendVersions(const std::vector<VersionInFile>& versions, StateSnapshot* snapshot) const;
  BTree* NoteLoaded(uint64_t file_id, BTree* tree);
  bool IsVersionToLoad(uint64_t file_id) const;
  BTree* VersionForLoad(uint64_t file_id);
  void FinishVersions();
  bool ReleaseRetired(uint64_t* entries_max);

  std::map<std::string, Keyspace, std::less<>> keyspaces_;
  std::map<uint64_t, std::unique_ptr<Table>> tables_;
  Numbers numbers_;
  std::map<std::pair<std::string, std::string>, WatchedName> watched_names_;
  uint64_t lineage_{0};
  std::vector<std::unique_ptr<BTree>> garbage_;
  std::unique_ptr<Undo> undo_;
  Compaction compaction_;
  MutationCheck check_{*this};
  // Is a row from elsewhere worth ApplyRowAsRun? Mostly it is like the one before; for others it
  // would cost a second reading of their puts.
  bool last_row_was_run_{false};
  size_t puts_in_row_{0};  // one by one, since it began
  RowPuts run_of_row_;
  FeedSet feeds_;
  SnapshotSet snapshots_;
  std::unique_ptr<TableCopy> prepared_copy_;
  std::unique_ptr<LoadingVersions> loading_;
  PreImages* pre_images_{nullptr};
  mutable std::map<uint64_t, bool> tells_old_;  // by table, as far as it has been asked
  int64_t commit_micros_{0};                    // of the record that is being applied
  int64_t history_micros_{0};                   // of the step in it
  std::vector<Index*> loaded_indexes_;  // whose entries a snapshot holds, while it is loaded

  // FindTable without what it remembers.
  Table* FindTableAnew(std::string_view keyspace, std::string_view name) const;

  // FindTable's last answer that was a table; empty and null after every change of the schema.
  mutable std::string cached_keyspace_;
  mutable std::string cached_name_;
  mutable Table* cached_table_{nullptr};
};

// Versions go before the trees that they are of.
void DestroyTrees(std::vector<std::unique_ptr<BTree>>* trees);

}  // namespace cellar
