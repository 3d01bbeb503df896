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
#include <utility>

#include "base/assert.h"
#include "base/os/file.h"
#include "base/text/quote.h"
#include "engine/rows/scan.h"
#include "engine/scans/index_scan.h"
#include "engine/schema/retention.h"
#include "store/store.h"

namespace cellar::embedded {
namespace {

// Cells that a call may examine for the sweeper, and calls that write between two such slices.
constexpr uint64_t kSweepCells{256};
constexpr uint32_t kWritesPerSweep{64};
// Between looks at the journal: snapshots that are due or done, room on a disk that was full.
constexpr int64_t kPollMicros{100'000};

Status Wrong(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

// --- words

// "family:qualifier"; ERR without ':'.
Status SplitColumn(std::string_view column, std::string_view* family, std::string_view* qualifier) {
  const size_t colon = column.find(':');
  if (colon == std::string_view::npos) {
    return Wrong(Quote(column) + " is not a column (family:qualifier)");
  }
  *family = column.substr(0, colon);
  *qualifier = column.substr(colon + 1);
  return Status::Ok();
}

// A column, or without ':' a whole family.
ColumnSelector ToSelector(std::string_view column) {
  const size_t colon = column.find(':');
  if (colon == std::string_view::npos) return {ColumnSelector::Kind::kFamily, column, {}, {}};
  return {ColumnSelector::Kind::kColumn, column.substr(0, colon), column.substr(colon + 1), {}};
}

Status CheckBound(std::string_view bound) {
  const bool is_end = bound == "-" || bound == "+";
  if (is_end || bound.starts_with('[') || bound.starts_with('(')) return Status::Ok();
  return Wrong("min or max is not a bound ([key, (key, - or +): " + Quote(bound));
}

Result<NewFamily> ToNewFamily(const Family& family) {
  NewFamily result{family.name, {}};
  FamilyOptions& options = result.options;
  if (!family.type.empty()) {
    ASSIGN_OR_RETURN(const ValueType type, ParseValueType(family.type));
    options.type.emplace(type);
  }
  if (!family.order.empty()) {
    ASSIGN_OR_RETURN(options.order, Order::Parse(family.order));
    if (options.order->is_recno()) {
      return Wrong("invalid order 'recno': record numbers are for row keys");
    }
  }
  if (!family.gc.empty()) {
    if (family.versions != 0 || family.ttl_ms != 0) {
      return Wrong("family " + Quote(family.name) + ": gc excludes versions and ttl_ms");
    }
    ASSIGN_OR_RETURN(options.gc, RetentionPolicy::Parse(family.gc));
  }
  if (family.ttl_ms < 0) return Wrong("family " + Quote(family.name) + ": ttl_ms is negative");
  if (family.versions != 0) options.versions_max = family.versions;
  if (family.ttl_ms != 0) options.ttl_ms = static_cast<uint64_t>(family.ttl_ms);
  if (!family.locality_group.empty()) options.group = family.locality_group;
  if (!family.compress.empty()) {
    ASSIGN_OR_RETURN(options.compression, ParseCompression(family.compress));
  }
  return result;
}

// The options of a put that the resolver takes as they are must make sense.
Result<::cellar::PutOptions> ToPutOptions(const PutOptions& options) {
  ::cellar::PutOptions result;
  if (!options.type.empty()) {
    ASSIGN_OR_RETURN(result.type, ParseValueType(options.type));
  }
  if (options.timestamp_micros && *options.timestamp_micros < 0) {
    return Wrong("a timestamp is not negative");
  }
  if (options.ttl_micros && *options.ttl_micros == 0) return Wrong("a TTL is longer than nothing");
  result.timestamp_micros = options.timestamp_micros;
  result.ttl_micros = options.ttl_micros;
  return result;
}

void SetColumn(std::string_view family, std::string_view qualifier, std::string* column) {
  column->assign(family);
  column->push_back(':');
  column->append(qualifier);
}

void SetValue(ValueType type, std::string_view stored, Cell* cell) {
  cell->type = ValueTypeName(type);
  cell->value.clear();
  AppendValueText(type, stored, &cell->value);
}

}  // namespace

// --- batches

struct Batch::Changes {
  struct Change {
    std::string table;
    std::string row;
    std::string column;
    std::string value;
    std::string type;
    PutOptions options;
    CellOp::Kind kind{CellOp::Kind::kPut};
  };
  std::vector<Change> list;

  Change& Add(CellOp::Kind kind, std::string_view table, std::string_view row) {
    Change& change = list.emplace_back();
    change.kind = kind;
    change.table = table;
    change.row = row;
    return change;
  }
};

Batch::Batch() : changes_(std::make_unique<Changes>()) {}
Batch::~Batch() = default;
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;

void Batch::Put(std::string_view table, std::string_view row, std::string_view column,
                std::string_view value, const PutOptions& options) {
  Changes::Change& change = changes_->Add(CellOp::Kind::kPut, table, row);
  change.column = column;
  change.value = value;
  change.type = options.type;
  change.options = options;
  change.options.type = {};  // of the caller's memory
}

void Batch::Increment(std::string_view table, std::string_view row, std::string_view column,
                      int64_t delta) {
  Changes::Change& change = changes_->Add(CellOp::Kind::kIncrement, table, row);
  change.column = column;
  change.value = std::to_string(delta);
}

void Batch::Delete(std::string_view table, std::string_view row, std::string_view column) {
  changes_->Add(CellOp::Kind::kDelete, table, row).column = column;
}

void Batch::DeleteRow(std::string_view table, std::string_view row) {
  (void)changes_->Add(CellOp::Kind::kDeleteRow, table, row);
}

void Batch::Clear() { changes_->list.clear(); }
size_t Batch::size() const { return changes_->list.size(); }

namespace {

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

class StoreScanner final : public Scanner {
 public:
  StoreScanner(std::unique_ptr<Scan> scan, size_t* borrowers)
      : borrower_(borrowers), scan_(std::move(scan)) {}

  bool Next() override {
    while (true) {
      switch (scan_->Next()) {
        case ScanStep::kRow:
          cell_.row.assign(scan_->row_text());
          break;
        case ScanStep::kCell: {
          const ScanCell& cell = scan_->cell();
          SetColumn(cell.family, cell.qualifier_text, &cell_.column);
          cell_.timestamp_micros = cell.timestamp_micros;
          SetValue(cell.type, cell.stored, &cell_);
          return true;
        }
        case ScanStep::kPause:
          scan_->SetBudget(kUnlimited);
          break;
        case ScanStep::kEnd:
          return false;
      }
    }
  }
  const Cell& cell() const override { return cell_; }
  void SkipRow() override { scan_->SkipRow(); }

 private:
  Borrower borrower_;
  std::unique_ptr<Scan> scan_;
  Cell cell_;
};

// The options of a scan, checked, in the words of the engine. Borrows from the caller's.
Status ToRequest(const ScanOptions& options, RowOptions* rows, CellOptions* cells) {
  const bool has_range = !options.min.empty() || !options.max.empty();
  if (has_range && !options.prefix.empty()) return Wrong("a scan has a prefix or a range");
  if (has_range) {
    const std::string_view min = options.min.empty() ? "-" : options.min;
    const std::string_view max = options.max.empty() ? "+" : options.max;
    RETURN_IF_ERROR(CheckBound(min));
    RETURN_IF_ERROR(CheckBound(max));
    rows->rows.push_back({RowSelector::Kind::kRange, min, max});
  } else if (!options.prefix.empty()) {
    rows->rows.push_back({RowSelector::Kind::kPrefix, options.prefix, {}});
  }
  rows->reverse = options.reverse;
  for (const std::string_view column : options.columns) {
    cells->columns.push_back(ToSelector(column));
  }
  cells->versions_max = options.versions == 0 ? kUnlimited : options.versions;
  if (!options.filter.empty()) cells->filter = options.filter;
  return Status::Ok();
}

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

  Status Apply(const Batch& batch) override;

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

  Status ApplyChange(const Batch::Changes::Change& change);

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
  std::unique_ptr<::cellar::Store> store_;  // last: its threads use what stands above
};

Status OpenStore::ApplyChange(const Batch::Changes::Change& change) {
  ASSIGN_OR_RETURN(Table* const table, store_->FindTable(kKeyspace, change.table));
  CellOp op;
  op.kind = change.kind;
  if (change.kind == CellOp::Kind::kDelete) {
    op.selector = ToSelector(change.column);
  } else if (change.kind != CellOp::Kind::kDeleteRow) {
    RETURN_IF_ERROR(SplitColumn(change.column, &op.family, &op.qualifier));
    op.text = change.value;
    PutOptions options = change.options;
    options.type = change.type;
    ASSIGN_OR_RETURN(static_cast<::cellar::PutOptions&>(op), ToPutOptions(options));
  }
  return WriteRow(*table, change.row, op);
}

Status OpenStore::Apply(const Batch& batch) {
  BeginTurn();
  store_->BeginTransaction(::cellar::Store::Atomicity::kAll);
  for (const Batch::Changes::Change& change : batch.changes().list) {
    Status applied = ApplyChange(change);
    if (applied.ok()) continue;
    store_->RollBackTransaction();
    return applied;
  }
  store_->CommitTransaction();
  return EndWrite(Status::Ok());
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
  RowOptions rows;
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
  RowOptions rows;
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
