// Store: the one door to data. Finds tables, reads rows, and carries out every change in three
// steps: check (every user error ends there), log (room for the record is reserved, so that it
// cannot be refused), apply (the trees change; cannot fail any more).
//
// Owns the Engine (the model in memory) and the Journal (log and snapshots). One thread, the
// loop's, calls it. Knows nothing of sockets, sessions or replies. Time is the turn's: SetTurnTime
// is called once a turn, and not inside EXEC, where time stands still.
//
//   store.cc          opening, committing, transactions, time
//   store_read.cc     reads of rows, snapshot cursors, digest
//   store_schema.cc   keyspaces, tables, families
//   store_index.cc    indexes
//   store_slices.cc   CDELRANGE, the sweeper, compaction
//   family_alter.cc   FAMILY ALTER
//   row_update.cc     CUPDATE
//   store_set.cc      a replica set's member: its log is ahead of what is committed
//   store_feeds.cc    feeds
//   store_snapshots.cc  named snapshots, copies of tables
//   store_replica.cc  records that come from a leader, a copy that takes the place of everything
//
// The way of a CPUT without options, and that of a CGET, down to the tree and back:
//
//   Dispatcher::Run                    behind Admit: the user may (commands/dispatch)
//   |  CmdCPut                         words: row, then column and value in turn
//   |  |  FindTableToChange
//   |  |  Store::Put                   READONLY; the stamp
//   |  |  |  RowResolver::ResolvePuts  key of the row | Table::EncodeColumn: of the column | value
//   |  |  |  |                         each checked as it is added to the mutation
//   |  |  |  Journal::Reserve          room in the log: from here on nothing fails
//   |  |  |  RowResolver::Apply        Engine::ApplyPut, Table::ApplyPut, BTree::Put
//   |  |  |  Journal::AppendJoined     the mutation is the record
//   |  |  DependsOn, NotifyRowChanged, OK     the reply waits for the record; who watches the row hears it
//   |  CmdCGet                         words: row, column
//   |  |  FindTable                    the reply waits for what the table depends on
//   |  |  Store::OpenRow               OpenedRow::Open: key of the row
//   |  |  OpenedRow::Get               Table::EncodeColumn; ReadView::ReadColumn, BTree::GetFirst
//   |  |  EndGet                       the value, by its type
//   Dispatcher::Finish                 what INFO and the slow log count
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/inline.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/rows/opened_row.h"
#include "engine/rows/row_resolver.h"
#include "engine/state/engine.h"
#include "engine/state/pre_images.h"
#include "engine/table/mutation.h"
#include "engine/table/reclaim_walk.h"
#include "engine/table/table.h"
#include "store/catalog_changes.h"
#include "store/store_options.h"

namespace cellar {

class AggregateJob;
struct AggregateLimits;
struct AggregateRequest;
struct CellOptions;
enum class Feature : uint8_t;  // requests.h
struct IndexInfo;
class NearSearch;
struct NewFamily;
struct NewIndex;
struct NewTable;
struct RowOptions;
struct RowUpdate;
class Scan;
struct ScanExplained;
struct ScanPosition;
class SlicedChange;  // sliced_change.h
struct SweeperStats;
class TableScan;

// Who hears of what a leader's records change.
class ApplyListener {
 public:
  virtual ~ApplyListener() = default;
  // `payload` is about to be applied; its last step was committed at `commit_micros`. Should it be
  // found to be damaged, AfterApply is not called.
  virtual void BeforeApply(std::string_view payload, int64_t commit_micros) = 0;
  // It was, and is in the log.
  virtual void AfterApply() = 0;
};

class Store {
 public:
  // Recovers what the journal's directory holds. `files` and `clock` must outlive the store.
  static Result<std::unique_ptr<Store>> Open(StoreOptions options, FileSystem& files, Clock& clock,
                                             const LoadProgressCallback& progress);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Engine& engine() { return *engine_; }
  Journal& journal() { return *journal_; }
  const StoreOptions& options() const { return options_; }
  void set_value_bytes_max(uint64_t bytes) { options_.value_bytes_max = bytes; }
  void set_future_max_micros(int64_t micros) { arrivals_.set_future_max_micros(micros); }
  // Cells with timestamps that are most likely a mistake.
  const ArrivalWatch& arrivals() const { return arrivals_; }
  void set_snapshot_cursor_timeout(int64_t micros) {
    options_.snapshot_cursor_timeout_micros = micros;
  }

