// AggregateFold: rows and their cells, as a scan gives them, into groups.
//
// The part of a group's key that depends on the row alone is made once a row, and only when a cell
// of the row is taken by a REDUCE. Without terms of the cell the group is looked up once a row, and
// not even that where neighbouring rows are of one group.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/aggregate/aggregate_groups.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/rows/cell_stream.h"
#include "engine/rows/column_ahead.h"
#include "engine/table/read_view.h"

namespace cellar {

class AggregateFold {
 public:
  // Both outlive it; the view must be that of the rows. Adds to `groups`.
  AggregateFold(const AggregatePlan& plan, const ReadView& view, AggregateGroups* groups);

  void BeginRow() {
    ++row_;
    row_made_ = false;
  }
  // The row's key, encoded: to be said before a cell of the row is added, and again when it has
  // moved in memory.
  void SetRowKey(std::string_view row_key) { row_key_ = row_key; }
  // Does anybody look at the values of the cells?
  bool WantsValues() const;
  // A cell of the row: family as in the schema, qualifier encoded.
  void Add(size_t family, std::string_view qualifier, int64_t timestamp_micros, ValueType type,
           std::string_view stored);
  // Adds a cell to the REDUCEs that FindTakers has given. REQUIRES: `takers` is not empty.
  void AddTo(const std::vector<uint32_t>& takers, size_t family, std::string_view qualifier,
             int64_t timestamp_micros, ValueType type, std::string_view stored);
  // May cells of a row come by AddRun: does nobody ask when they were written, nor of which column
  // they are but by FindTakers?
  bool TakesRuns() const { return !plan_.groups_by_cell && !plan_.wants_timestamps; }
  // AddTo of several, all of which live, as a tree holds them. `text_counts` is TextCounts() of
  // their columns. REQUIRES: TakesRuns().
  void AddRun(const std::vector<uint32_t>& takers, bool text_counts,
              std::span<const std::string_view> values, PlainValue* plain);
  // What AddRun does, for those who hold cells back: first they say of a row that one is of. False:
  // it is of another group than the row before, whose cells are to be added before it is entered.
  [[nodiscard]] bool RowIsOfGroup() {
    if (group_ != nullptr && plan_.groups_by_front && row_key_.starts_with(last_key_)) {
      row_made_ = true;
      return true;
    }
    MakeRow();
    return group_ != nullptr && key_ == last_key_;
  }
  void EnterGroup();
  // Cells of the group that was entered last: of one column in several rows, or of the row at hand.
  enum class Rows : uint8_t { kOne, kEach };
  void AddHeld(const std::vector<uint32_t>& takers, bool text_counts,
               std::span<const std::string_view> values, Rows rows, PlainValue* plain);
  // Does it matter to somebody of which row a cell is?
  bool CountsRows() const;
  bool TextCounts(size_t family, std::string_view qualifier) const {
    return plan_.families[family].TextCounts(qualifier);
  }
  // Are the columns of a family all the same to FindTakers and TextCounts?
  bool ColumnsAreAlike(size_t family) const;
  // Which of the REDUCEs take cells of a column.
  void FindTakers(size_t family, std::string_view qualifier, std::vector<uint32_t>* takers) const;
  // The view has been detached, or another one takes its place.
  void Reattach(const ReadView& view);
  AggregateGroups& groups() { return *groups_; }
  bool wants_timestamps() const { return plan_.wants_timestamps; }

 private:
  // Fills in row_parts_, and key_ where it is the row's.
  void MakeRow();
  // The group of the row becomes the one at hand. REQUIRES: !plan_.groups_by_cell.
  void GoToRow() {
    if (!row_made_ && !RowIsOfGroup()) EnterGroup();
  }
  void AppendRowTerm(const PlannedTerm& term, size_t index);
  void AppendPart(const PlannedTerm& term);
  void AppendBytes(const PlannedTerm& term);
  void AppendValue(const PlannedTerm& term, size_t index);
  void AppendStepped(const NumberStep& step, ValueType type, std::string_view stored,
                     std::string* part);
  void AppendCellTerm(const PlannedTerm& term, size_t family, std::string_view qualifier,
                      int64_t timestamp_micros);
  // Fills in place_.
  void NotePlace(size_t family, std::string_view qualifier, int64_t timestamp_micros);
  int64_t BeginOfStep(const TimeStep& step, int64_t timestamp_micros);
  AggregateGroup* FindGroup(size_t family, std::string_view qualifier, int64_t timestamp_micros);

  const AggregatePlan& plan_;
  AggregateGroups* groups_;
  std::vector<std::unique_ptr<ColumnAhead>> columns_;  // of kValue terms, by index of term
  std::string_view row_key_;
  uint64_t row_{0};  // serial
  bool row_made_{false};
  AggregateGroup* group_{nullptr};  // of last_key_
  std::string key_;                 // of the group at hand; without terms of the cell the row's
  std::string last_key_;
  uint32_t float32_mask_{0};
  TimeStep::Piece time_piece_;  // of the cell before, and whose it is
  const TimeStep* time_step_{nullptr};
  CellPlace place_;  // of the cell at hand, where the plan wants it
  uint64_t place_row_{0};
  std::string place_qualifier_;
  std::vector<std::string> row_parts_;  // by index of term; of the row
  std::string scratch_;
  std::string text_;
  std::vector<uint32_t> takers_;
};

}  // namespace cellar
