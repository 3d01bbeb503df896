// RowReader: the cells of one row as a reply has them: CellStream, then FILTER, then the order and
// the limits that count survivors (COLREVERSE, SKIP, GROUPS, PERROW).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/inline.h"
#include "cellar/status.h"
#include "engine/filter/filter.h"
#include "engine/filter/filter_run.h"
#include "engine/keys/key_range_set.h"
#include "engine/request/read_options.h"
#include "engine/rows/cell_stream.h"
#include "engine/rows/scan.h"
#include "engine/table/index_entry.h"

namespace cellar {

// CellOptions, checked and compiled against a schema.
struct CellPlan {
  CellChoice choice;
  uint64_t columns_skip{0};
  uint64_t super_columns_max{kUnlimited};
  uint64_t columns_max{kUnlimited};
  std::unique_ptr<Filter> filter;
  bool reverse_survivors{false};    // COLREVERSE with a filter: turned round after it
  std::optional<KeyRangeSet> rows;  // if set: rows outside cannot pass the filter

  // Makes this plan that of the options, keeping its memory. NOFAMILY, TOOLARGE, BADKEY; then
  // BADFILTER; it is unspecified then.
  Status Compile(const TableSchema& schema, const CellOptions& options);
};

// A parsed filter bound to a schema's families.
class RowFilter {
 public:
  // BADFILTER; NOFAMILY for a family that it names.
  static Result<std::unique_ptr<Filter>> Parse(const TableSchema& schema, std::string_view text);
  // Copies what it needs of `schema`; `filter` must outlive it.
  RowFilter(const TableSchema& schema, const Filter& filter, uint64_t seed);
  FilterRun& run() { return *run_; }

 private:
  struct FamilyCopy {
    std::string name;
    Order order;
  };
  Order key_order_;
  std::vector<FamilyCopy> copies_;
  std::vector<FilterFamily> families_;
  std::unique_ptr<FilterRun> run_;
};

class RowReader {
 public:
  RowReader();  // of nothing; Bind it
  ~RowReader();
  // Begins with another table, keeping the memory. `view` and `plan` must outlive the reader, or it
  // must be unbound before they die. `seed` decides what sample() lets through.
  void Bind(const ReadView& view, const CellPlan& plan, uint64_t* budget, ScanStats* stats,
            uint64_t seed);
  void Unbind();

  CellStream& stream() { return stream_; }
  // Cells of text that the filter has held against numbers, since Bind.
  uint64_t filter_text_met() const { return filter_ != nullptr ? filter_->run().text_met() : 0; }
  // The cell that the last Next() gave; its value may be stripped.
  const RawCell& raw_cell() const { return raw_; }

  void BeginRow(std::string_view row_key);
  // Begins a row whose cells an index's entry holds: the table is not read. `cells` are in table
  // order and outlive the row. REQUIRES: the plan has no filter and asks for newest versions alone.
  void BeginIncluded(std::string_view row_key, std::span<const IncludedCell> cells);
  // Goes on behind what `position` says was given out. REQUIRES: just begun, position.inside_row.
  void Resume(const ScanPosition& position);
  StreamStep Next(ScanCell* cell);
  // Of the cell that Next gave last; not of one out of an index's entry.
  int64_t expiry_micros() const { return raw_.value.expiry_micros; }
  // Held for the row at hand, where that must be known whole: COLREVERSE behind a filter.
  size_t memory_bytes() const { return collected_bytes_; }
  // The view has moved from the live trees to snapshots. `pending`: the cell that Next gave last,
  // if it is still to be read, whose qualifier was the cursors'; else null.
  void Reattach(ScanCell* pending);

  // Fills in the `inside_row` part of a position: behind the cell given out last.
  void SavePosition(ScanPosition* position) const;

 private:
  struct Survivor {
    RawCell raw;
    std::string qualifier;
    std::string stored;
    bool stripped{false};
    std::vector<std::string> labels;
  };
  enum class Stage : uint8_t { kDeciding, kFeeding, kDone };

  enum class Verdict : uint8_t { kGive, kSkipColumn, kRowDone };

  // The next cell that the filter lets through, into raw_, stripped_, labels_.
  StreamStep NextSurvivor();
  // NextSurvivor's slow way: of a row behind a filter, or out of an index's entry.
  StreamStep NextElsewhere();
  StreamStep DecideRow();
  StreamStep NextFiltered();
  StreamStep NextReversed();
  void Collect();
  void DropCollected();  // all of it
  void ReverseColumns();
  void BeginColumn() {
    column_given_ = false;
    ++columns_counted_;
  }
  // Does the survivor at hand begin a column, in this row?
  bool BeginsColumn() const;
  // Takes what a filter's look at a large value costs off the budget.
  void ChargeValue(std::string_view stored);
  // What SKIP, GROUPS and PERROW say of the survivor at hand.
  Verdict CountIn();
  // False if GROUPS has no room for the super column that may begin here.
  bool CountSuperColumn();
  void Fill(ScanCell* cell);
  // shown_... of a qualifier whose encoding has to be looked at.
  void ShowDecoded(const Order& order);