  enum class Overwrite : uint8_t { kNo, kYes };

  // --- names. `name` may be "keyspace/table", which overrides `keyspace`, and end in @snapshot: a
  // frozen table, which is READONLY to all that would change it. NOKEYSPACE, NOSNAPSHOT, NOTABLE.
  CELLAR_INLINE Result<Table*> FindTable(std::string_view keyspace, std::string_view name) {
    Table* table = engine_->FindTable(keyspace, name);
    // Not its result as it is, which would have to have an address then: the usual one stays in
    // registers.
    if (table == nullptr) [[unlikely]] {
      ASSIGN_OR_RETURN(table, FindTableElsewhere(keyspace, name));
    }
    return table;
  }
  // The same: null if there is none.
  CELLAR_INLINE Table* FindTableIfAny(std::string_view keyspace, std::string_view name) {
    Table* const table = engine_->FindTable(keyspace, name);
    return table != nullptr ? table : FindTableElsewhereIfAny(keyspace, name);
  }
  bool KeyspaceExists(std::string_view name) const { return engine_->KeyspaceExists(name); }
  std::vector<std::string> Keyspaces() const { return engine_->Keyspaces(); }  // ascending
  // Null if there is none (any more). Of another lineage, ids stand for other tables.
  Table* TableById(uint64_t id) const { return engine_->FindTableById(id); }
  uint64_t lineage() const { return engine_->lineage(); }
  std::vector<Table*> Tables(std::string_view keyspace) const {  // ascending by name
    return engine_->Tables(keyspace);
  }

  // --- writes of one row. All errors of cellar-model(7) come from here.
  // *result, which keeps its memory from write to write, is unspecified after an error.
  Status Write(Table& table, const RowWrite& write, RowWriteResult* result);
  Result<RowWriteResult> Write(Table& table, const RowWrite& write);
  // Puts without options, by somebody who may do everything, in the quickest way. `cells` are
  // columns and values in turn; ERR if a column is none. REQUIRES: 1 to kCellOpsMax of each; `row`
  // is a row key, not the request for a record number.
  Status Put(Table& table, std::string_view row, std::span<const std::string_view> cells);

  // --- reads. `access` (also in CellOptions): families that it does not let read are left out,
  // naming one is NOPERM; null allows everything.
  // A row, to read single columns of it. It dies with the next write, or the next row opened.
  // BADKEY, TOOLARGE.
  CELLAR_INLINE Result<OpenedRow*> OpenRow(const Table& table, std::string_view row,
                                           const FamilyAccess* access = nullptr) {
    RETURN_IF_ERROR(opened_row_.Open(table, row, access, now_micros_));
    return &opened_row_;
  }
  // The table of that name if it pays to prefetch its rows; null if it does not, or there is none.
  const Table* TableToPrefetch(std::string_view keyspace, std::string_view name) const;
  // Has the memory brought into the cache that reads and writes of these rows will touch, all at
  // once; they are as clients name them. REQUIRES: TableToPrefetch has given the table.
  void PrefetchRows(const Table& table, std::span<const std::string_view> rows) const;
  // Goes on from `from` if given.
  Result<std::unique_ptr<Scan>> ScanRows(const Table& table, const RowOptions& rows,
                                         const CellOptions& cells, const ScanPosition* from);
  // Named rows in the order in which they are named (row_list_scan.h).
  Result<std::unique_ptr<Scan>> ReadRows(const Table& table, std::span<const std::string_view> rows,
                                         const CellOptions& cells);
  // What CAGG asks for, over what such a scan reads. `cells` may be changed: what nobody looks at
  // is not read. The errors of ScanRows and of AggregatePlan.
  Result<std::unique_ptr<AggregateJob>> Aggregate(const Table& table, const RowOptions& rows,
                                                  CellOptions& cells,
                                                  const AggregateRequest& request,
                                                  const AggregateLimits& limits);
  // Ends a scan that ScanRows gave; its memory may serve the next one.
  void EndScan(std::unique_ptr<Scan> scan);
  // The same scan, with what it is going to do.
  Result<ScanExplained> ExplainRows(const Table& table, const RowOptions& rows,
                                    const CellOptions& cells, const ScanPosition* from);
  // CNEAR: the row, else the smallest larger, else the largest smaller one.
  Result<std::unique_ptr<NearSearch>> Near(const Table& table, std::string_view row,
                                           const FamilyAccess* access = nullptr);

