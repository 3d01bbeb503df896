// TableScan: a Scan of rows in the order of their keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "engine/rows/condition.h"
#include "engine/rows/conditions_ahead.h"
#include "engine/rows/row_reader.h"
#include "engine/rows/scan.h"
#include "engine/scans/each_group.h"
#include "engine/table/read_view.h"

namespace cellar {

// ERR if there is no such component of keys to make groups of.
Status CheckEach(const TableSchema& schema, const RowOptions& rows);

// *ranges := the union of row selectors as ascending, disjoint ranges of encoded keys, as far as
// `clamp` has them (null: all). No selector is every row. TOOLARGE, BADKEY, ERR for a malformed
// bound; *ranges is unspecified then.
Status CompileRows(const TableSchema& schema, const Tablets* clamp,
                   const std::vector<RowSelector>& rows, std::vector<KeyRange>* ranges);

class TableScan final : public Scan {
 public:
  TableScan() = default;  // of nothing; Open it
  // Begins, once after it was made or closed. `view` must outlive the scan, or be given to it to
  // own. `from` goes on where an earlier scan with the same options stood; null begins. `seed`
  // decides what SAMPLE and sample() take. After an error it is good for nothing.
  Status Open(std::unique_ptr<ReadView> view, const RowOptions& rows, const CellOptions& cells,
              const ScanPosition* from, uint64_t seed);
  Status Open(ReadView* view, const RowOptions& rows, const CellOptions& cells,
              const ScanPosition* from, uint64_t seed);
  // The view that a closed scan owned, for the next Open; null if there is none.
  std::unique_ptr<ReadView> TakeView() { return std::move(owned_view_); }

  ScanStep Next() override;
  std::string_view row_text() const override {
    return view_->schema().key.TextOf(row_key_.view(), &row_scratch_);
  }
  int64_t expiry_micros() const override { return reader_.expiry_micros(); }
  std::string_view row_key() const override { return row_key_.view(); }
  const RawCell& raw_cell() const override { return reader_.raw_cell(); }
  const ReadView& view() const override { return *view_; }
  void SkipRow() override;
  ScanPosition PositionAtRow() const override;
  ScanPosition PositionAfterRow() const override;
  ScanPosition PositionAfterCell() const override;
  ScanPosition PositionInGroup() const override;
  void SetBudget(uint64_t cells) override { budget_ = cells; }
  void Detach() override;
  TableScan* Close() override;
  size_t memory_bytes() const override { return reader_.memory_bytes(); }
  const ScanStats& stats() const override { return stats_; }
  ScanShape shape() const override;
  void AddNotes(std::vector<std::string>* notes) const override;

 private:
  Status Compile(const RowOptions& rows, const CellOptions& cells, const ScanPosition* from);
  void StartFrom(const ScanPosition& from);
  std::string_view GroupFrontOf(std::string_view row_key) const;
  // Finds the next candidate row in the ranges; false at the end.
  bool FindRow();
  bool FindRowForward();
  bool FindRowReverse();
  bool Sampled() const;
  // Does WHERE let the row pass?
  bool Passes();
  std::vector<bool> Groups() const;  // those that are opened, by number

  std::unique_ptr<ReadView> owned_view_;
  ReadView* view_{nullptr};
  uint64_t seed_{0};
  std::vector<KeyRange> ranges_;
  bool reverse_{false};
  std::optional<double> sample_;
  EachGroup each_;
  std::vector<Condition> where_;
  std::optional<ConditionsAhead> where_ahead_;  // if there are any, of rows that are not named
  CellPlan plan_;
  RowReader reader_;
  uint64_t budget_{kUnlimited};
  ScanStats stats_;

  size_t range_at_{0};
  uint64_t rows_left_{kUnlimited};  // that the selectors can name still
  bool started_{false};
  bool ended_{false};
  bool in_row_{false};
  bool resumed_{false};  // it is the row that an earlier scan had begun
  bool row_reported_{false};
  bool cell_pending_{false};
  std::optional<ScanPosition> resume_;  // inside the first row
  KeyBuffer row_key_;
  mutable std::string row_scratch_;  // of row_text()
};

}  // namespace cellar
