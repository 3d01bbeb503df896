// IndexScan: a Scan of rows in the order of an index.
//
// It walks the entries and reads each row at the same moment, so what it gives is what a TableScan
// of that row gives. Where the entries tell enough, the table is not read:
//
//   source     the cells of a row come from            when
//   kTable     the row
//   kEntry     the cells that the entry holds          INCLUDE has every column asked for
//   kKey       the values in its key                   only ON columns, without timestamps
//   kNothing   nowhere: the row is there               no cell is wanted, only whether there is one
//
// and no filter or TIME asks for more, and newest versions alone are wanted. Conditions are asked
// of the entry where it tells of their columns (index_coverage.h), whatever the source of the
// cells, before others are asked of the row. A single entry may hold less than the others (what
// would be too large, -0.0, which keys do not know): its row is read. A position is the key of an
// entry.
//
// A scan that names no index may be given to one by ChooseIndex() (index_choice.h), and gives the
// same cells as a TableScan. An index of rows (ON 0) is in the order of the table, and so is one
// all of whose ON values are known: positions and cursors are those of a TableScan too then.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/key_range_set.h"
#include "engine/rows/condition.h"
#include "engine/rows/row_reader.h"
#include "engine/rows/scan.h"
#include "engine/scans/each_group.h"
#include "engine/scans/index_choice.h"
#include "engine/table/index.h"
#include "engine/table/read_view.h"

namespace cellar {

// The index of this name, ready to be read through `view`. NOINDEX, NOPERM.
Result<const IndexSchema*> FindIndex(const ReadView& view, std::string_view name);
// NOTUNIQUE or TOOLARGE of a failed index, TRYAGAIN of one that is not built yet.
Status CheckIndexReady(const ReadView& view, const IndexSchema& index);
// Appends the encodings of the first values of the ON columns of an index, which has this name.
// BADVALUE; ERR for too many.
Status EncodeIndexValues(std::string_view index, const IndexOrder& order,
                         const std::vector<std::string_view>& values, std::string* out);

// Opens the scan that `rows` and `cells` ask for: of the index that they name, of the one that is
// chosen, or of the table. As TableScan::Open.
// `spare` may be null, or a scan that has been closed, whose memory is used if it does.
Result<std::unique_ptr<Scan>> OpenScan(std::unique_ptr<ReadView> view, const RowOptions& rows,
                                       const CellOptions& cells, const ScanPosition* from,
                                       uint64_t seed, std::unique_ptr<TableScan> spare);
Result<std::unique_ptr<Scan>> OpenScan(ReadView* view, const RowOptions& rows,
                                       const CellOptions& cells, const ScanPosition* from,
                                       uint64_t seed);

class IndexScan final : public Scan {
 public:
  enum class Source : uint8_t { kTable, kEntry, kKey, kNothing };

  // As TableScan::Open. `choice` is what has been chosen; without an index: the one that `rows`
  // names. REQUIRES: one of them.
  static Result<std::unique_ptr<IndexScan>> Create(ReadView* view, const IndexChoice& choice,
                                                   const RowOptions& rows, const CellOptions& cells,
                                                   const ScanPosition* from, uint64_t seed);
  void Own(std::unique_ptr<ReadView> view) { owned_view_ = std::move(view); }

  ScanStep Next() override;
  std::string_view row_text() const override { return row_text_; }
  int64_t expiry_micros() const override { return reader_.expiry_micros(); }
  std::string_view row_key() const override { return row_key_; }
  const RawCell& raw_cell() const override { return reader_.raw_cell(); }
  size_t memory_bytes() const override { return reader_.memory_bytes(); }
  const ReadView& view() const override { return *view_; }
  void SkipRow() override;
  ScanPosition PositionAtRow() const override;
  ScanPosition PositionAfterRow() const override;
  ScanPosition PositionAfterCell() const override;
  ScanPosition PositionInGroup() const override;
  void SetBudget(uint64_t cells) override { budget_ = cells; }
  void Detach() override;
  const ScanStats& stats() const override { return stats_; }
  ScanShape shape() const override;
  void AddNotes(std::vector<std::string>* notes) const override;

 private:
  IndexScan(ReadView* view, uint64_t seed) : view_(view), seed_(seed) {}