  // TABLE SAMPLE: at most parts - 1 keys of live rows, ascending and distinct, that split the table
  // into parts of about equal bytes.
  std::vector<std::string> SampleRows(const Table& table, uint64_t parts,
                                      const FamilyAccess* access = nullptr);

  // SNAPSHOT cursors: a pinned view of a table, found again by its id until it has been unused for
  // snapshot-cursor-timeout. STALECURSOR if it is gone or of another table. The scan must end
  // before the id is unpinned; others that hold it go on.
  uint64_t PinSnapshot(const Table& table, const FamilyAccess* access = nullptr);
  Result<std::unique_ptr<Scan>> ScanPinned(uint64_t id, const Table& table, const RowOptions& rows,
                                           const CellOptions& cells, const ScanPosition* from);
  void UnpinSnapshot(uint64_t id);
  // While a scan of a pinned view goes on over several turns, the view is in use and not stale.
  // Nothing if it is gone. Each Hold needs its Release.
  void HoldPin(uint64_t id);
  void ReleasePin(uint64_t id);
  // Unpins what has not been used for too long. From a timer.
  void UnpinStale();

  // The same of one table: what it is called does not matter, and expiries do. Of a frozen one:
  // what was live then.
  std::string DigestTable(const Table& table);
  // Hash of all schema and live cells (DEBUG DIGEST), 32 hexadecimal digits: of those that live
  // now, or when the newest timestamp was given out, which is the same on every copy whatever its
  // clock says. O(n).
  enum class DigestTime : uint8_t { kNow, kNewestStamp };
  std::string Digest(DigestTime time = DigestTime::kNow);
  // Whether every whole index is what its table says; ERR naming one that is not. O(n).
  Status VerifyIndexes();

  // --- sliced changes
  // CDELRANGE: the rows in the union of `rows.rows`; no selector is all of them.
  Result<std::unique_ptr<SlicedChange>> DeleteRows(Table& table, const RowOptions& rows);
  // CUPDATE: rows that are there now, each when its turn comes; see row_update.cc. `access` (null:
  // everything is allowed) is not needed any more when the call is over.
  Result<std::unique_ptr<SlicedChange>> UpdateRows(Table& table, std::unique_ptr<RowUpdate> update,
                                                   const FamilyAccess* access);

  // --- schema
  Status CreateKeyspace(std::string_view name);
  Status DropKeyspace(std::string_view name);
  Status CreateTable(std::string_view keyspace, std::string_view name, const Order& key,
                     const std::vector<NewFamily>& families);
  Status CreateTable(std::string_view keyspace, std::string_view name, const NewTable& table);
  Status DropTable(Table& table);
  Status TruncateTable(Table& table);
  // BUSYKEY if the target exists, unless `overwrite`, which drops it in the same record.
  Status RenameTable(Table& table, std::string_view keyspace, std::string_view name,
                     Overwrite overwrite);
  Status AddFamily(Table& table, const NewFamily& family);
  // What family_alter.cc says. Errors tell of values that `access` (null: everything) lets read, as
  // it does now: it is not needed any more when the call is over.
  Result<std::unique_ptr<SlicedChange>> AlterFamily(Table& table, const NewFamily& family,
                                                    const FamilyAccess* access);
  Status DropFamily(Table& table, std::string_view name);
  // Bytes of a family in the newest snapshot file, and of its changes since. Of a frozen table
  // none. O(families of the store) once behind each snapshot.
  struct FamilyOnDisk {
    uint64_t snapshot_bytes{0};
    uint64_t log_bytes{0};
  };
  FamilyOnDisk OnDisk(const Table& table, const FamilySchema& family);

