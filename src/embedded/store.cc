// The library's Store (cellar/store.h): the server's engine and log without sockets and sessions.
//
//   cellar::embedded::Store   public, in words: names and texts, checked here as the commands do
//         |
//   OpenStore                 one call is one turn of the server's loop: time, work, flush, wait
//         |
//   cellar::Store             the one door to data (store/store.h)
#include "cellar/store.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/os/file.h"
#include "base/text/quote.h"
#include "embedded/batch.h"
#include "embedded/words.h"
#include "engine/rows/scan.h"
#include "engine/scans/index_scan.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar::embedded {
namespace {

// Cells that a call may examine for the sweeper, and calls that write between two such slices.
constexpr uint64_t kSweepCells{256};
constexpr uint32_t kWritesPerSweep{64};
// Between looks at the journal: snapshots that are due or done, room on a disk that was full.
constexpr int64_t kPollMicros{100'000};
// Cells that DeleteRange examines in one of its slices.
constexpr uint64_t kDeleteCells{10'000};

// --- what a store gives out

// Counts itself in its store, which must not be closed before.
class Borrower {
 public:
  explicit Borrower(size_t* borrowers) : borrowers_(borrowers) { ++*borrowers_; }
  ~Borrower() { --*borrowers_; }
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;

 private:
  size_t* borrowers_;
};

class StoreSnapshot final : public Snapshot {
 public:
  StoreSnapshot(::cellar::Store& store, size_t* borrowers) : borrower_(borrowers) {
    for (const std::string& keyspace : store.Keyspaces()) {
      for (const Table* table : store.Tables(keyspace)) {
        auto view = std::make_unique<ReadView>(*table, store.now_micros());
        view->Detach();
        views_[keyspace + '/' + std::string(table->name())] = std::move(view);
      }
    }
  }

  // NOTABLE. Reads of a view do not change what it shows, but where it has looked last.
  Result<ReadView*> Find(std::string_view table) const {
    std::string name(table);
    if (table.find('/') == std::string_view::npos) name.insert(0, "0/");
    const auto found = views_.find(name);
    if (found != views_.end()) return found->second.get();
    return Status::Error(ErrorCode::kNoTable, "no table " + Quote(table) + " in the snapshot");
  }

 private:
  std::map<std::string, std::unique_ptr<ReadView>, std::less<>> views_;
  Borrower borrower_;
};

// The next cell of a scan, without its row; false at the end. `row`, if it is not null, gets each
// row that begins.
bool NextCell(::cellar::Scan* scan, std::string* row, Cell* cell) {
  while (true) {
    switch (scan->Next()) {
      case ScanStep::kRow:
        if (row != nullptr) row->assign(scan->row_text());
        break;
      case ScanStep::kCell: {
        const ScanCell& found = scan->cell();
        SetColumn(found.family, found.qualifier_text, &cell->column);
        cell->timestamp_micros = found.timestamp_micros;
        SetValue(found.type, found.stored, cell);
        return true;
      }
      case ScanStep::kPause:
        scan->SetBudget(kUnlimited);
        break;
      case ScanStep::kEnd:
        return false;
    }
  }
}

class StoreScanner final : public Scanner {
 public:
  StoreScanner(std::unique_ptr<Scan> scan, size_t* borrowers)
      : borrower_(borrowers), scan_(std::move(scan)) {}

  bool Next() override { return NextCell(scan_.get(), &cell_.row, &cell_); }
  const Cell& cell() const override { return cell_; }
  void SkipRow() override { scan_->SkipRow(); }

 private:
  Borrower borrower_;
  std::unique_ptr<Scan> scan_;
  Cell cell_;
};

// --- the store

class OpenStore final : public Store {
 public:
  OpenStore() = default;
  ~OpenStore() override {
    CELLAR_ASSERT(borrowers_ == 0);
    if (store_ != nullptr) (void)store_->journal().Close();
  }

  Status Open(const std::string& directory, const Options& options) {
    StoreOptions store;
    store.journal.directory = directory;
    store.journal.may_create = options.may_create;
    store.journal.log_enabled = options.log;
    store.journal.sync_policy = ToPolicy(options.sync);
    store.journal.wake = [this] { Wake(); };
    store.journal.slow_write_micros = INT64_MAX;  // each call waits for its write in any case
    store.value_bytes_max = options.value_bytes_max;
    has_log_ = options.log;
    clock_ = options.clock != nullptr ? options.clock : &Clock::System();
    ASSIGN_OR_RETURN(store_,
                     ::cellar::Store::Open(std::move(store), FileSystem::Posix(), *clock_,
                                           [](const LoadProgress&) { return Status::Ok(); }));
    return Status::Ok();
  }

  Status CreateTable(std::string_view table, const TableOptions& options) override {
    BeginTurn();
    ASSIGN_OR_RETURN(const Order key, Order::ParseKey(options.key));
    std::vector<NewFamily> families;
    for (const Family& family : options.families) {
      ASSIGN_OR_RETURN(families.emplace_back(), ToNewFamily(family));
    }
    return EndWrite(store_->CreateTable(kKeyspace, table, key, families));
  }

  Status DropTable(std::string_view name) override {
    BeginTurn();
    ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
    return EndWrite(store_->DropTable(*table));
  }

  Status AddFamily(std::string_view name, const Family& family) override {
    BeginTurn();
    ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
    ASSIGN_OR_RETURN(const NewFamily added, ToNewFamily(family));
    return EndWrite(store_->AddFamily(*table, added));
  }

  std::vector<std::string> Tables(std::string_view keyspace) const override {
    std::vector<std::string> names;
    for (const Table* table : store_->Tables(keyspace)) names.emplace_back(table->name());
    return names;
  }

  Status Put(std::string_view table, std::string_view row, std::string_view column,
             std::string_view value, const PutOptions& options) override {
    CellOp op;
    RETURN_IF_ERROR(SplitColumn(column, &op.family, &op.qualifier));
    op.text = value;
    ASSIGN_OR_RETURN(static_cast<::cellar::PutOptions&>(op), ToPutOptions(options));
    return WriteOne(table, row, op);
  }

  Status Delete(std::string_view table, std::string_view row, std::string_view column) override {
    CellOp op;
    op.kind = CellOp::Kind::kDelete;
    op.selector = ToSelector(column);
    return WriteOne(table, row, op);
  }

  Status DeleteRow(std::string_view table, std::string_view row) override {
    CellOp op;
    op.kind = CellOp::Kind::kDeleteRow;
    return WriteOne(table, row, op);
  }

  Status Apply(const Batch& batch) override {
    BeginTurn();
    return EndWrite(Change(batch.changes()));
  }

  Result<bool> ApplyIf(std::string_view table, std::string_view row,
                       const std::vector<Condition>& conditions, const Batch& batch) override;

  Result<std::string> Increment(std::string_view table, std::string_view row,
                                std::string_view column, int64_t delta) override {
    CellOp op;
    op.kind = CellOp::Kind::kIncrement;
    RETURN_IF_ERROR(SplitColumn(column, &op.family, &op.qualifier));
    const std::string text = std::to_string(delta);
    op.text = text;
    RETURN_IF_ERROR(WriteOne(table, row, op));
    const CellOpResult& result = result_.results.front();
    std::string value;
    AppendValueText(result.type, result.stored, &value);
    return value;
  }

  Result<uint64_t> DeleteRange(std::string_view table, std::string_view min,
                               std::string_view max) override {
    ::cellar::RowOptions rows;
    RETURN_IF_ERROR(AddRange(min, max, &rows));
    return DeleteRows(table, rows);
  }

  Result<uint64_t> DeletePrefix(std::string_view table, std::string_view prefix) override {
    if (prefix.empty())
      return Wrong("no prefix: DeleteRange(table, \"-\", \"+\") deletes all rows");
    ::cellar::RowOptions rows;
    rows.rows.push_back({RowSelector::Kind::kPrefix, prefix, {}});
    return DeleteRows(table, rows);
  }

  Status GetRow(std::string_view table, std::string_view row, const RowOptions& options,
                std::vector<Cell>* cells) override;

  Result<std::optional<Cell>> Get(std::string_view table, std::string_view row,
                                  std::string_view column, const ReadOptions& options) override;

  Result<std::unique_ptr<Scanner>> Scan(std::string_view table,
                                        const ScanOptions& options) override;

  std::unique_ptr<Snapshot> TakeSnapshot() override {
    BeginTurn();
    return std::make_unique<StoreSnapshot>(*store_, &borrowers_);
  }

  Status Flush() override {
    if (!has_log_) return Wrong("there is no log: Checkpoint() makes what is there durable");
    BeginTurn();
    store_->Flush();
    store_->journal().RequestSync();
    return WaitFor([this] { return store_->journal().durable_lsn(); });
  }

  Status Checkpoint() override {
    BeginTurn();
    store_->Flush();
    return store_->journal().SaveNow();
  }

  bool Maintain() override {
    BeginTurn();
    const bool more = store_->Sweep(kSweepCells);
    store_->Flush();
    Poll();
    return more;
  }

  Status Close() override {
    if (borrowers_ != 0) {
      return Wrong(std::to_string(borrowers_) + " scans or snapshots are still open");
    }
    store_->Flush();
    Status closed = store_->journal().Close();
    store_.reset();
    return closed;
  }

 private:
  static constexpr std::string_view kKeyspace{"0"};  // of names that do not say theirs

  static SyncPolicy ToPolicy(Sync sync) {
    switch (sync) {
      case Sync::kAlways:
        return SyncPolicy::kAlways;
      case Sync::kEverySecond:
        return SyncPolicy::kEverySecond;
      case Sync::kNever:
        return SyncPolicy::kNo;
    }
    return SyncPolicy::kAlways;
  }

  // From the journal's threads.
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    wake_.notify_one();
  }

  void BeginTurn() {
    CELLAR_ASSERT(store_ != nullptr);
    store_->SetTurnTime();
  }

  void Poll() {
    polled_micros_ = clock_->MonotonicMicros();
    store_->journal().Poll();
    (void)store_->journal().MaybeStartSnapshot();
  }

  // Hands what a write has logged to the disk, as its policy wants it, and does a little of what
  // waits.
  Status EndWrite(Status written) {
    if (!written.ok()) return written;
    if (++writes_ % kWritesPerSweep == 0) (void)store_->Sweep(kSweepCells);
    store_->Flush();
    if (clock_->MonotonicMicros() - polled_micros_ >= kPollMicros) Poll();
    return WaitFor([this] { return store_->journal().released_lsn(); });
  }

  // Until `reached` is at the newest record. kIo once the log has failed: it tries again by itself.
  template <typename Reached>
  Status WaitFor(Reached reached) {
    Journal& journal = store_->journal();
    const Lsn target = journal.last_lsn();
    while (reached() < target) {
      if (!journal.healthy()) {
        return Status::Error(ErrorCode::kIo,
                             "kept in memory, not on disk: " + journal.Stats().log_error);
      }
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::microseconds(kPollMicros), [this] { return woken_; });
      woken_ = false;
      lock.unlock();
      journal.Poll();
    }
    return Status::Ok();
  }

  Status WriteOne(std::string_view name, std::string_view row, const CellOp& op) {
    BeginTurn();
    ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
    return EndWrite(WriteRow(*table, row, op));
  }

  Status WriteRow(Table& table, std::string_view row, const CellOp& op) {
    write_.Clear();
    write_.row = row;
    write_.ops.push_back(op);
    return store_->Write(table, write_, &result_);
  }

  Result<uint64_t> DeleteRows(std::string_view table, const ::cellar::RowOptions& rows);

  // The changes of a batch, all of them or none.
  Status Change(const Batch::Changes& changes);
  // Those from `begin` on that are one write; returns where it ends.
  static size_t EndOfRun(const Batch::Changes& changes, size_t begin);
  Status WriteRun(const Batch::Changes& changes, size_t begin, size_t end, bool same_table);
  static Status ToOp(const Batch::Changes& changes, const Batch::Changes::Change& change,
                     CellOp* op);

  Clock* clock_{nullptr};
  bool has_log_{true};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_{false};  // under mutex_
  size_t borrowers_{0};
  uint32_t writes_{0};
  int64_t polled_micros_{0};
  RowWrite write_;
  RowWriteResult result_;
  Table* run_table_{nullptr};               // of the run that was written last; dies with the batch
  std::vector<std::string_view> words_;     // of a run of plain puts
  std::unique_ptr<::cellar::Store> store_;  // last: its threads use what stands above
};

// Whether a put after `run`, which are puts in one row, can be one write with them: it names a
// column that none of them names, since a write gives a column one version. In order they need not
// be looked through.
bool IsNewColumn(const Batch::Changes& changes, std::span<const Batch::Changes::Change> run,
                 std::string_view column, std::string_view* greatest) {
  if (column > *greatest) {
    *greatest = column;
    return true;
  }
  constexpr size_t kRunMax{64};  // of those that are out of order: each is compared with all before
  if (run.size() > kRunMax) return false;
  for (const Batch::Changes::Change& before : run) {
    if (changes.Text(before.column) == column) return false;
  }
  return true;
}

size_t OpenStore::EndOfRun(const Batch::Changes& changes, size_t begin) {
  const auto& list = changes.list;
  const Batch::Changes::Change& first = list[begin];
  if (first.kind != CellOp::Kind::kPut) return begin + 1;
  std::string_view greatest = changes.Text(first.column);
  size_t end = begin + 1;
  while (end < list.size() && end - begin < kCellOpsMax && list[end].kind == first.kind &&
         list[end].has_options == first.has_options && list[end].SameRow(first) &&
         IsNewColumn(changes, std::span(list).subspan(begin, end - begin),
                     changes.Text(list[end].column), &greatest)) {
    ++end;
  }
  return end;
}

Status OpenStore::ToOp(const Batch::Changes& changes, const Batch::Changes::Change& change,
                       CellOp* op) {
  op->kind = change.kind;
  if (change.kind == CellOp::Kind::kDeleteRow) return Status::Ok();
  const std::string_view column = changes.Text(change.column);
  if (change.kind == CellOp::Kind::kDelete) {
    op->selector = ToSelector(column);
    return Status::Ok();
  }
  RETURN_IF_ERROR(SplitColumn(column, &op->family, &op->qualifier));
  op->text = changes.Text(change.value);
  if (!change.has_options) return Status::Ok();
  ASSIGN_OR_RETURN(static_cast<::cellar::PutOptions&>(*op),
                   ToPutOptions(changes.OptionsOf(change)));
  return Status::Ok();
}

Status OpenStore::WriteRun(const Batch::Changes& changes, size_t begin, size_t end,
                           bool same_table) {
  const Batch::Changes::Change& first = changes.list[begin];
  if (!same_table) {
    ASSIGN_OR_RETURN(run_table_, store_->FindTable(kKeyspace, changes.Text(first.table)));
  }
  const std::string_view row = changes.Text(first.row);
  if (first.IsPlainPut()) {
    words_.clear();
    for (size_t i = begin; i < end; ++i) {
      const std::string_view column = changes.Text(changes.list[i].column);
      if (column.find(':') == std::string_view::npos) {
        std::string_view none;
        return SplitColumn(column, &none, &none);
      }
      words_.push_back(column);
      words_.push_back(changes.Text(changes.list[i].value));
    }
    return store_->Put(*run_table_, row, words_);
  }
  write_.Clear();
  write_.row = row;
  for (size_t i = begin; i < end; ++i) {
    RETURN_IF_ERROR(ToOp(changes, changes.list[i], &write_.ops.emplace_back()));
  }
  return store_->Write(*run_table_, write_, &result_);
}

// A batch that is one write needs no transaction: it is done whole or not at all by itself.
Status OpenStore::Change(const Batch::Changes& changes) {
  const auto& list = changes.list;
  if (list.empty()) return Status::Ok();
  size_t end = EndOfRun(changes, 0);
  if (end == list.size()) return WriteRun(changes, 0, end, false);
  store_->BeginTransaction(::cellar::Store::Atomicity::kAll);
  Status written = WriteRun(changes, 0, end, false);
  while (written.ok() && end < list.size()) {
    const size_t begin = end;
    end = EndOfRun(changes, begin);
    const bool same_table = list[begin].table.begin == list[begin - 1].table.begin;
    written = WriteRun(changes, begin, end, same_table);
  }
  if (!written.ok()) {
    store_->RollBackTransaction();
    return written;
  }
  store_->CommitTransaction();
  return Status::Ok();
}

Result<bool> OpenStore::ApplyIf(std::string_view name, std::string_view row,
                                const std::vector<Condition>& conditions, const Batch& batch) {
  BeginTurn();
  ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
  write_.Clear();
  write_.row = row;
  for (const Condition& condition : conditions) {
    ASSIGN_OR_RETURN(write_.conditions.emplace_back(), ToPredicate(condition));
  }
  RETURN_IF_ERROR(store_->Write(*table, write_, &result_));  // nothing but the conditions
  if (!result_.conditions_held) return false;
  RETURN_IF_ERROR(EndWrite(Change(batch.changes())));
  return true;
}

Result<uint64_t> OpenStore::DeleteRows(std::string_view name, const ::cellar::RowOptions& rows) {
  BeginTurn();
  ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
  ASSIGN_OR_RETURN(const std::unique_ptr<SlicedChange> change, store_->DeleteRows(*table, rows));
  while (!change->done()) {
    RETURN_IF_ERROR(EndWrite(change->Step(kDeleteCells)));
    BeginTurn();
  }
  return change->rows();
}

Status OpenStore::GetRow(std::string_view name, std::string_view row, const RowOptions& options,
                         std::vector<Cell>* cells) {
  BeginTurn();
  if (options.at_micros < 0) return Wrong("a timestamp is not negative");
  ::cellar::RowOptions rows;
  rows.rows.push_back({RowSelector::Kind::kRow, row, {}});
  CellOptions wanted;
  for (const std::string_view column : options.columns) {
    wanted.columns.push_back(ToSelector(column));
  }
  wanted.time.max_micros = options.at_micros;
  wanted.versions_max = options.versions == 0 ? kUnlimited : options.versions;
  std::unique_ptr<::cellar::Scan> scan;
  if (options.snapshot != nullptr) {
    const auto& snapshot = static_cast<const StoreSnapshot&>(*options.snapshot);
    ASSIGN_OR_RETURN(ReadView* const view, snapshot.Find(name));
    ASSIGN_OR_RETURN(scan, OpenScan(view, rows, wanted, nullptr, 0));
  } else {
    ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
    ASSIGN_OR_RETURN(scan, store_->ScanRows(*table, rows, wanted, nullptr));
  }
  scan->SetBudget(kUnlimited);
  size_t found = 0;
  std::string text;
  while (true) {
    if (found == cells->size()) cells->emplace_back();
    Cell& cell = (*cells)[found];
    if (!NextCell(scan.get(), &text, &cell)) break;
    cell.row = text;
    ++found;
  }
  cells->resize(found);
  if (options.snapshot == nullptr) store_->EndScan(std::move(scan));
  return Status::Ok();
}

// The store's own look-up of one column reads what is there at the moment. A snapshot is read by a
// scan that is narrowed to one cell. What is returned owns its bytes.
Result<std::optional<Cell>> OpenStore::Get(std::string_view name, std::string_view row,
                                           std::string_view column, const ReadOptions& options) {
  BeginTurn();
  std::string_view family;
  std::string_view qualifier;
  RETURN_IF_ERROR(SplitColumn(column, &family, &qualifier));
  if (options.at_micros < 0) return Wrong("a timestamp is not negative");
  std::optional<Cell> cell;
  if (options.snapshot == nullptr) {
    ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
    ASSIGN_OR_RETURN(OpenedRow* const opened, store_->OpenRow(*table, row));
    ASSIGN_OR_RETURN(const CellRead* const found, opened->Get(column, options.at_micros));
    if (found == nullptr) return cell;
    cell.emplace();
    cell->row = row;
    cell->column = column;
    cell->timestamp_micros = found->timestamp_micros();
    SetValue(found->value.type, found->value.stored, &*cell);
    return cell;
  }
  ::cellar::RowOptions rows;
  rows.rows.push_back({RowSelector::Kind::kRow, row, {}});
  CellOptions cells;
  cells.columns.push_back(ToSelector(column));
  cells.time.max_micros = options.at_micros;
  cells.versions_max = 1;
  const auto& snapshot = static_cast<const StoreSnapshot&>(*options.snapshot);
  ASSIGN_OR_RETURN(ReadView* const view, snapshot.Find(name));
  ASSIGN_OR_RETURN(std::unique_ptr<::cellar::Scan> scan, OpenScan(view, rows, cells, nullptr, 0));
  StoreScanner scanner(std::move(scan), &borrowers_);
  if (scanner.Next()) cell = scanner.cell();
  return cell;
}

Result<std::unique_ptr<Scanner>> OpenStore::Scan(std::string_view name,
                                                 const ScanOptions& options) {
  BeginTurn();
  ::cellar::RowOptions rows;
  CellOptions cells;
  RETURN_IF_ERROR(ToRequest(options, &rows, &cells));
  std::unique_ptr<::cellar::Scan> scan;
  if (options.snapshot != nullptr) {
    const auto& snapshot = static_cast<const StoreSnapshot&>(*options.snapshot);
    ASSIGN_OR_RETURN(ReadView* const view, snapshot.Find(name));
    ASSIGN_OR_RETURN(scan, OpenScan(view, rows, cells, nullptr, 0));
  } else {
    ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, name));
    ASSIGN_OR_RETURN(scan, store_->ScanRows(*table, rows, cells, nullptr));
    scan->Detach();
  }
  scan->SetBudget(kUnlimited);
  return std::unique_ptr<Scanner>(std::make_unique<StoreScanner>(std::move(scan), &borrowers_));
}

}  // namespace

Result<std::unique_ptr<Store>> Store::Open(const std::string& directory, const Options& options) {
  auto store = std::make_unique<OpenStore>();
  RETURN_IF_ERROR(store->Open(directory, options));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace cellar::embedded