  Status Compile(const IndexChoice& choice, const RowOptions& rows, const CellOptions& cells,
                 const ScanPosition* from);
  // Goes on where an earlier scan stood: in the ranges as they are then, and in EACH.
  void StartFrom(const ScanPosition& from);
  // Makes ranges of entries of those of rows.
  void MoveBehindValues(const IndexChoice& choice);
  // The index that is named. STALECURSOR if `from` is of another one, which had its name.
  Result<const IndexSchema*> FindNamed(const RowOptions& rows, const ScanPosition* from) const;
  // What a position holds: the key of an entry, or of a row where no index was named.
  const std::string& PositionKey() const { return named_ ? entry_key_ : row_key_; }
  ScanPosition PositionAtEntry() const;
  // EACH: what the group of an entry has in common; of the row of a position.
  std::string_view GroupFrontOf(std::string_view entry_key) const;
  std::string GroupFrontOfPosition(const std::string& key) const;
  // The row of the entry at hand is given out.
  void CountInGroup();
  // The cursor moves on to the next entry that may be wanted.
  void Step();
  // ERR if the index has not so many ON columns.
  Status CheckEach(const RowOptions& rows) const;
  // EQ, BETWEEN, FROM as a range of entries' keys.
  Status CompileRange(const IndexOptions& options);
  // Makes of that the ranges of PREFIX and RANGE. BADKEY; ERR if EQ fixes too little.
  Status NarrowToRows(const RowOptions& rows);
  // `held` is what an entry tells of (EntryColumns).
  Source FindSource(const IndexSchema& index, const std::vector<IndexColumn>& held,
                    const RowOptions& rows, const CellOptions& cells) const;
  // Fills in on_places_.
  void PlaceOnColumns(const IndexSchema& index, const std::vector<IndexColumn>& held);
  void CountGroups();
  // Begins the row of the entry at hand; false if it holds nothing.
  bool BeginRow();
  void DecodeRowKey();
  bool BeginRowOfTable();
  // What the entry at hand tells of its columns, into cells_; false if that is not all of it.
  bool TakeCells();
  bool TakeKeyCells();
  bool FindEntry();
  bool EnterRange();
  bool EnterRangeReverse();
  bool EntryHolds(const Condition& condition);
  bool Wanted();

  std::unique_ptr<ReadView> owned_view_;
  ReadView* view_;
  uint64_t seed_;
  uint64_t index_id_{0};
  bool named_{false};      // else it was chosen, and positions are those of the table
  std::string values_;     // chosen: each entry begins with them
  bool by_where_{false};   // chosen, since WHERE binds its columns
  bool reordered_{false};  // chosen: entries come in another order than rows
  std::optional<KeyRangeSet>
      rows_within_;  // chosen, and other rows may come: those that are wanted
  IndexOrder order_;
  std::vector<KeyRange> ranges_;
  size_t range_at_{0};
  bool reverse_{false};
  Source source_{Source::kTable};
  bool row_from_entry_{false};
  std::vector<bool> groups_;  // that are opened for every row
  uint64_t groups_max_{0};    // that are opened for a row whose entry does not tell enough
  // Without INCLUDE: the ON columns (by number) in table order, each once.
  struct OnPlace {
    size_t column{0};
    uint32_t family_id{0};
    std::string qualifier;
  };
  std::vector<OnPlace> on_places_;
  std::optional<double> sample_;
  EachGroup each_;
  std::vector<Condition> entry_where_;  // conditions that entries answer
  std::vector<Condition> where_;        // the others
  bool wants_cells_{false};             // are cells_ of any use?
  bool cells_of_key_{false};            // do they come from an entry's key?
  CellPlan plan_;
  RowReader reader_;
  std::unique_ptr<BTreeCursor> at_;  // dies before the view
  uint64_t budget_{kUnlimited};
  ScanStats stats_;

  bool started_{false};
  bool ended_{false};
  bool in_row_{false};
  bool resumed_{false};  // it is the row that an earlier scan had begun
  bool row_reported_{false};
  bool cell_pending_{false};
  std::optional<ScanPosition> resume_;  // inside the first row
  std::string entry_key_;
  std::string entry_value_;
  EntryReader entry_;  // of entry_value_
  std::vector<IndexOrder::Value> key_values_;
  std::vector<IncludedCell> cells_;  // into entry_value_ or key_values_
  bool has_cells_{false};
  std::string row_key_;
  std::string row_text_;
};

}  // namespace cellar
