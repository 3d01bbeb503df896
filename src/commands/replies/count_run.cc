// See count_run.h.
#include "commands/replies/count_run.h"

#include <string_view>
#include <utility>

#include "base/assert.h"
#include "commands/replies/scan_run.h"

namespace cellar {

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
  heat_.Note(*scan_, done, 0);
  return done;
}

bool CountRun::PullOnWorker(uint64_t cells) {
  const bool done = PullCells(cells);
  if (done)
    ended_beside_ = true;
  else
    heat_.Keep(*scan_, 0);
  return done;
}

void CountRun::RecordHeat() {
  if (!std::exchange(ended_beside_, false)) return;
  heat_.TellKept();
  heat_.Note(*scan_, true, 0);
}

bool CountRun::PullCells(uint64_t cells) {
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