  // --- indexes. The name must be one (IsName).
  // Builds a first slice at once, the rest in Sweep(); inside a transaction all of it.
  Status CreateIndex(Table& table, const NewIndex& index);
  Status DropIndex(Table& table, std::string_view name);
  Result<IndexInfo> DescribeIndex(const Table& table, std::string_view name);
  // CNEAR ... INDEX. NOINDEX, NOPERM, BADVALUE, NOTUNIQUE, TRYAGAIN; ERR for too many values.
  Result<std::unique_ptr<NearSearch>> NearIndex(const Table& table, std::string_view name,
                                                const std::vector<std::string_view>& values,
                                                const FamilyAccess* access);

  // --- feeds. `name` may be "keyspace/feed".
  // Null if there is none.
  const Feed* FindFeed(std::string_view keyspace, std::string_view name) const;
  // Of `feed` the definition counts: not the id, nor when it begins. NOTABLE, NOFAMILY, BADKEY for
  // what it names, BUSYKEY, TOOLARGE; ERR without a log.
  Status CreateFeed(std::string_view keyspace, std::string_view name, Feed feed);
  Status DropFeed(const Feed& feed);
  // Logs and carries out changes of a group of consumers; inside a transaction as a part of it.
  Status ChangeFeedGroup(uint64_t feed_id, std::string_view group, const FeedGroupChanges& changes);
  FeedLog& feed_log() { return *feed_log_; }
  Status UpdateFeedLog();
  void set_log_keep_bytes(uint64_t bytes);
  void set_feed_sync(int64_t micros);

  // --- named snapshots (engine/state/snapshot_set.h). `name` has no keyspace in front.
  // NOSNAPSHOT.
  Result<const NamedSnapshot*> FindSnapshot(std::string_view keyspace, std::string_view name) const;
  // Of these tables, which are of that keyspace. `ttl_micros` 0: it stays. BUSYKEY if there is one
  // of that name, unless it is replaced; TOOLARGE beyond snapshots-max.
  Status CreateSnapshot(std::string_view keyspace, std::string_view name,
                        const std::vector<const Table*>& tables, int64_t ttl_micros,
                        Overwrite replace);
  Status DropSnapshot(const NamedSnapshot& snapshot);
  void set_snapshots_max(uint64_t count) { options_.snapshots_max = count; }
  void set_drop_keep(int64_t micros) { options_.drop_keep_micros = micros; }
  // Asked before one of these is logged, which not every version knows; its error is the reply.
  // Null: nobody need be asked.
  using FeatureGate = std::function<Status(Feature)>;
  void set_feature_gate(FeatureGate gate) { feature_gate_ = std::move(gate); }
  // Asked before drop-keep keeps what would give its memory back.
  void set_memory_is_short(std::function<bool()> is_short) {
    memory_is_short_ = std::move(is_short);
  }
  // The commit time of the command at hand.
  int64_t CommitMicros() const;

  // COPY: `source` as it is now, also a frozen table, under another name. The destination is there
  // when the change is done; rows() is then 1, or 0 if a table has come by its name meanwhile,
  // which is not replaced.
  Result<std::unique_ptr<SlicedChange>> CopyTable(Table& source, std::string_view keyspace,
                                                  std::string_view name, Overwrite replace);

  // --- transactions (EXEC): everything between Begin and Commit is one log record.
  enum class Atomicity : uint8_t { kRedis, kAll };  // kAll can be rolled back (MULTI ATOMIC)
  void BeginTransaction(Atomicity atomicity);
  void CommitTransaction();
  void RollBackTransaction();  // REQUIRES: begun with kAll
  bool in_transaction() const { return in_transaction_; }

  // The key of a row as its table's trees have it. BADKEY, TOOLARGE.
  Result<std::string> RowKey(const Table& table, std::string_view row) const;

  // --- the loop
  // The record that the newest change is in; inside a transaction, the one before.
  Lsn last_lsn() const { return journal_->last_lsn(); }
  // The last change of any schema: what replies depend on that tell of tables' existence.
  Lsn schema_lsn() const { return schema_lsn_; }
  void Flush() { journal_->Flush(); }
  // Called for each row that loses cells to retention though nobody writes it (the sweeper, FAMILY
  // ALTER), behind the change. `row_key` is encoded. Null: nobody is.
  using ReclaimListener = std::function<void(const Table&, std::string_view row_key)>;
  void set_reclaim_listener(ReclaimListener listener) { reclaim_listener_ = std::move(listener); }
  // Reclaims memory: dropped tables, dropped families, dropped versions. Examines about `cells_max`
  // cells. True if there is so much to do that the next slice should follow at once.
  bool Sweep(uint64_t cells_max);
  // The last Sweep() has left an index that is to be built: there is much to do, and queries wait.
  bool building_indexes() const { return building_indexes_; }
  SweeperStats sweeper_stats() const;

