// RowListScan: a Scan of named rows in the order in which they are named (CROWS).
//
//   keys   | encoded key | encoded key | ...       ends_: where each of them ends
//
// Unlike other scans it says kRow for every row that was asked for, also for one that is not there
// or has no cell that passes, and for one twice that is named twice: what follows kRow up to the
// next one are its cells. Options, keys and the cells are compiled once for all of them, and the
// rows that come next are brought into the cache together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/rows/row_reader.h"
#include "engine/rows/scan.h"
#include "engine/table/read_view.h"

namespace cellar {

class RowListScan final : public Scan {
 public:
  // TOOLARGE, BADKEY; what CellPlan::Compile says. Copies the keys. `seed` is that of sample().
  static Result<std::unique_ptr<RowListScan>> Create(std::unique_ptr<ReadView> view,
                                                     std::span<const std::string_view> rows,
                                                     const CellOptions& cells, uint64_t seed);

  ScanStep Next() override;
  std::string_view row_text() const override;
  int64_t expiry_micros() const override { return reader_.expiry_micros(); }
  std::string_view row_key() const override { return KeyOf(next_ - 1); }
  const RawCell& raw_cell() const override { return reader_.raw_cell(); }
  const ReadView& view() const override { return *view_; }
  void SkipRow() override { in_row_ = false; }
  // There are no cursors in a list.
  ScanPosition PositionAtRow() const override { return {}; }
  ScanPosition PositionAfterRow() const override { return {}; }
  ScanPosition PositionAfterCell() const override { return {}; }
  ScanPosition PositionInGroup() const override { return {}; }
  void SetBudget(uint64_t cells) override { budget_ = cells; }
  void Detach() override;
  size_t memory_bytes() const override {
    return keys_.capacity() + ends_.capacity() * sizeof(size_t) + reader_.memory_bytes();
  }
  const ScanStats& stats() const override { return stats_; }
  ScanShape shape() const override;
  void AddNotes(std::vector<std::string>* notes) const override;

 private:
  RowListScan(std::unique_ptr<ReadView> view, uint64_t seed)
      : view_(std::move(view)), seed_(seed) {}

  Status Compile(std::span<const std::string_view> rows, const CellOptions& cells);
  std::string_view KeyOf(size_t row) const {
    const size_t begin = row == 0 ? 0 : ends_[row - 1];
    return std::string_view(keys_).substr(begin, ends_[row] - begin);
  }
  void Prefetch();
  void BeginRow();

  std::unique_ptr<ReadView> view_;
  uint64_t seed_;
  std::string keys_;
  std::vector<size_t> ends_;
  std::vector<KeyRange> ranges_;  // of CEXPLAIN: all of them
  CellPlan plan_;
  RowReader reader_;
  uint64_t budget_{kUnlimited};
  ScanStats stats_;

  size_t next_{0};  // row to begin
  size_t prefetched_{0};
  bool in_row_{false};
  KeyBuffer found_;  // scratch
  mutable std::string text_;
};

}  // namespace cellar
