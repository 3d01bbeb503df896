// Reads of rows, snapshot cursors, the digest.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/inline.h"
#include "base/text/quote.h"
#include "engine/aggregate/aggregate_job.h"
#include "engine/scans/index_choice.h"
#include "engine/scans/index_scan.h"
#include "engine/scans/near_search.h"
#include "engine/scans/refusal_order.h"
#include "engine/scans/row_list_scan.h"
#include "engine/scans/table_scan.h"
#include "engine/schema/column_set.h"
#include "engine/table/row_split.h"
#include "store/digest_hash.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar {

const Table* Store::TableToPrefetch(std::string_view keyspace, std::string_view name) const {
  const Table* const table = engine_->FindTable(keyspace, name);
  // A key of plain bytes begins with its text, which leads to the same leaf, or to the one before.
  if (table == nullptr || !table->schema().key.is_plain_bytes()) return nullptr;
  for (size_t group = 0; group < table->groups(); ++group)
    if (table->IsWorthPrefetch(group)) return table;
  return nullptr;
}

void Store::PrefetchRows(const Table& table, std::span<const std::string_view> rows) const {
  for (size_t group = 0; group < table.groups(); ++group)
    if (table.IsWorthPrefetch(group)) table.tree(group).Prefetch(rows);
}

Result<std::unique_ptr<Scan>> Store::ScanRows(const Table& table, const RowOptions& rows,
                                              const CellOptions& cells, const ScanPosition* from) {
  if (rows.index) PrepareIndexes(engine_->Mutable(table));
  std::unique_ptr<TableScan> spare = std::move(spare_scan_);
  std::unique_ptr<ReadView> view = spare != nullptr ? spare->TakeView() : nullptr;
  if (view == nullptr) view = std::make_unique<ReadView>();
  view->Bind(table, now_micros_);
  if (cells.access != nullptr) view->Restrict(*cells.access);
  ++scans_;
  const uint64_t seed = rows.seed != 0 ? rows.seed : options_.seed + scans_;
  Result<std::unique_ptr<Scan>> scan =
      OpenScan(std::move(view), rows, cells, from, seed, std::move(spare));
  if (!scan.ok()) return InTable(std::move(scan).status(), table);
  return scan;
}

Result<std::unique_ptr<Scan>> Store::ReadRows(const Table& table,
                                              std::span<const std::string_view> rows,
                                              const CellOptions& cells) {
  auto view = std::make_unique<ReadView>(table, now_micros_);
  if (cells.access != nullptr) view->Restrict(*cells.access);
  Result<std::unique_ptr<RowListScan>> scan =
      RowListScan::Create(std::move(view), rows, cells, options_.seed + ++scans_);
  if (!scan.ok()) return InTable(std::move(scan).status(), table);
  return std::unique_ptr<Scan>(*std::move(scan));
}

Result<std::unique_ptr<AggregateJob>> Store::Aggregate(const Table& table, const RowOptions& rows,
                                                       CellOptions& cells,
                                                       const AggregateRequest& request,
                                                       const AggregateLimits& limits) {
  std::vector<ColumnSelector> targets;
  const std::vector<ColumnSelector> columns = cells.columns;
  NarrowToTargets(request, rows, &cells, &targets);
  Result<std::unique_ptr<Scan>> scan = ScanRows(table, rows, cells, nullptr);
  if (!scan.ok()) [[unlikely]] {
    ReadView view(table, now_micros_);
    if (cells.access != nullptr) view.Restrict(*cells.access);
    cells.columns = columns;
    cells.columns_within = nullptr;
    const Status plan = InTable(
        AggregatePlan::Compile(view.schema(), request, columns, rows.reverse).status(), table);
    return FirstRefusal(view, rows, scan.status(), plan,
                        [&] { return ScanRows(table, rows, cells, nullptr).status(); });
  }
  Result<std::unique_ptr<AggregateJob>> job =
      AggregateJob::Create(*std::move(scan), request, columns, rows.reverse, limits);
  if (!job.ok()) return InTable(std::move(job).status(), table);
  return job;
}

