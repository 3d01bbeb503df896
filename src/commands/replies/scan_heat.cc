// See scan_heat.h.
#include "commands/replies/scan_heat.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {
namespace {

// A row may have been taken back since.
double BytesSince(uint64_t before, uint64_t now) {
  return now > before ? static_cast<double>(now - before) : 0;
}

}  // namespace

ScanHeat::ScanHeat(Host& host, const Table& table, Way way)
    : host_(host.services().heat.enabled() || host.routes() ? &host : nullptr),
      heat_(&host.services().heat),
      table_id_(table.id()),
      way_(way),
      routes_(host.routes()) {}

void ScanHeat::TellPlace(std::string_view entry_key) {
  Services& services = host_->services();
  services.load_samples.NotePlace(table_id_, entry_key, services.stats.commands);
}

void ScanHeat::TellBegin(const Scan& scan) {
  const ScanShape shape = scan.shape();
  const bool walks_table = shape.index_order == nullptr && shape.ranges != nullptr;
  if (walks_table && !shape.ranges->empty()) TellPlace(shape.ranges->front().begin.bytes);
}

// It may have been dropped since.
const Table* ScanHeat::FindTable() const {
  return host_->loading() ? nullptr : host_->store().TableById(table_id_);
}

void ScanHeat::Note(const Scan& scan, const Progress& progress, bool ended) {
  if (host_ == nullptr) return;
  NotePlace(progress.at);
  const uint64_t counted = heat_->TakeExamined(progress.rows - rows_);
  if (counted > 0) Count(scan, progress, ended, counted, 0);
  rows_ = progress.rows;
  begun_ = true;
}

void ScanHeat::Count(const Scan& scan, const Progress& progress, bool ended, uint64_t counted,
                     uint64_t reply_bytes) {
  const Table* const table = FindTable();
  if (table == nullptr) return;
  CELLAR_ASSERT(progress.rows > rows_);
  const auto rows = static_cast<double>(counted);
  // Bytes are weighed as rows are: each look counts for those where nobody looked.
  const double share = rows / static_cast<double>(progress.rows - rows_);
  const HeatAmounts amounts{.reads = rows, .bytes = share * BytesSince(bytes_, reply_bytes)};
  const int64_t now = host_->store().now_micros();
  const ScanShape shape = scan.shape();
  const std::string_view at = progress.at;
  // Only at its two ends the walk of a range is told as a span. In between, by an index or in
  // jumps, the place alone is known.
  if (shape.index_order != nullptr || way_ == Way::kJumps || shape.ranges == nullptr ||
      shape.ranges->empty() || (begun_ && !ended)) {
    return heat_->Add(*table, at, amounts, now);
  }
  // From where the ranges begin, and to where they end, as far as it has come.
  const KeyBound& end = shape.ranges->back().end;
  std::string_view first = shape.ranges->front().begin.bytes;
  std::optional<std::string_view> last;
  if (!end.at_end) last = end.bytes;
  if (begun_) {
    (way_ == Way::kForward ? first : last.emplace()) = at;
  } else if (!ended && way_ == Way::kForward) {
    last = at;
  } else if (!ended) {
    first = at;
  }
  heat_->AddSpan(*table, first, last, amounts, now);
}

void ScanHeat::KeepPlace(const Progress& progress, uint64_t reply_bytes) {
  const uint64_t rows = progress.rows;
  if (rows == 0) return;
  // Full: half of the places go, and from now on they lie twice as far apart. So those that are
  // kept cover the whole way, however long it is.
  if (kept_.size() == kKeptMax) {
    // Each second one tells of the way before it, too.
    for (size_t i = 0; i < kKeptMax / 2; ++i) kept_[i] = std::move(kept_[2 * i + 1]);
    kept_.resize(kKeptMax / 2);
    keep_rows_ *= 2;
  }
  CELLAR_ASSERT(kept_.size() < kKeptMax);
  CELLAR_ASSERT(kept_.empty() || kept_.back().rows < rows);
  kept_.push_back({std::string(progress.at), rows, reply_bytes});
  keep_from_rows_ = rows + keep_rows_;
}

void ScanHeat::TellKept() {
  if (kept_.empty()) return;
  for (const Kept& kept : kept_) NoteRead(kept.rows, kept.place, kept.bytes);
  begun_ = true;
  kept_ = {};
}

void ScanHeat::NoteRead(uint64_t rows, std::string_view place, uint64_t reply_bytes) {
  if (host_ == nullptr) return;
  NotePlace(place);
  CELLAR_ASSERT(rows >= rows_);
  const uint64_t examined = rows - rows_;
  const uint64_t counted = heat_->TakeExamined(examined);
  // Mostly nothing is due. Then not even the table is looked up.
  if (counted > 0) [[unlikely]] {
    if (const Table* const table = FindTable(); table != nullptr) {
      const double share = static_cast<double>(counted) / static_cast<double>(examined);
      heat_->Add(
          *table, place,
          {.reads = static_cast<double>(counted), .bytes = share * BytesSince(bytes_, reply_bytes)},
          host_->store().now_micros());
    }
  }
  rows_ = rows;
  bytes_ = reply_bytes;
}

void ScanHeat::NoteRows(uint64_t rows, std::string_view place, HeatMetric metric) {
  if (host_ == nullptr) return;
  NotePlace(place);
  CELLAR_ASSERT(rows >= rows_);
  const uint64_t counted = heat_->TakeExamined(rows - rows_);
  rows_ = rows;
  if (counted == 0) return;
  const Table* const table = FindTable();
  if (table == nullptr) return;
  const auto number = static_cast<double>(counted);
  const bool writes = metric == HeatMetric::kWrites;
  heat_->Add(*table, place, {.reads = writes ? 0 : number, .writes = writes ? number : 0},
             host_->store().now_micros());
}

void ScanHeat::NoteRange(uint64_t counted, const KeyRange& range) const {
  CELLAR_ASSERT(host_ != nullptr);
  CELLAR_ASSERT(counted > 0);
  const Table* const table = FindTable();
  if (table == nullptr) return;
  std::optional<std::string_view> last;
  if (!range.end.at_end) last = range.end.bytes;
  heat_->AddSpan(*table, range.begin.bytes, last, {.reads = static_cast<double>(counted)},
                 host_->store().now_micros());
}

}  // namespace cellar