  // --- time
  void SetTurnTime();
  int64_t now_micros() const { return now_micros_; }
  // From the next turn on it is never earlier: what was due for another leader stays so.
  void SetTimeFloor(int64_t micros) { time_floor_micros_ = micros; }
  // DEBUG SET-TIME; nullopt is the clock again.
  void OverrideTime(std::optional<int64_t> micros);

  // --- replication
  // Told of each record that ApplyRecord applies. Borrowed; null: nobody is.
  void set_apply_listener(ApplyListener* listener) { apply_listener_ = listener; }
  // As a follower the store takes changes by ApplyRecord alone: what it would change by itself
  // (reclaiming, states of indexes) is refused, and so is every write.
  void SetFollowing(bool following) { following_ = following; }
  bool following() const { return following_; }
  // Applies a record of the leader's log and adds it to the own one. MISCONF: no room now, nothing
  // was changed. ERR: it is not the next one, nothing was changed. kCorruption: it cannot be
  // applied, and some of it may have been; it is not in the log. REQUIRES: following().
  Status ApplyRecord(const LogRecord& record);
  // --- a member of a replica set (JournalOptions::set_member)
  // Adds a record of the leader's to the log; ApplyCommitted applies it. One whose seq is not above
  // the last one's voids all from there on. Consensus counts on it from then: if there is no room
  // by now it is kept in memory until there is. REQUIRES: following(); nothing that is committed is
  // voided.
  void AppendEntry(const LogRecord& record);
  // Adds a barrier or members of its own, which leads in this epoch, also where the log is in
  // trouble. While following(), as long as it is not open, it waits like records of a leader.
  void AppendOwn(RecordKind kind, uint32_t epoch, std::string_view payload);
  // Applies what the log holds up to `commit`, at least one record of it, until the deadline
  // (monotonic). True: nothing of it is left. kCorruption: a record cannot be applied.
  Result<bool> ApplyCommitted(Lsn commit, int64_t deadline_micros);
  // The newest record in the state, as long as that is not void.
  Lsn applied_lsn() const;
  // Memory of the records that wait to be applied.
  uint64_t pending_bytes() const { return pending_bytes_; }
  // Records that had been applied have been voided: the state is no prefix of the log. Nothing is
  // applied from then on, and nobody should be shown it, until ReloadCommitted.
  bool state_is_void() const { return state_is_void_; }
  // A snapshot was due, but the log was ahead of the state; asked once, then forgotten.
  bool TakeSnapshotWaits() { return std::exchange(snapshot_waits_, false); }
  // Whether the log names members of a set. Before TakeShape.
  bool names_members() const { return !shape_.snapshot_members.empty() || !shape_.named.empty(); }
  // What consensus must know of the log as it was opened last; once.
  LogShape TakeShape() { return std::move(shape_); }
  // Drops the state and makes it anew from the files, up to `commit`; closes the log and opens it
  // again meanwhile, so that journal().appended() begins anew. MISCONF: nothing was done. Any other
  // error leaves no store.
  Status ReloadCommitted(Lsn commit);

