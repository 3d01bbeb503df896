// CUPDATE: the same ops done to many rows, one after the other.
//
//   which rows   those that the selection finds in a snapshot of the beginning, in its order: rows
//                that come later are none of them, whatever the ops do, and each comes once. The
//                order is that of their keys, or of the index that is named; what an index taken
//                for WHERE gives in another one is sorted
//   each row     is judged and changed when its turn comes, as the table is then: its conditions,
//                that it is still there, and with INDEX that it still stands at its place
//   a slice      checks the request once, since schema and rights cannot change inside of it; then
//                every row is a step of its own, atomic and logged, with its own timestamp
//
// The first row that refuses ends it; what was changed before stands.
#include "engine/request/row_update.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/scans/refusal_order.h"
#include "engine/scans/table_scan.h"
#include "engine/table/index.h"
#include "engine/table/index_entry.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {
namespace {

// What a row costs, in cells examined: to judge it, and to change it.
constexpr uint64_t kCellsOfJudgement{4};
constexpr uint64_t kCellsOfWrite{16};
constexpr size_t kValueBytesOfCell{256};

// Does it hold for no row that is not there?
bool AsksForPresence(const Predicate& predicate) {
  switch (predicate.kind) {
    case Predicate::Kind::kColumnMissing:
    case Predicate::Kind::kRowMissing:
      return false;
    case Predicate::Kind::kCompare:
      return predicate.op != CompareOp::kNe;
    default:
      return true;
  }
}

}  // namespace

class RowsUpdate final : public SlicedChange {
 public:
  RowsUpdate(Store& store, const Table& table, std::unique_ptr<RowUpdate> update)
      : store_(store),
        table_id_(table.id()),
        lineage_(store.engine_->lineage()),
        update_(std::move(update)),
        hold_(table.HoldRows()) {
    for (const CellOp& op : update_->write.ops) bytes_of_row_ += op.text.size();
  }

  Status Open(Table& table, const FamilyAccess* access) {
    RowWrite& write = update_->write;
    write.conditions = update_->rows.where;
    const bool asks =
        std::any_of(write.conditions.begin(), write.conditions.end(), AsksForPresence);
    if (!asks) write.conditions.emplace_back();  // ROW EXISTS
    write.access = access;
    update_->rows.where_elsewhere = true;
    update_->rows.cells_wanted = false;
    update_->rows.reordered_max = update_->may_sort ? kUpdateRowsSortedMax : 0;
    CellOptions cells;
    cells.access = access;
    cells.timestamps = false;
    cells.values = false;
    Result<std::unique_ptr<Scan>> scan = store_.ScanRows(table, update_->rows, cells, nullptr);
    const Status checked =
        InTable(store_.resolver_->CheckRequest(table, write, store_.NextWriteContext()), table);
    if (!checked.ok() || !scan.ok()) {
      ReadView view(table, store_.now_micros_);
      if (access != nullptr) view.Restrict(*access);
      return FirstRefusal(view, update_->rows, scan.status(), checked,
                          [&] { return scan.status(); });
    }
    scan_ = *std::move(scan);
    if (scan_->shape().reordered) RETURN_IF_ERROR(SortRows(table, cells));
    if (update_->rows.index) {
      const IndexSchema* const index = table.schema().FindIndex(update_->rows.index->name);
      CELLAR_ASSERT(index != nullptr);  // the scan has found it
      index_id_ = index->id;
      repeats_rows_ = index->of_qualifiers();
      const Index* const entries = table.has_indexes() ? table.indexes()->Find(index_id_) : nullptr;
      if (entries != nullptr)
        rows_taken_max_ = std::min(entries->entry_count(), table.counters().rows);
    }
    scan_->Detach();
    if (access != nullptr) KeepRights(table, *access);
    return Status::Ok();
  }

  bool done() const override { return scan_ == nullptr; }
  uint64_t rows() const override { return rows_changed_; }
  std::string_view place() const override {
    return scan_ != nullptr ? scan_->row_key() : std::string_view(place_);
  }
  size_t memory_bytes() const override {
    return update_->bytes() + taken_bytes_ + (scan_ != nullptr ? scan_->memory_bytes() : 0);
  }

  size_t memory_bytes_max() const override {
    constexpr size_t kBytesOfKey{32};
    if (!repeats_rows_) return taken_bytes_;
    return static_cast<size_t>(rows_taken_max_) * (kBytesOfTaken + kBytesOfKey);
  }

  Status Step(uint64_t cells_max) override {
    Status status = StepUnlessRefused(cells_max);
    if (!status.ok()) scan_.reset();
    return status;
  }

 private:
  // Makes of the rows that the scan finds, in whatever order, a scan of them in the order of keys.
  // If their keys are so long that the list has no room, they are found in that order.
  Status SortRows(Table& table, const CellOptions& cells) {
    constexpr size_t kBytesOfRow{224};  // beside its key, which stands in it three times
    while (scan_->Next() == ScanStep::kRow) {
      sorted_rows_.emplace_back(scan_->row_text());
      taken_bytes_ += kBytesOfRow + 3 * sorted_rows_.back().size();
      if (taken_bytes_ > kUpdateRowsSortedBytes) {
        sorted_rows_.clear();
        taken_bytes_ = 0;
        update_->rows.reordered_max = 0;
        ASSIGN_OR_RETURN(scan_, store_.ScanRows(table, update_->rows, cells, nullptr));
        return Status::Ok();
      }
      scan_->SkipRow();
    }
    if (sorted_rows_.empty()) return Status::Ok();
    RowOptions& rows = update_->rows;
    rows.rows.clear();
    for (const std::string& row : sorted_rows_)
      rows.rows.push_back({RowSelector::Kind::kRow, row, {}});
    ASSIGN_OR_RETURN(scan_, store_.ScanRows(table, rows, cells, nullptr));
    return Status::Ok();
  }