  const ReadView* view_{nullptr};
  const CellPlan* plan_{nullptr};
  CellStream stream_;
  uint64_t* budget_{nullptr};
  std::unique_ptr<RowFilter> filter_;
  std::string row_key_;   // for the filter
  bool is_raw_{false};    // the row's cells come from the stream: no filter, no index
  bool is_whole_{false};  // ... and all of them from its front on: no limits, not resumed

  // The survivor at hand.
  RawCell raw_;
  std::string given_qualifier_;  // its qualifier, where that must outlive the stream's cursors
  bool stripped_{false};
  const std::vector<std::string>* labels_{nullptr};

  // FILTER
  Stage stage_{Stage::kDone};
  RawCell fed_;
  std::string fed_qualifier_;  // its bytes, where they must outlive the stream's cursors
  std::string fed_stored_;
  size_t outputs_taken_{0};
  size_t outputs_{0};
  FilterNext fed_next_{FilterNext::kMore};
  uint64_t survivors_{0};           // of the filter in this row so far
  uint64_t survivors_to_drop_{0};   // given out by an earlier call
  std::deque<Survivor> collected_;  // with reverse_survivors: all of the row that may be given out
  uint64_t columns_collected_{0};   // in it
  size_t collected_bytes_{0};       // of it
  std::vector<size_t> reversed_;    // their order in the reply
  bool collected_all_{false};
  size_t reversed_at_{0};

  // Limits
  bool unlimited_{true};         // there are none
  uint64_t columns_counted_{0};  // SKIP's included
  uint64_t super_columns_counted_{0};
  // The column counted last, where the stream's word for the beginning of the next one will not do:
  // behind a filter, which may let its second version through and not its first one, and where the
  // call began inside a row.
  bool column_kept_{false};
  size_t column_family_{0};
  std::string column_;        // qualifier
  std::string super_column_;  // family id, first component
  bool column_given_{false};  // in this call

  // BeginIncluded
  bool from_index_{false};
  void SkipIncluded(std::string_view cell_key);
  std::vector<RawCell> included_;  // those that are wanted, in the order of the reply
  size_t included_at_{0};
  // The qualifier's text, of the column given out last.
  bool shown_decoded_{false};   // it stands in qualifier_text_, not in the encoding
  size_t shown_bytes_{0};       // of it
  std::string qualifier_text_;  // where the encoding is not the text
};

// --- for each cell of a scan

CELLAR_INLINE StreamStep RowReader::NextSurvivor() {
  return is_raw_ ? stream_.Next(&raw_) : NextElsewhere();
}

CELLAR_INLINE void RowReader::Fill(ScanCell* cell) {
  const FamilySchema& family = view_->schema().families[raw_.family];
  cell->family = family.name;
  cell->column_begins = !column_given_;
  if (!column_given_) {
    shown_bytes_ = raw_.text_bytes;
    if (shown_bytes_ == Order::kNoText) [[unlikely]]
      ShowDecoded(family.order);
    else
      shown_decoded_ = false;
    column_given_ = true;
  }
  // Where the encoding begins with the text, that of this very version: the one before is gone.
  cell->qualifier_text =
      shown_decoded_ ? std::string_view(qualifier_text_) : raw_.qualifier.substr(0, shown_bytes_);
  cell->timestamp_micros = raw_.timestamp_micros;
  cell->type = raw_.value.type;
  cell->stored = {raw_.value.stored.data(), raw_.value.stored.size()};
  if (stripped_) {
    if (cell->type != ValueType::kString) cell->type = ValueType::kBytes;
    cell->stored = {};
  }
  cell->labels = labels_;
}

CELLAR_INLINE StreamStep RowReader::Next(ScanCell* cell) {
  for (;;) {
    const StreamStep step = NextSurvivor();
    if (step != StreamStep::kCell) return step;
    if (is_whole_) [[likely]] {
      if (raw_.column_begins) BeginColumn();
      Fill(cell);
      return StreamStep::kCell;
    }
    switch (CountIn()) {
      case Verdict::kGive:
        Fill(cell);
        return StreamStep::kCell;
      case Verdict::kRowDone:
        return StreamStep::kRowEnd;
      case Verdict::kSkipColumn:
        if (is_raw_) stream_.SkipColumn();
        break;
    }
  }
}

}  // namespace cellar