  // A leader begins an epoch: writes a barrier with it. MISCONF: the log takes no record.
  Status BeginEpoch(uint32_t epoch);
  // Puts the snapshot in file `path`, which is durable and goes, in the place of everything (none:
  // an empty store), closes all and recovers it from there, under running clients, as Reload does
  // where the state is another one. Where the files cannot be changed the store holds what it held,
  // and *status says why. An error that is returned leaves no store, as one of Reload.
  // `loaded` holds what the snapshot holds; null without one. What was held is freed in slices.
  Status ReplaceContent(const std::string& path, const std::optional<SnapshotEntry>& entry,
                        std::unique_ptr<Engine> loaded, Status* status);
  // Whether it keeps records and applies none (Manifest::holds_log_only): a witness's.
  bool holds_log_only() const { return journal_->holds_log_only(); }
  // The log of a witness goes on behind `lsn`, whose commit time and members these are: what it
  // held goes. Errors and *status as ReplaceContent. REQUIRES: holds_log_only().
  Status RestartLog(Lsn lsn, int64_t commit_micros, std::string members, Status* status);
  // Frees in slices what was loaded in vain.
  void Discard(std::unique_ptr<Engine> loaded) {
    engine_->TakeGarbage(loaded->GiveUp(Trees::kAll).trees_in_use);
  }

  // --- backups and the archive: what other threads have done, from a timer and after `wake`
  Backup& backup() { return *backup_; }
  Archive* archive() { return archive_.get(); }  // null: there is none
  void PollFiles();

  // DEBUG RELOAD: closes everything and recovers it from its files under running clients. Every
  // Table pointer dies; what clients hold on to goes on as CarriedState (engine.h) says. Tells
  // whether the state is the one that was there: not if changes were in no file (appendonly no).
  // MISCONF: the log cannot be written now, and nothing was done. Any other error leaves no store:
  // nothing but the destructor may follow.
  Result<Continuity> Reload(JournalOptions journal);

 private:
  friend class CopyChange;
  friend class RangeDelete;
  friend class RowsUpdate;
  friend class FamilyAlter;
  friend class CellConversion;
  friend class TabletChanges;
  friend class CatalogChanges;
  friend class MoveChanges;
  friend class PolicyChanges;
  friend class FrozenTables;

  struct Pin {
    std::unique_ptr<ReadView> view;
    uint64_t table_id{0};
    int64_t used_micros{0};  // monotonic
    uint32_t holds{0};
  };

  Store(StoreOptions options, FileSystem& files, Clock& clock);
  // Behind the record with that payload: if it says who owns what, it is released once it is on
  // disk.
  void SyncOwnership(std::string_view payload);
  Status OpenJournal(const LoadProgressCallback& progress, StateContent content);
  Status OpenFiles();
  // Ends log and state, which outlives them in part; OpenJournal makes both anew.
  CarriedState CloseAll(Trees trees);
  uint64_t NoteApplied(const LogRecord& record);
  void TakePending();