  void KeepRights(const Table& table, const FamilyAccess& access) {
    rights_ = std::make_unique<FamilyAccessCopy>(access);
    for (const FamilySchema& family : table.schema().families) rights_->Add(access, family.name);
    update_->write.access = rights_.get();
  }

  Status StepUnlessRefused(uint64_t cells_max) {
    Result<Table*> found = store_.FindTableAgain(table_id_, lineage_);
    if (!found.ok()) return AfterRows(found.status());
    Table& table = **found;
    if (store_.following_) {
      return AfterRows(
          Status::Error(ErrorCode::kReadOnly, "You can't write against a read only replica."));
    }
    store_.PrepareIndexesForWrite(table);
    Status checked =
        store_.resolver_->CheckRequest(table, update_->write, store_.NextWriteContext());
    if (!checked.ok()) return AfterRows(InTable(std::move(checked), table));
    if (index_id_ != 0 && table.schema().FindIndex(update_->rows.index->name) == nullptr) {
      return AfterRows(Status::Error(ErrorCode::kNoIndex, "the index has been dropped"));
    }
    uint64_t cells_left = cells_max;
    while (cells_left > 0) {
      if (rows_changed_ == update_->rows_max) break;
      scan_->SetBudget(cells_left);
      const uint64_t examined = scan_->stats().rows + scan_->stats().cells;
      const ScanStep step = scan_->Next();
      if (step == ScanStep::kEnd) break;
      if (step == ScanStep::kPause) return Status::Ok();
      CELLAR_ASSERT(step == ScanStep::kRow);
      uint64_t cost = scan_->stats().rows + scan_->stats().cells - examined;
      RETURN_IF_ERROR(TakeRow(table, &cost));
      scan_->SkipRow();
      cells_left -= std::min(cells_left, cost);
      if (cells_left == 0) return Status::Ok();
    }
    place_ = scan_->row_key();
    scan_.reset();
    return Status::Ok();
  }

  Status TakeRow(Table& table, uint64_t* cost) {
    *cost += kCellsOfJudgement;
    if (index_id_ != 0 && !StandsAtItsPlace(table)) return Status::Ok();
    RowWrite& write = update_->write;
    write.row = scan_->row_text();
    if (repeats_rows_ && !TakeOnce(write.row)) return Status::Ok();
    const Status written = store_.WriteRow(table, write, RowResolver::Known::kYes, &result_);
    if (!written.ok()) {
      return AfterRows(
          Status::Error(written.code(), "row " + Quote(write.row) + ": " + written.text()));
    }
    if (!result_.conditions_held) return Status::Ok();
    *cost += kCellsOfWrite * write.ops.size() + bytes_of_row_ / kValueBytesOfCell;
    if (result_.changed_something()) ++rows_changed_;
    return Status::Ok();
  }

  // Is the entry that led to the row still in the index?
  bool StandsAtItsPlace(Table& table) {
    const Index* const index = table.has_indexes() ? table.indexes()->Find(index_id_) : nullptr;
    if (index == nullptr) return false;
    const std::optional<std::string_view> value =
        index->entries().Get(scan_->PositionAfterRow().row_key);
    EntryReader entry;
    return value.has_value() && entry.Open(*value, store_.now_micros_);
  }

  bool TakeOnce(std::string_view row) {
    const bool is_new = taken_.emplace(row).second;
    if (is_new) taken_bytes_ += row.size() + kBytesOfTaken;
    return is_new;
  }

  Status AfterRows(const Status& status) const {
    return Status::Error(status.code(),
                         status.text() + " after " + FormatUint64(rows_changed_) + " rows");
  }

  static constexpr size_t kBytesOfTaken{64};  // of a row that is remembered, beside its key

  Store& store_;
  uint64_t table_id_;
  uint64_t lineage_;
  std::unique_ptr<RowUpdate> update_;
  const std::shared_ptr<void> hold_;
  std::unique_ptr<FamilyAccessCopy> rights_;
  std::unique_ptr<Scan> scan_;  // null: done
  uint64_t index_id_{0};        // that was named; 0: none
  bool repeats_rows_{false};
  uint64_t rows_taken_max_{0};             // if so: so many rows the index can lead to
  std::vector<std::string> sorted_rows_;   // that an index has given in another order
  std::unordered_set<std::string> taken_;  // rows, if an index may name them twice
  size_t taken_bytes_{0};
  size_t bytes_of_row_{0};
  RowWriteResult result_;
  uint64_t rows_changed_{0};
  std::string place_;  // once the scan has ended
};

Result<std::unique_ptr<SlicedChange>> Store::UpdateRows(Table& table,
                                                        std::unique_ptr<RowUpdate> update,
                                                        const FamilyAccess* access) {
  RETURN_IF_ERROR(CheckLive(table));
  auto change = std::make_unique<RowsUpdate>(*this, table, std::move(update));
  RETURN_IF_ERROR(change->Open(table, access));
  return std::unique_ptr<SlicedChange>(std::move(change));
}

}  // namespace cellar
