// See row_list_scan.h.
#include "engine/scans/row_list_scan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "engine/rows/condition.h"
#include "engine/schema/column_set.h"

namespace cellar {

namespace {

constexpr size_t kRowsPrefetched{16};  // at once: as many as a tree descends to together

}  // namespace

Result<std::unique_ptr<RowListScan>> RowListScan::Create(std::unique_ptr<ReadView> view,
                                                         std::span<const std::string_view> rows,
                                                         const CellOptions& cells, uint64_t seed) {
  std::unique_ptr<RowListScan> scan(new RowListScan(std::move(view), seed));
  RETURN_IF_ERROR(scan->Compile(rows, cells));
  return scan;
}

Status RowListScan::Compile(std::span<const std::string_view> rows, const CellOptions& cells) {
  const TableSchema& schema = view_->schema();
  size_t bytes = 0;
  for (const std::string_view row : rows) bytes += row.size() + 2;
  keys_.reserve(bytes);
  ends_.reserve(rows.size());
  for (const std::string_view row : rows) {
    RETURN_IF_ERROR(EncodeRowKey(schema, row, &keys_));
    ends_.push_back(keys_.size());
    if (const std::string_view key = KeyOf(ends_.size() - 1); !view_->Owns(key)) [[unlikely]]
      return view_->CheckOwned(key);
  }
  RETURN_IF_ERROR(plan_.Compile(schema, cells));
  reader_.Bind(*view_, plan_, &budget_, &stats_, seed_);
  return Status::Ok();
}

void RowListScan::Prefetch() {
  if (next_ < prefetched_) return;
  std::array<std::string_view, kRowsPrefetched> keys;
  const size_t count = std::min(kRowsPrefetched, ends_.size() - next_);
  for (size_t i = 0; i < count; ++i) keys[i] = KeyOf(next_ + i);
  prefetched_ = next_ + count;
  if (count > 1) view_->Prefetch({keys.data(), count});
}

void RowListScan::BeginRow() {
  Prefetch();
  const std::string_view key = KeyOf(next_++);
  ++stats_.rows;
  if (budget_ > 0) --budget_;
  in_row_ = !plan_.rows || plan_.rows->Contains(key);
  if (!in_row_) return;
  // That it may find another row does not matter: no cell of that one is of this.
  (void)reader_.stream().SeekRowForward(key, &found_);
  reader_.BeginRow(key);
}

ScanStep RowListScan::Next() {
  if (in_row_) {
    const StreamStep step = reader_.Next(&cell_);
    if (step == StreamStep::kPause) return ScanStep::kPause;
    if (step == StreamStep::kCell) return ScanStep::kCell;
    in_row_ = false;
  }
  if (next_ == ends_.size()) return ScanStep::kEnd;
  if (budget_ == 0) return ScanStep::kPause;
  BeginRow();
  return ScanStep::kRow;
}

std::string_view RowListScan::row_text() const {
  CELLAR_ASSERT(next_ > 0);
  return view_->schema().key.TextOf(KeyOf(next_ - 1), &text_);
}

ScanShape RowListScan::shape() const {
  const TableSchema& schema = view_->schema();
  std::vector<bool> groups(schema.groups.size(), false);
  MarkGroupsOf(plan_.choice.columns, schema, &groups);
  return {.index_order = nullptr,
          .cells_from = "rows",
          .ranges = &ranges_,
          .plan = &plan_,
          .groups = std::move(groups)};
}

void RowListScan::Detach() {
  if (view_->detached()) return;
  view_->Detach();
  reader_.Reattach(nullptr);
}

void RowListScan::AddNotes(std::vector<std::string>* notes) const {
  if (reader_.filter_text_met() > 0) notes->push_back(FilterTextNote(reader_.filter_text_met()));
}

}  // namespace cellar
