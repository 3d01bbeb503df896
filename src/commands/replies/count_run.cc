// See count_run.h.
#include "commands/replies/count_run.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "commands/replies/scan_run.h"
#include "engine/aggregate/aggregate_result.h"
#include "engine/request/aggregate_request.h"
#include "store/store.h"

namespace cellar {

namespace {

// Whoever asks for fewer pays more for the fold than for the scan.
constexpr uint64_t kFoldRowsMin{100};

bool Chooses(const CellOptions& cells, const Predicate& column) {
  if (cells.columns.empty()) return true;
  return std::any_of(cells.columns.begin(), cells.columns.end(), [&](const ColumnSelector& chosen) {
    if (chosen.family != column.family) return false;
    return chosen.kind == ColumnSelector::Kind::kFamily ||
           (chosen.kind == ColumnSelector::Kind::kColumn && chosen.first == column.qualifier);
  });
}

// Rows in which a cell is asked for have one that is chosen, whatever else is. All that was named
// is checked as before.
bool NarrowToCondition(ReadRequest* request, std::vector<ColumnSelector>* within) {
  CellOptions& cells = request->cells;
  if (!cells.time.all()) return false;
  for (const Predicate& predicate : request->rows.where) {
    if (!predicate.needs_cell() || !Chooses(cells, predicate)) continue;
    *within = {{.kind = ColumnSelector::Kind::kColumn,
                .family = predicate.family,
                .first = predicate.qualifier,
                .second = {}}};
    if (cells.columns.empty()) cells.columns = *within;
    cells.columns_within = within;
    return true;
  }
  return false;
}

// Makes a count one that a fold can do, of the scan that the request then is for: true; else false,
// and nothing has changed. A row that WHERE finds a cell in is there: no other cell of it is looked
// at. An index gives rows otherwise, and what its scan reads is not to change; one cell of a row is
// enough for a scan, of which a fold takes all. *within must live until the scan is made.
bool CountAsFold(const Table& table, ReadRequest* request, std::vector<ColumnSelector>* within,
                 AggregateRequest* fold) {
  const TableSchema& schema = table.schema();
  const RowOptions& rows = request->rows;
  const CellOptions& cells = request->cells;
  if (!rows.rows.empty() || table.counters().rows < kFoldRowsMin) return false;
  if (!schema.indexes.empty() || rows.index || rows.each || rows.sample) return false;
  if (cells.filter || cells.columns_skip != 0 || cells.columns_max != kUnlimited ||
      cells.super_columns_max != kUnlimited || cells.versions_max == 0) {
    return false;
  }
  Reduce reduce;
  if (request->by == CountBy::kRows) {
    const bool is_column =
        cells.columns.size() == 1 && cells.columns[0].kind == ColumnSelector::Kind::kColumn;
    if (!NarrowToCondition(request, within) && !is_column) return false;
    reduce.function = Reduce::Function::kRows;
  } else if (request->by != CountBy::kCells || schema.groups.size() > 1) {
    return false;
  }
  *fold = {};
  fold->reduces = {reduce};
  return true;
}

}  // namespace

Result<CountRun> CountRun::Open(Store& store, const Table& table, ReadRequest* request) {
  AggregateRequest fold;
  std::vector<ColumnSelector> within;
  if (CountAsFold(table, request, &within, &fold)) {
    Result<std::unique_ptr<AggregateJob>> job =
        store.Aggregate(table, request->rows, request->cells, fold, {.memory_bytes_max = SIZE_MAX});
    request->cells.columns_within = nullptr;
    if (!job.ok()) return std::move(job).status();
    return CountRun(*std::move(job));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Scan> scan,
                   store.ScanRows(table, request->rows, request->cells, nullptr));
  return CountRun(std::move(scan), request->by, table.schema());
}

CountRun::CountRun(std::unique_ptr<Scan> scan, CountBy by, const TableSchema& schema)
    : scan_(std::move(scan)), by_(by) {
  if (by_ != CountBy::kGroups) return;
  // Copied, since a task may count on when the schema has changed.
  for (const FamilySchema& family : schema.families) {
    delimiters_.push_back({family.name, family.order.delimiter()});
  }
}

void CountRun::CountGroup(const ScanCell& cell) {
  if (!cell.column_begins) return;
  CELLAR_DEBUG_ASSERT(by_ == CountBy::kGroups);
  if (family_ == nullptr || family_->family != cell.family) {
    family_ = nullptr;
    for (const FamilyDelimiter& row : delimiters_) {
      if (row.family == cell.family) family_ = &row;
    }
    CELLAR_ASSERT(family_ != nullptr);
    group_known_ = false;
  }
  std::string_view group = cell.qualifier_text;
  if (family_->delimiter != '\0') group = group.substr(0, group.find(family_->delimiter));
  // Columns of one super column stand together, so only the one before need be remembered.
  if (group_known_ && group == group_) return;
  group_known_ = true;
  group_ = group;
  ++count_;
}

bool CountRun::Pull(uint64_t cells) {
  const bool done = PullCells(cells);
  Note(done);
  return done;
}

bool CountRun::PullOnWorker(uint64_t cells) {
  const bool done = PullCells(cells);
  if (done)
    ended_beside_ = true;
  else if (job_ != nullptr)
    heat_.Keep({job_->stats().rows, place_});
  else
    heat_.Keep(*scan_, 0);
  return done;
}

void CountRun::RecordHeat() {
  if (!std::exchange(ended_beside_, false)) return;
  heat_.TellKept();
  Note(true);
}

bool CountRun::PullJob(uint64_t cells) {
  if (!job_->Pull(cells)) {
    if (const std::string_view place = job_->place(); !place.empty()) place_ = place;
    return false;
  }
  CELLAR_ASSERT(job_->status().ok());  // there is one group, and nothing to be refused
  CELLAR_ASSERT(job_->groups() == 1);
  const AggregatePlan& plan = job_->plan();
  count_ = static_cast<uint64_t>(ReduceValue(plan, plan.reduces[0], job_->group(0)).integer);
  return true;
}

void CountRun::Note(bool done) {
  if (job_ == nullptr) return heat_.Note(*scan_, done, 0);
  heat_.Note(job_->scan(), {job_->stats().rows, place_}, done);
}

bool CountRun::PullCells(uint64_t cells) {
  if (job_ != nullptr) return PullJob(cells);
  scan_->SetBudget(cells);
  for (;;) {
    switch (scan_->Next()) {
      case ScanStep::kRow:
        ++rows_;
        group_known_ = false;
        if (by_ == CountBy::kRows) {
          ++count_;
          // One live cell is enough for the row to count.
          scan_->SkipRow();
        }
        break;
      case ScanStep::kCell:
        if (by_ == CountBy::kGroups) CountGroup(scan_->cell());
        if (by_ == CountBy::kCells || (by_ == CountBy::kColumns && scan_->cell().column_begins)) {
          ++count_;
        }
        break;
      case ScanStep::kPause:
        CELLAR_ASSERT(cells != kUnlimited);
        return false;
      case ScanStep::kEnd:
        return true;
    }
  }
}

}  // namespace cellar