  // Write without what comes before all rows of a command.
  Status WriteRow(Table& table, const RowWrite& write, RowResolver::Known known,
                  RowWriteResult* result);
  WriteContext NextWriteContext() const;
  // The timestamp that a command's cells get: larger than all before.
  int64_t NextStamp() const;
  // Begins the mutation of a command: a record of its own, or a part of the transaction's.
  void BeginMutation() {
    catalog_.parts.clear();
    if (in_transaction_)
      (void)mutation_.BeginPart();
    else
      mutation_.Reset();
    part_begin_ = mutation_.size();
  }
  // Reserves room for what was added since BeginMutation, applies it (unless it has been) and logs
  // it (outside of a transaction). MISCONF: nothing was changed, and the part is taken back.
  Status CommitMutation(Table* table, uint64_t changes);
  // Parts of Put, and of Write where it puts: `resolve` adds the puts to the mutation; they are
  // applied and logged.
  template <typename ValueBytes>
  bool PreparePut(Table& table, std::string_view row, ValueBytes value_bytes);
  template <typename Resolve>
  Status PutResolved(Table& table, size_t puts, Resolve resolve);
  Status PutByWrite(Table& table, std::string_view row, std::span<const std::string_view> cells);
  // Of what a client puts: `more` bytes will be added to it.
  Status ReserveMutation(size_t more);
  // Before what was added since BeginMutation is carried out: notes what stands there if a feed of
  // the table tells it. Behind it, AppendPreImages.
  // `is_resolved`: it is what the resolver has made last, and none of it has been applied.
  enum class Resolved : uint8_t { kNo, kYes };
  void TakePreImages(const Table& table, Resolved is_resolved);
  Status PutTellingOld(Table& table, size_t puts, const std::optional<int64_t>& stamp);
  void AppendPreImages() {
    if (has_pre_images_) [[unlikely]]
      pre_images_.AppendTo(&mutation_);
  }
  // Room for that.
  size_t pre_images_bytes() const { return has_pre_images_ ? pre_images_.bytes() : 0; }
  Status ApplyOrRefuse(Table& table, const FamilyAccess* access, RowResolver::Outcome* outcome);
  void FinishMutation(Table* table, uint64_t changes);
  // CommitMutation of what changes the schema. In a cluster that is the next change of a schema
  // that all sets have (catalog_changes.h).
  Status CommitSchema(Table* table);
  // Of what concerns this set alone: who owns what, states of indexes, snapshots.
  Status CommitLocalSchema(Table* table);
  Status CommitCatalog(Table* table);
  void OpenTransaction(Atomicity atomicity);
  void AssignNewTable(uint64_t id, const Tablets& tablets);
  void AssignCopy(uint64_t id, const Table& source);
  bool has_other_sets() const {
    return catalog_.keeper != nullptr && catalog_.keeper->has_others();
  }
  // What watchers have been told so far of the table and of a row that is about to lose cells.
  TableWatches::Mark MarkBeforeDeletes(const Table& table, std::string_view row) const;
  // FindTable for names that have a keyspace in front, or are of no table.
  Result<Table*> FindTableElsewhere(std::string_view keyspace, std::string_view name);
  Table* FindTableElsewhereIfAny(std::string_view keyspace, std::string_view name);
  // The table that a task began with, by its id; NOTABLE. `lineage` is that of the beginning.
  Result<Table*> FindTableAgain(uint64_t id, uint64_t lineage) const;
  // Takes a keyspace out of "keyspace/table"; NOKEYSPACE.
  Status SplitTableName(std::string_view* keyspace, std::string_view* name) const;
  Status CheckNewTable(std::string_view keyspace, std::string_view name) const;
  Status AddFamilyTo(TableSchema* schema, const NewFamily& family, uint64_t* tree_id_next) const;
  bool SweepTable(Table& table, uint64_t cells_max);
  bool SweepTables(uint64_t cells_max);
  bool SweepFeeds();
  Status CheckFeed(const Feed& feed) const;
  // --- store_snapshots.cc
  // READONLY if the table is frozen, ERR if it is the cluster's.
  static Status CheckLive(const Table& table) {
    return table.fixed() ? FixedTable(table) : Status::Ok();
  }
  [[gnu::cold]] static Status FixedTable(const Table& table);
  Status NoTableInSnapshot(std::string_view keyspace, std::string_view word) const;
  // Numbers that are free behind what the mutation has so far.
  struct SnapshotIds {
    uint64_t table{0};
    uint64_t tree{0};
  };
  SnapshotIds NextIds() const;
  Status CheckFeature(Feature feature) const {
    return feature_gate_ ? feature_gate_(feature) : Status::Ok();
  }
  Status CheckFeatures(const FamilyOptions& options) const;
  // Adds kCreateSnapshot to the mutation; returns its number.
  uint64_t AddSnapshot(std::string_view keyspace, std::string_view name,
                       const std::vector<const Table*>& tables, int64_t ttl_micros,
                       SnapshotIds* ids);
  // Before a table goes or is emptied: drop-keep's snapshot of it, as a part of the mutation.
  Status KeepDropped(const Table& table, SnapshotIds* ids);
  Status CheckNewSnapshot(std::string_view keyspace, std::string_view name,
                          Overwrite replace) const;
  bool SweepSnapshots();
  void NoteSnapshot(uint64_t id);  // its tables are told as of schema_lsn_
  // A step of the transaction, or of a command, that is very large takes longer (feed.h).
  void ReserveMicros();
  // Calls the listener for the rows of the ops that were applied last.
  void TellReclaimed(const Table& table, std::string_view ops);
  // Builds what is not built of the table's indexes, about `rows_max` rows, and logs the state of
  // those that are complete. True if nothing is left. It stops when building has taken
  // `micros_max` of this turn: a row costs 1 us or 20, by what is in the caches.
  bool BuildIndexes(Table& table, uint64_t rows_max, int64_t micros_max);
  // Rows of an index that are built at once where a client waits, and the time for them.
  static constexpr uint64_t kIndexRowsAtOnce{2'000};
  static constexpr int64_t kIndexMicrosAtOnce{4'000};
  static constexpr int64_t kIndexMicrosPerSlice{1'000};  // of the sweeper
  static constexpr int64_t kIndexMicrosUnlimited{INT64_MAX};
  // After a change of the schema that may have begun or restarted an index: builds it if the table
  // is small. A larger one is built in slices, also behind a transaction.
  void BeginIndexes(Table& table);
  // Before a read that wants an index: what is not built comes nearer to it.
  void PrepareIndexes(Table& table);
  // Before a write, which a UNIQUE index may refuse. To build others is for the sweeper.
  void PrepareIndexesForWrite(Table& table);
  // The most rows that may be built at once where a client waits. A transaction finds whole what it
  // has begun itself, since nothing comes between its commands.
  uint64_t IndexRowsAtOnce(const Table& table) const;
  bool SweepIndexes(uint64_t rows_max, int64_t micros_max);
  bool Compact();  // true if nothing is left to do for now

  StoreOptions options_;
  FileSystem& files_;
  Clock& clock_;
  std::unique_ptr<Engine> engine_;
  ArrivalWatch arrivals_;
  std::unique_ptr<RowResolver> resolver_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<FeedLog> feed_log_;
  std::unique_ptr<Backup> backup_;
  bool backup_was_active_{false};
  std::unique_ptr<Archive> archive_;
  uint64_t feed_logs_opened_{0};

  bool following_{false};
  // A set's member: what the log holds and the state does not, in order; if there is some, or the
  // state is void, what had been applied before.
  std::deque<PendingRecord> pending_;
  uint64_t pending_bytes_{0};
  Lsn applied_;
  bool state_is_void_{false};
  bool snapshot_waits_{false};
  LogShape shape_;
  int64_t now_micros_{0};
  int64_t time_floor_micros_{0};
  int64_t index_micros_spent_{0};  // in this turn, building
  std::optional<int64_t> time_override_;
  Lsn schema_lsn_;

  MutationBuilder mutation_;
  size_t part_begin_{0};
  PreImages pre_images_;       // of the part, if there are any
  std::set<uint64_t> copies_;  // snapshots of copies at work
  std::function<bool()> memory_is_short_;
  struct Catalog {
    CatalogKeeper* keeper{nullptr};
    std::vector<CatalogChange::Part> parts{};  // of the part of the mutation at hand
    CutMark cut{};                             // what the next change is
    struct Settling {                          // of PolicyChanges
      uint64_t table_id{0};
      uint32_t family_id{0};
      RetentionPolicy policy{};
      std::unique_ptr<SlicedChange> change;
      Status stuck{};  // why the last slice failed
    };
    Settling settling;
  };
  Catalog catalog_;
  FeatureGate feature_gate_;
  // Of the newest snapshot file; empty until somebody asks.
  struct DividedFile {
    uint64_t number{0};  // Journal::newest_snapshots()
    std::vector<Engine::FamilyInFile> families{};
  };
  std::optional<DividedFile> divided_file_;
  bool has_pre_images_{false};
  bool in_transaction_{false};
  bool transaction_undo_{false};
  uint64_t transaction_changes_{0};
  std::set<uint64_t> transaction_tables_;
  std::set<uint64_t> transaction_indexed_;  // tables of whose indexes it has begun some
  bool transaction_schema_{false};

  OpenedRow opened_row_;
  std::map<uint64_t, Pin> pins_;
  uint64_t pin_id_next_{1};
  uint64_t scans_{0};
  std::unique_ptr<TableScan> spare_scan_;  // null, or closed: what the next scan may use

  ReclaimListener reclaim_listener_;
  ApplyListener* apply_listener_{nullptr};

  // The sweeper's place.
  int64_t compact_after_micros_{0};  // monotonic
  uint64_t sweep_table_id_{0};
  std::optional<ReclaimWalk> sweep_walk_;
  uint64_t sweep_begin_changes_{0};  // of its table
  std::string sweep_ghosts_;
  uint64_t sweep_passes_{0};
  uint64_t sweep_found_{0};  // columns reclaimed by the last slice
  bool sweep_idle_{true};
  bool building_indexes_{false};
};

}  // namespace cellar
