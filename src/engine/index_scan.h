// IndexScan: a Scan of rows in the order of an index.
//
// It walks the entries and reads each row at the same moment, so what it gives is what a TableScan
// of that row gives. If the entries hold every column asked for, newest versions alone are wanted,
// and no filter or predicate asks for more, the rows come from the entries and the table is not
// read. A position is the key of an entry.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "engine/condition.h"
#include "engine/index.h"
#include "engine/read_view.h"
#include "engine/row_reader.h"
#include "engine/scan.h"

namespace cellar {

// The index of this name, ready to be read through `view`. NOINDEX, NOPERM.
Result<const IndexSchema*> FindIndex(const ReadView& view, std::string_view name);
// NOTUNIQUE of a failed index, TRYAGAIN of one that is not built yet.
Status CheckIndexReady(const ReadView& view, const IndexSchema& index);

class IndexScan final : public Scan {
 public:
  // As TableScan::Create. REQUIRES: rows.index; the table's indexes are at the view's time.
  static Result<std::unique_ptr<Scan>> Create(std::unique_ptr<ReadView> view,
                                              const RowOptions& rows, const CellOptions& cells,
                                              const ScanPosition* from, uint64_t seed);
  static Result<std::unique_ptr<Scan>> Create(ReadView* view, const RowOptions& rows,
                                              const CellOptions& cells, const ScanPosition* from,
                                              uint64_t seed);

  ScanStep Next() override;
  std::string_view row_text() const override { return row_text_; }
  const ScanCell& cell() const override { return cell_; }
  void SkipRow() override;
  ScanPosition PositionAfterRow() const override;
  ScanPosition PositionAfterCell() const override;
  void SetBudget(uint64_t cells) override { budget_ = cells; }
  void Detach() override;
  const ScanStats& stats() const override { return stats_; }

 private:
  IndexScan(ReadView* view, uint64_t seed) : view_(view), seed_(seed) {}

  Status Compile(const RowOptions& rows, const CellOptions& cells, const ScanPosition* from);
  // EQ, BETWEEN, FROM as a range of entries' keys.
  Status CompileRange(const IndexOptions& options);
  void StartFrom(const ScanPosition& from);
  // Can entries give every cell that is asked for?
  bool IsCovered(const IndexSchema& index, const CellOptions& cells) const;
  // Begins the row of the entry at hand; false if it holds nothing.
  bool BeginRow(const std::optional<ScanPosition>& resume);
  bool FindEntry();
  bool Wanted() const;

  std::unique_ptr<ReadView> owned_view_;
  ReadView* view_;
  uint64_t seed_;
  uint64_t index_id_{0};
  IndexOrder order_;
  KeyRange range_;
  bool reverse_{false};
  bool covered_{false};      // rows come from the entries where they can
  bool row_covered_{false};  // this one does
  std::optional<double> sample_;
  std::vector<Condition> where_;
  CellPlan plan_;
  std::unique_ptr<RowReader> reader_;
  std::unique_ptr<BTreeCursor> at_;  // dies before the view
  uint64_t budget_{kUnlimited};
  ScanStats stats_;

  bool started_{false};
  bool ended_{false};
  bool in_row_{false};
  bool row_reported_{false};
  bool cell_pending_{false};
  std::optional<ScanPosition> resume_;  // inside the first row
  std::string entry_key_;
  std::string row_key_;
  std::string row_text_;
  ScanCell cell_;
};

// CNEAR ... INDEX.
struct NearEntry {
  std::vector<IndexOrder::Value> values;
  std::string row;   // canonical text
  int direction{0};  // 0 these values, 1 the next entry behind them, -1 the last one before
};
// Nullopt if the index is empty. NOINDEX, BADVALUE, NOTUNIQUE, TRYAGAIN; ERR for too many values.
Result<std::optional<NearEntry>> FindNearEntry(const ReadView& view, std::string_view name,
                                               const std::vector<std::string_view>& values);

}  // namespace cellar