void Store::EndScan(std::unique_ptr<Scan> scan) {
  TableScan* const spare = scan->Close();
  if (spare == nullptr) return;
  (void)scan.release();  // it is the same object
  spare_scan_.reset(spare);
}

Result<ScanExplained> Store::ExplainRows(const Table& table, const RowOptions& rows,
                                         const CellOptions& cells, const ScanPosition* from) {
  ASSIGN_OR_RETURN(std::unique_ptr<Scan> scan, ScanRows(table, rows, cells, from));
  ReadView view(table, now_micros_);
  if (cells.access != nullptr) view.Restrict(*cells.access);
  Explanation explanation = Explain(table, view.schema(), *scan, rows, cells);
  (void)ChooseIndex(view, rows, cells, &explanation.considered);
  return ScanExplained{std::move(scan), std::move(explanation)};
}

Result<std::unique_ptr<NearSearch>> Store::Near(const Table& table, std::string_view row,
                                                const FamilyAccess* access) {
  std::string key;
  RETURN_IF_ERROR(EncodeRowKey(table.schema(), row, &key));
  std::string canonical;
  const bool decoded = table.schema().key.Decode(key, &canonical);
  CELLAR_ASSERT(decoded);
  ScanPosition from;
  from.row_key = key;
  CellOptions cells;
  cells.access = access;
  ASSIGN_OR_RETURN(std::unique_ptr<Scan> forward, ScanRows(table, {}, cells, &from));
  auto open_reverse = [this, &table, cells, from] {
    RowOptions rows;
    rows.reverse = true;
    Result<std::unique_ptr<Scan>> scan = ScanRows(table, rows, cells, &from);
    CELLAR_ASSERT(scan.ok());  // as the other one was
    return *std::move(scan);
  };
  return std::unique_ptr<NearSearch>(std::make_unique<NearRowSearch>(
      std::move(canonical), std::move(forward), std::move(open_reverse)));
}

std::vector<std::string> Store::SampleRows(const Table& table, uint64_t parts,
                                           const FamilyAccess* access) {
  std::vector<std::string> rows;
  CellOptions cells;
  cells.access = access;
  for (std::string& key : SplitRowKeys(table, parts)) {
    ScanPosition from;
    from.row_key = std::move(key);
    const Result<std::unique_ptr<Scan>> scan = ScanRows(table, {}, cells, &from);
    CELLAR_ASSERT(scan.ok());
    if ((*scan)->Next() != ScanStep::kRow) break;
    if (rows.empty() || rows.back() != (*scan)->row_text()) rows.emplace_back((*scan)->row_text());
  }
  if (rows.empty()) return rows;
  // The first row of all would split nothing off.
  const Result<std::unique_ptr<Scan>> first = ScanRows(table, {}, cells, nullptr);
  CELLAR_ASSERT(first.ok());
  if ((*first)->Next() == ScanStep::kRow && (*first)->row_text() == rows[0]) {
    rows.erase(rows.begin());
  }
  return rows;
}

// --- snapshot cursors

uint64_t Store::PinSnapshot(const Table& table, const FamilyAccess* access) {
  const uint64_t id = pin_id_next_++;
  PrepareIndexes(engine_->Mutable(table));
  auto view = std::make_unique<ReadView>(table, now_micros_);
  if (access != nullptr) view->Restrict(*access);
  view->Detach();
  pins_[id] = {std::move(view), table.id(), clock_.MonotonicMicros(), 0};
  return id;
}

Result<std::unique_ptr<Scan>> Store::ScanPinned(uint64_t id, const Table& table,
                                                const RowOptions& rows, const CellOptions& cells,
                                                const ScanPosition* from) {
  UnpinStale();
  const auto pin = pins_.find(id);
  // A snapshot pinned by somebody with more rights, or when there were more, is as good as gone.
  const auto hidden = [&](const FamilySchema& family) {
    return cells.access != nullptr && !cells.access->MayRead(family.name);
  };
  if (pin == pins_.end() || pin->second.table_id != table.id() ||
      std::any_of(pin->second.view->schema().families.begin(),
                  pin->second.view->schema().families.end(), hidden)) {
    return Status::Error(ErrorCode::kStaleCursor,
                         "the snapshot of this cursor is gone: it ended, was unused for "
                         "snapshot-cursor-timeout, or the server has restarted");
  }
  pin->second.used_micros = clock_.MonotonicMicros();
  // Others may read the same snapshots now, one of them in another thread.
  auto view = std::make_unique<ReadView>();
  view->Share(*pin->second.view);
  const uint64_t seed = options_.seed + id;
  Result<std::unique_ptr<Scan>> scan = OpenScan(std::move(view), rows, cells, from, seed, nullptr);
  if (!scan.ok()) return InTable(std::move(scan).status(), table);
  return scan;
}

