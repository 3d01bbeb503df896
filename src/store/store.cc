// Opening, committing, transactions and time.
#include "store/store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/inline.h"
#include "base/text/quote.h"
#include "base/text/time_text.h"
#include "engine/scans/table_scan.h"
#include "store/move_changes.h"
#include "store/sliced_change.h"

namespace cellar {

namespace {

[[gnu::cold, gnu::noinline]] Status ReadOnly() {
  return Status::Error(ErrorCode::kReadOnly, "You can't write against a read only replica.");
}

}  // namespace

Store::Store(StoreOptions options, FileSystem& files, Clock& clock)
    : options_(std::move(options)),
      files_(files),
      clock_(clock),
      engine_(std::make_unique<Engine>()),
      resolver_(std::make_unique<RowResolver>(*engine_, arrivals_)),
      following_(options_.following) {
  set_future_max_micros(options_.future_max_micros);
  SetTurnTime();
}

// The journal goes last: the others read its files, and pin them to their end.
Store::~Store() {
  pins_.clear();  // snapshots go before their trees
  backup_.reset();
  archive_.reset();
  feed_log_.reset();
  journal_.reset();
}

Result<std::unique_ptr<Store>> Store::Open(StoreOptions options, FileSystem& files, Clock& clock,
                                           const LoadProgressCallback& progress) {
  std::unique_ptr<Store> store(new Store(std::move(options), files, clock));
  RETURN_IF_ERROR(store->OpenJournal(progress, StateContent::kEmpty));
  return store;
}

// The order is that of who needs whom: the log brings the state back, feeds read the log, backups
// and the archive copy its files. Only then are indexes completed, which may write.
Status Store::OpenJournal(const LoadProgressCallback& progress, StateContent content) {
  if (options_.journal.set_member) {
    // libraft 0.22 takes the first record for there if a snapshot ends with it.
    options_.journal.state_is_newest = [this] {
      snapshot_waits_ = !pending_.empty() || state_is_void_;
      return !snapshot_waits_ && last_lsn().seq != 1;
    };
  }
  ASSIGN_OR_RETURN(journal_,
                   Journal::Open(options_.journal, files_, clock_, *engine_, progress, content));
  if (!options_.journal.log_enabled && !following_ && !engine_->feeds().empty()) {
    return Status::Error(ErrorCode::kErr,
                         "there are feeds, which are read from the log: appendonly must be yes");
  }
  feed_log_ = std::make_unique<FeedLog>(++feed_logs_opened_, *engine_, *journal_, files_, clock_,
                                        options_.journal.directory);
  feed_log_->set_keep_bytes(options_.log_keep_bytes);
  feed_log_->set_sync_micros(options_.feed_sync_micros);
  RETURN_IF_ERROR(OpenFiles());
  schema_lsn_ = journal_->last_lsn();
  if (options_.journal.set_member) {
    TakePending();
    schema_lsn_ = applied_lsn();
  }
  SetTurnTime();
  if (!engine_->feeds().empty()) feed_log_->NoteFeed();
  for (const std::string& keyspace : Keyspaces()) {
    for (Table* table : Tables(keyspace)) {
      if (table->has_indexes()) table->indexes()->ForgetRefusals();
    }
  }
  // Clients are being served: indexes that the snapshot does not hold are built in slices.
  if (content == StateContent::kSnapshot) return Status::Ok();
  (void)SweepIndexes(
      kUnlimited, kIndexMicrosUnlimited);  // false: the state of a new one waits for a better disk
  return Status::Ok();
}

// What makes copies of the journal's files.
Status Store::OpenFiles() {
  const std::string& directory = options_.journal.directory;
  backup_ = std::make_unique<Backup>(
      options_.backup,
      Backup::Source{.directory = directory,
                     .whole_log = !options_.journal.set_member,
                     .files = files_,
                     .clock = clock_,
                     .journal = *journal_,
                     .state = *engine_,
                     .wake = options_.journal.wake,
                     .set = engine_->cluster().active() ? std::optional(engine_->cluster().set)
                                                        : std::nullopt});
  RETURN_IF_ERROR(backup_->Mount());
  if (backup_was_active_) backup_->Interrupt("the store was closed and opened again meanwhile");
  backup_was_active_ = false;
  if (options_.archive.directory.empty()) return Status::Ok();
  if (holds_log_only())
    return Status::Error(ErrorCode::kErr,
                         "archive-dir: a witness holds no data, of which there "
                         "could be an archive: take another node");
  ASSIGN_OR_RETURN(archive_, Archive::Open(options_.archive, directory, files_, clock_, *journal_));
  return Status::Ok();
}

void Store::PollFiles() {
  backup_->Poll();
  if (archive_ != nullptr) archive_->Poll();
}

CarriedState Store::CloseAll(Trees trees) {
  CELLAR_ASSERT(!in_transaction_);
  // A snapshot cursor dies with the server, so it dies here. One that is being read, in a task,
  // only cannot be found again.
  std::erase_if(pins_, [](const auto& pin) { return pin.second.holds == 0; });
  for (auto& [id, pin] : pins_) pin.table_id = 0;
  spare_scan_.reset();
  divided_file_.reset();
  sweep_walk_.reset();
  sweep_ghosts_.clear();
  sweep_table_id_ = 0;
  feed_log_.reset();
  backup_was_active_ = backup_->active();
  backup_.reset();
  archive_.reset();
  journal_.reset();
  CarriedState carried = engine_->GiveUp(trees);
  engine_ = std::make_unique<Engine>();
  resolver_ = std::make_unique<RowResolver>(*engine_, arrivals_);
  return carried;
}

// Whoever watches or reads tables goes on with those of the new state if they are the same; a state
// that lacks durable records is another one.
Result<Continuity> Store::Reload(JournalOptions journal) {
  if (!journal_->healthy()) {
    return Status::Error(ErrorCode::kMisconf, "the log cannot be written now: nothing is reloaded");
  }
  RETURN_IF_ERROR(journal_->Close());
  const Lsn end = journal_->last_lsn();
  CarriedState carried = CloseAll(Trees::kInUse);
  options_.journal = std::move(journal);
  RETURN_IF_ERROR(OpenJournal({}, StateContent::kEmpty));
  // As it stands behind the recovery, before indexes are seen to.
  const Lsn recovered = schema_lsn_;
  const Continuity continuity = recovered < end ? Continuity::kOtherState : Continuity::kSameState;
  engine_->Inherit(std::move(carried), continuity);
  return continuity;
}

// --- names

Status Store::SplitTableName(std::string_view* keyspace, std::string_view* name) const {
  const size_t slash = name->find('/');
  if (slash != std::string_view::npos) {
    *keyspace = name->substr(0, slash);
    name->remove_prefix(slash + 1);
  }
  if (engine_->KeyspaceExists(*keyspace)) return Status::Ok();
  return Status::Error(ErrorCode::kNoKeyspace, "no keyspace " + Quote(*keyspace));
}

// Not the table of the command before: by its names, and with the error that fits what is there
// under it.
Result<Table*> Store::FindTableElsewhere(std::string_view keyspace, std::string_view name) {
  RETURN_IF_ERROR(SplitTableName(&keyspace, &name));
  Table* const table = engine_->FindTable(keyspace, name);
  if (table != nullptr) return table;
  if (name.find(kSnapshotSign) != std::string_view::npos) return NoTableInSnapshot(keyspace, name);
  if (engine_->feeds().Find(keyspace, name) != nullptr) return Status::WrongKind();
  return Status::Error(ErrorCode::kNoTable,
                       "no table " + Quote(name) + " in keyspace " + Quote(keyspace));
}

Result<Table*> Store::FindTableAgain(uint64_t id, uint64_t lineage) const {
  if (lineage != engine_->lineage()) {
    return Status::Error(ErrorCode::kNoTable, "all data has been replaced while this went on");
  }
  Table* const table = engine_->FindTableById(id);
  if (table != nullptr) return table;
  return Status::Error(ErrorCode::kNoTable, "the table has been dropped");
}

Table* Store::FindTableElsewhereIfAny(std::string_view keyspace, std::string_view name) {
  const Result<Table*> table = FindTableElsewhere(keyspace, name);
  return table.ok() ? *table : nullptr;
}

// --- writes

Result<RowWriteResult> Store::Write(Table& table, const RowWrite& write) {
  RowWriteResult result;
  RETURN_IF_ERROR(Write(table, write, &result));
  return result;
}

CELLAR_INLINE TableWatches::Mark Store::MarkBeforeDeletes(const Table& table,
                                                          std::string_view row) const {
  if (!table.watches().watches_rows()) [[likely]]
    return table.watches().TakeMark();
  std::vector<std::string> rows;
  if (Result<std::string> key = RowKey(table, row); key.ok()) rows.push_back(*std::move(key));
  return table.watches().TakeMark(rows);
}

// A plain put has its own way (PutResolved), which the CPUT without options takes too: nothing is
// read before it.
Status Store::Write(Table& table, const RowWrite& write, RowWriteResult* result) {
  const auto value_bytes = [&write] {
    size_t bytes = 0;
    for (const CellOp& op : write.ops) bytes += op.text.size();
    return bytes;
  };
  if (write.IsPlainPut() && PreparePut(table, write.row, value_bytes)) {
    result->BeginPlain(write.ops.size());
    return PutResolved(table, write.ops.size(), [&](const WriteContext& context) {
      return resolver_->ResolvePuts(table, write, context, &mutation_);
    });
  }
  RETURN_IF_ERROR(CheckLive(table));
  PrepareIndexesForWrite(table);
  return WriteRow(table, write, RowResolver::Known::kNo, result);
}

WriteContext Store::NextWriteContext() const {
  return {.now_micros = now_micros_,
          .stamp_micros = NextStamp(),
          .value_bytes_max = options_.value_bytes_max};
}

// Resolve, reserve, apply, log: in this order, so that whatever is refused has changed nothing and
// whatever is applied is logged. Ops that read what others wrote are applied by the resolver
// already (outcome.applied): then a refusal rolls the table back.
Status Store::WriteRow(Table& table, const RowWrite& write, RowResolver::Known known,
                       RowWriteResult* result) {
  // Taken before anything is applied: a write that changes nothing visible leads back to it.
  const TableWatches::Mark mark = MarkBeforeDeletes(table, write.row);
  BeginMutation();
  const WriteContext context = NextWriteContext();
  RowResolver::Outcome outcome;
  const bool tells_old = engine_->tells_old() && engine_->TellsOldOf(table);
  has_pre_images_ = false;
  if (tells_old) [[unlikely]] {
    pre_images_.Begin(now_micros_, PreImages::Taken::kOneByOne);
    engine_->TakePreImages(&pre_images_);
  }
  Status resolved =
      resolver_->Resolve(table, write, context, known, {&mutation_, result, &outcome});
  engine_->TakePreImages(nullptr);
  if (!resolved.ok()) [[unlikely]]
    return InTable(std::move(resolved), table);
  if (mutation_.size() == part_begin_) return Status::Ok();  // nothing to change
  if (tells_old && outcome.applied) {
    has_pre_images_ = true;
  } else if (tells_old) {
    TakePreImages(table, Resolved::kYes);
  }
  Status reserved = ReserveMutation(pre_images_bytes());
  if (!reserved.ok()) {
    if (outcome.applied) table.RollBackTo(*outcome.checkpoint);
    mutation_.Truncate(part_begin_);
    return reserved;
  }
  if (table.has_indexes() &&
      table.indexes()->MayRefuse(write.row.size(), mutation_.size() - part_begin_)) {
    RETURN_IF_ERROR(ApplyOrRefuse(table, write.access, &outcome));
  } else if (!outcome.applied) {
    resolver_->Apply(&table);
  }
  AppendPreImages();
  if (outcome.used_stamp) engine_->SetStamp(context.stamp_micros);
  FinishMutation(&table, result->results.size());
  // What deletes dead cells only is nothing that a watcher could see: the sweeper may come first.
  if (!result->changed_something()) table.watches().ReturnTo(mark);
  return Status::Ok();
}

// Makes the indexes ready for a put of so many bytes of values. False if it has to go the general
// way.
template <typename ValueBytes>
CELLAR_INLINE bool Store::PreparePut(Table& table, std::string_view row, ValueBytes value_bytes) {
  // A record number may move the table's counter: the general way knows how.
  if (table.schema().key.is_recno()) [[unlikely]]
    return false;
  if (table.has_indexes()) [[unlikely]] {
    if (table.fixed()) return false;
    if (table.indexes()->MayRefuse(row.size(), value_bytes())) return false;
    PrepareIndexesForWrite(table);
  }
  return true;
}

template <typename Resolve>
// The order of WriteRow without what puts never need: conditions, checkpoints, refusals of indexes.
CELLAR_INLINE Status Store::PutResolved(Table& table, size_t puts, Resolve resolve) {
  if (table.fixed()) [[unlikely]]
    return FixedTable(table);
  BeginMutation();
  const WriteContext context{.now_micros = now_micros_,
                             .stamp_micros = NextStamp(),
                             .value_bytes_max = options_.value_bytes_max};
  if (Status resolved = resolve(context); !resolved.ok()) [[unlikely]]
    return InTable(std::move(resolved), table);
  if (engine_->tells_old()) [[unlikely]] {
    const bool stamped = resolver_->stamp_used();
    return PutTellingOld(table, puts, stamped ? std::optional(context.stamp_micros) : std::nullopt);
  }
  if (Status reserved = ReserveMutation(0); !reserved.ok()) [[unlikely]] {
    mutation_.Truncate(part_begin_);
    return reserved;
  }
  resolver_->Apply(&table);
  if (resolver_->stamp_used()) engine_->SetStamp(context.stamp_micros);
  FinishMutation(&table, puts);
  return Status::Ok();
}

// What PutResolved does where a feed may tell what the puts replace.
Status Store::PutTellingOld(Table& table, size_t puts, const std::optional<int64_t>& stamp) {
  has_pre_images_ = false;
  TakePreImages(table, Resolved::kYes);
  if (Status reserved = ReserveMutation(pre_images_bytes()); !reserved.ok()) {
    mutation_.Truncate(part_begin_);
    return reserved;
  }
  resolver_->Apply(&table);
  AppendPreImages();
  if (stamp) engine_->SetStamp(*stamp);
  FinishMutation(&table, puts);
  return Status::Ok();
}

Status Store::Put(Table& table, std::string_view row, std::span<const std::string_view> cells) {
  CELLAR_DEBUG_ASSERT(!cells.empty());
  CELLAR_DEBUG_ASSERT(cells.size() % 2 == 0);
  CELLAR_DEBUG_ASSERT(cells.size() / 2 <= kCellOpsMax);
  const auto value_bytes = [cells] {
    size_t bytes = 0;
    for (size_t i = 1; i < cells.size(); i += 2) bytes += cells[i].size();
    return bytes;
  };
  if (!PreparePut(table, row, value_bytes)) [[unlikely]]
    return PutByWrite(table, row, cells);
  return PutResolved(table, cells.size() / 2, [&](const WriteContext& context) {
    return resolver_->ResolvePuts(table, row, cells, context, &mutation_);
  });
}

// Put, where it has to go the general way.
Status Store::PutByWrite(Table& table, std::string_view row,
                         std::span<const std::string_view> cells) {
  RowWrite write;
  write.row = row;
  for (size_t i = 0; i < cells.size(); i += 2) {
    CellOp& op = write.ops.emplace_back();
    if (!SplitColumn(cells[i], &op.family, &op.qualifier)) return Status::SyntaxError();
    op.text = cells[i + 1];
  }
  return Write(table, write).status();
}

// An index can only tell what it refuses when the change is there, so the change is taken back
// then.
Status Store::ApplyOrRefuse(Table& table, const FamilyAccess* access,
                            RowResolver::Outcome* outcome) {
  CELLAR_ASSERT(table.has_indexes());
  if (!outcome->applied) {
    outcome->checkpoint = std::make_unique<Table::Checkpoint>(table.TakeCheckpoint());
    outcome->applied = true;
    const Status applied = engine_->ApplyOps(mutation_.Since(part_begin_));
    CELLAR_ASSERT(applied.ok());
  }
  Status refusal = table.indexes()->TakeRefusal(access);
  if (refusal.ok()) return refusal;
  CELLAR_ASSERT(outcome->checkpoint != nullptr);
  table.RollBackTo(*outcome->checkpoint);
  mutation_.Truncate(part_begin_);
  return refusal;
}

int64_t Store::NextStamp() const { return std::max(now_micros_, engine_->stamp() + 1); }

CELLAR_INLINE Status Store::ReserveMutation(size_t more) {
  CELLAR_ASSERT(mutation_.size() > part_begin_);
  if (following_) [[unlikely]]
    return ReadOnly();
  return journal_->ReserveChange(mutation_.size() + more);
}

CELLAR_INLINE void Store::FinishMutation(Table* table, uint64_t changes) {
  // Parts of a transaction are only gathered: CommitTransaction logs them as one record.
  if (in_transaction_) {
    transaction_changes_ += changes;
    if (table != nullptr) transaction_tables_.insert(table->id());
    return;
  }
  mutation_.SetStamp(engine_->stamp());
  if (mutation_.size() >= kFeedLargeStepBytes) [[unlikely]]
    ReserveMicros();
  const Lsn lsn = journal_->AppendJoined(mutation_.payload(), kMutationHeaderBytes, changes);
  if (table != nullptr) table->set_last_lsn(lsn);
}

// For changes that are made of ops alone (schema, reclaiming, ranges of rows): reserve, apply, log.
// A refusal leaves the mutation as it was before the part.
Status Store::CommitMutation(Table* table, uint64_t changes) {
  if (mutation_.size() == part_begin_) return Status::Ok();
  has_pre_images_ = false;
  if (table != nullptr && !following_) TakePreImages(*table, Resolved::kNo);
  Status reserved =
      following_ ? ReadOnly() : journal_->Reserve(mutation_.size() + pre_images_bytes());
  if (!reserved.ok()) {
    mutation_.Truncate(part_begin_);
    return reserved;
  }
  engine_->SetCommitTime(journal_->last_commit_micros() + 1);
  const Status applied = engine_->ApplyOps(mutation_.Since(part_begin_));
  CELLAR_ASSERT(applied.ok());
  AppendPreImages();
  FinishMutation(table, changes);
  return Status::Ok();
}

Status Store::CommitSchema(Table* table) {
  return engine_->cluster().active() ? CommitCatalog(table) : CommitLocalSchema(table);
}

// The change and what the keeper notes of it are one record, or neither is.
Status Store::CommitCatalog(Table* table) {
  const ClusterState& cluster = engine_->cluster();
  if (cluster.set != 0) {
    return Status::Error(ErrorCode::kTryAgain,
                         "the schema of a cluster is changed at set 0, and this is set " +
                             FormatUint64(cluster.set));
  }
  CatalogChange change{
      .number = cluster.catalog + 1, .ops = {}, .parts = std::move(catalog_.parts)};
  catalog_.parts.clear();
  if (has_other_sets()) {
    change.ops = CatalogChanges::OpsForOthers(mutation_.Since(part_begin_));
  }
  if (Status rests = CheckMovesOf(*engine_, mutation_.Since(part_begin_), &mutation_);
      !rests.ok()) {
    mutation_.Truncate(part_begin_);
    return rests;
  }
  mutation_.SetCatalog(change.number);
  if (catalog_.cut.is_cut()) {
    change.cut = std::exchange(catalog_.cut, {});
    std::string mark;
    EncodeCutMark(change.cut, &mark);
    mutation_.Cut(change.number, mark);
  }
  if (!has_other_sets()) return CommitLocalSchema(table);
  const bool is_alone = !in_transaction_;
  if (is_alone) OpenTransaction(Atomicity::kAll);
  Status status = CommitLocalSchema(table);
  if (status.ok()) status = catalog_.keeper->Keep(*this, change);
  if (!is_alone) return status;
  if (!status.ok()) {
    RollBackTransaction();
    return status;
  }
  if (table != nullptr) transaction_tables_.insert(table->id());
  CommitTransaction();
  return Status::Ok();
}

Status Store::CommitLocalSchema(Table* table) {
  RETURN_IF_ERROR(CommitMutation(table, 1));
  if (in_transaction_) {
    transaction_schema_ = true;
  } else {
    schema_lsn_ = journal_->last_lsn();
    if (engine_->cluster().active()) journal_->ReleaseWhenDurable();
  }
  return Status::Ok();
}

// --- transactions

void Store::BeginTransaction(Atomicity atomicity) {
  CELLAR_ASSERT(!in_transaction_);
  mutation_.Reset();
  OpenTransaction(atomicity);
}

// What the mutation has so far is the transaction's first part.
void Store::OpenTransaction(Atomicity atomicity) {
  in_transaction_ = true;
  transaction_undo_ = atomicity == Atomicity::kAll;
  transaction_changes_ = 0;
  transaction_tables_.clear();
  transaction_indexed_.clear();
  transaction_schema_ = false;
  if (transaction_undo_) engine_->BeginUndo();
}

// All parts have been applied, one by one, and are logged as one record: recovery applies all of
// them or none.
void Store::CommitTransaction() {
  CELLAR_ASSERT(in_transaction_);
  in_transaction_ = false;
  if (transaction_undo_) engine_->ForgetUndo();
  if (mutation_.empty()) return;
  mutation_.SetStamp(engine_->stamp());
  if (mutation_.size() >= kFeedLargeStepBytes) ReserveMicros();
  // Room has been reserved for all of it: by the last of its parts.
  const Lsn lsn = journal_->Append(mutation_.payload(), transaction_changes_);
  if (engine_->cluster().active()) [[unlikely]]
    SyncOwnership(mutation_.payload());
  for (const uint64_t id : transaction_tables_) {
    Table* table = engine_->FindTableById(id);
    if (table != nullptr) table->set_last_lsn(lsn);
  }
  if (transaction_schema_) schema_lsn_ = lsn;
}

void Store::RollBackTransaction() {
  CELLAR_ASSERT(in_transaction_);
  CELLAR_ASSERT(transaction_undo_);
  in_transaction_ = false;
  engine_->RollBack();
  mutation_.Reset();
  // What a rollback has brought back is built again, as is what was being built: in slices.
  (void)SweepIndexes(kIndexRowsAtOnce, kIndexMicrosAtOnce);
}

Result<std::string> Store::RowKey(const Table& table, std::string_view row) const {
  std::string key;
  RETURN_IF_ERROR(EncodeRowKey(table.schema(), row, &key));
  return key;
}

// --- time

void Store::SetTurnTime() {
  index_micros_spent_ = 0;
  // Time stands still inside a transaction.
  if (in_transaction_) return;
  const int64_t wall = std::max<int64_t>(0, clock_.WallMicros());
  now_micros_ = time_override_ ? *time_override_ : std::max(wall, time_floor_micros_);
  SetNowOfTexts(now_micros_);
  engine_->HideDueSnapshots(now_micros_);
  // Commit times come from the same clock; the end of time is kept from them.
  constexpr int64_t kTurnTimeMax{kCommitTimeMax / 2};
  if (journal_ != nullptr) journal_->SetTurnTime(std::clamp<int64_t>(now_micros_, 0, kTurnTimeMax));
}

void Store::OverrideTime(std::optional<int64_t> micros) {
  time_override_ = micros;
  SetTurnTime();
}

}  // namespace cellar