void Store::UnpinSnapshot(uint64_t id) {
  const auto pin = pins_.find(id);
  if (pin == pins_.end()) return;
  // Not found any more (ScanPinned); a read that is under way keeps it until ReleasePin.
  pin->second.table_id = 0;
  if (pin->second.holds == 0) pins_.erase(pin);
}

void Store::HoldPin(uint64_t id) {
  const auto pin = pins_.find(id);
  if (pin != pins_.end()) ++pin->second.holds;
}

void Store::ReleasePin(uint64_t id) {
  const auto pin = pins_.find(id);
  if (pin == pins_.end()) return;
  CELLAR_ASSERT(pin->second.holds > 0);
  --pin->second.holds;
  pin->second.used_micros = clock_.MonotonicMicros();
  if (pin->second.table_id == 0 && pin->second.holds == 0) pins_.erase(pin);
}

void Store::UnpinStale() {
  const int64_t oldest = clock_.MonotonicMicros() - options_.snapshot_cursor_timeout_micros;
  std::erase_if(pins_, [oldest](const auto& pin) {
    return pin.second.holds == 0 && pin.second.used_micros < oldest;
  });
}

// --- digest

namespace {

enum class DigestExpiry : uint8_t { kCounted, kLeftOut };

void AddCells(Scan& scan, DigestExpiry expiry, DigestHash* hash) {
  for (ScanStep step = scan.Next(); step != ScanStep::kEnd; step = scan.Next()) {
    std::string& bytes = hash->bytes();
    if (step == ScanStep::kRow) PutLengthPrefixed(&bytes, scan.row_text());
    if (step != ScanStep::kCell) continue;
    DigestCell(scan, &bytes);
    if (expiry == DigestExpiry::kCounted)
      PutVarint64(&bytes, static_cast<uint64_t>(scan.expiry_micros()));
    hash->FlushIfLong();
  }
}

void AddSchema(const Table& table, DigestIndexes indexes, std::string* bytes) {
  DigestKey(table, bytes);
  PutVarint64(bytes, table.counters().record_number_next);
  DigestFamilies(table, bytes);
  DigestIndexesOf(table, indexes, bytes);
}

}  // namespace

std::string Store::Digest(DigestTime time) {
  const int64_t now = now_micros_;
  // Nodes with the same data must judge at one moment what has expired.
  if (time == DigestTime::kNewestStamp) now_micros_ = engine_->stamp();
  DigestHash hash;
  CellOptions all;
  all.versions_max = kUnlimited;
  for (const std::string& keyspace : Keyspaces()) {
    PutLengthPrefixed(&hash.bytes(), keyspace);
    for (const Table* table : Tables(keyspace)) {
      PutLengthPrefixed(&hash.bytes(), table->name());
      AddSchema(*table, DigestIndexes::kAll, &hash.bytes());
      Result<std::unique_ptr<Scan>> scan = ScanRows(*table, {}, all, nullptr);
      CELLAR_ASSERT(scan.ok());
      AddCells(**scan, DigestExpiry::kLeftOut, &hash);
    }
  }
  now_micros_ = now;
  return hash.Take().Text();
}

std::string Store::DigestTable(const Table& table) {
  DigestHash hash;
  CellOptions all;
  all.versions_max = kUnlimited;
  AddSchema(table, DigestIndexes::kReady, &hash.bytes());
  Result<std::unique_ptr<Scan>> scan = ScanRows(table, {}, all, nullptr);
  CELLAR_ASSERT(scan.ok());
  AddCells(**scan, DigestExpiry::kCounted, &hash);
  return hash.Take().Text();
}

}  // namespace cellar
