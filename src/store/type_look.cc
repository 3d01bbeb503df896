// See type_look.h.
#include "store/type_look.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/value_convert.h"

namespace cellar {
namespace {

std::string RowText(const Table& table, const TypeWalk::Cell& cell) {
  std::string text;
  const bool decoded = table.schema().key.Decode(cell.row_key, &text);
  CELLAR_ASSERT(decoded);
  return Quote(text);
}

std::string ColumnText(const FamilySchema& family, const TypeWalk::Cell& cell) {
  std::string text = family.name + ":";
  const bool decoded = family.order.Decode(cell.qualifier, &text);
  CELLAR_ASSERT(decoded);
  return Quote(text);
}

}  // namespace

std::string StuckText(const Table& table, const FamilySchema& family, const TypeWalk::Cell& cell) {
  return "row " + RowText(table, cell) + ": column " + ColumnText(family, cell) + " holds " +
         Quote(ValueText(cell.value.type, cell.value.stored)) + ", no " +
         std::string(ValueTypeName(cell.wanted.type));
}

TypeLook::TypeLook(uint32_t family_id, Asks asks, Others others)
    : family_id_(family_id),
      asks_(asks),
      others_(others),
      walk_(std::make_unique<TypeWalk>(family_id)) {}

void TypeLook::Restart() {
  walk_ = std::make_unique<TypeWalk>(family_id_);
  row_walk_.reset();
  changed_.clear();
  round_.clear();
  changed_bytes_ = 0;
  round_bytes_ = 0;
  round_cells_ = 0;
  last_round_cells_ = 0;
  walk_owed_ = 0;
  rounds_ = 0;
  gives_up_ = false;
  has_found_ = false;
  first_ = {};
  stuck_.clear();
  stuck_bytes_ = 0;
  more_stuck_ = {};
}

void TypeLook::EndRecord(Table& table) {
  if (record_ != 0) table.watches().EndRecord(std::exchange(record_, 0));
}

// Rows that have changed behind the walk since the last slice. False if too many have, or nobody
// knows which, or all of them have gone (TRUNCATE).
bool TypeLook::TakeChanges(Table& table, const FamilySchema& family) {
  if (others_ == Others::kWait) return true;
  const uint64_t tree_id = table.schema().groups[family.group].tree_id;
  if (std::exchange(tree_id_, tree_id) != tree_id) EndRecord(table);
  if (record_ == 0) {
    record_ = table.watches().Record();
    return false;
  }
  std::optional<std::vector<std::string>> rows = table.watches().TakeRecord(record_);
  if (!rows) {
    EndRecord(table);
    record_ = table.watches().Record();
    return false;
  }
  for (std::string& row : *rows) {
    if (!walk_->HasPassed(row)) continue;
    const size_t bytes = row.size() + kBytesOfRow;
    if (changed_.insert(std::move(row)).second) changed_bytes_ += bytes;
  }
  return true;
}

void TypeLook::BeginRound() {
  CELLAR_ASSERT(round_.empty());
  CELLAR_ASSERT(round_cells_ == 0);
  round_.swap(changed_);
  round_bytes_ = std::exchange(changed_bytes_, 0);
  if (walk_->at_end()) ++rounds_;
}

// If one is under way: each of its rows has counted one at least.
void TypeLook::EndRound() {
  CELLAR_ASSERT(round_bytes_ == 0);
  if (round_cells_ == 0) return;
  last_round_cells_ = std::exchange(round_cells_, 0);
  if (!walk_->at_end()) walk_owed_ = last_round_cells_;
}

// Is there a row to be looked at again now? Then row_walk_ is of it.
bool TypeLook::LooksAgain() {
  while (row_walk_ == nullptr) {
    if (round_.empty()) {
      EndRound();
      if (changed_.empty()) return false;
      if (!walk_->at_end() && (walk_owed_ > 0 || !is_full())) return false;
      gives_up_ = rounds_ >= kRoundsEnd;
      if (gives_up_) return false;
      BeginRound();
    }
    std::string row = std::move(round_.extract(round_.begin()).value());
    const size_t bytes = row.size() + kBytesOfRow;
    round_bytes_ -= bytes;
    Forget(row);
    // The rest of it is still to come: it is looked at as a whole behind that.
    if (walk_->IsIn(row)) {
      ++round_cells_;
      if (changed_.insert(std::move(row)).second) changed_bytes_ += bytes;
      continue;
    }
    row_walk_ = std::make_unique<TypeWalk>(family_id_, row);
  }
  return true;
}

bool TypeLook::Step(Table& table, const FamilySchema& after, const TypeChange& change,
                    int64_t now_micros, uint64_t cells_max) {
  if (!TakeChanges(table, after)) Restart();
  if (is_overfull()) gives_up_ = true;
  const TypeWalk::Visitor visit = [&](const TypeWalk::Cell& cell) {
    if (!rows_ || rows_->Contains(cell.row_key)) Note(table, after, cell);
  };
  uint64_t cells_left = cells_max;
  while (!has_refused() && !gives_up_) {
    const bool again = LooksAgain();
    if (gives_up_ || (!again && walk_->at_end())) break;
    const bool at_once = is_at_once();
    if (cells_left == 0 && !at_once) return false;
    TypeWalk& walk = again ? *row_walk_ : *walk_;
    const uint64_t asked = at_once ? kUnlimited : cells_left;
    const uint64_t looked = walk.Step(table, change, now_micros, asked, visit);
    // One more, so that many rows that have nothing of the family end the slice as well.
    const uint64_t cells = 1 + looked;
    if (cells_left != kUnlimited) cells_left -= std::min(cells_left, cells);
    if (again) {
      round_cells_ += cells;
    } else {
      walk_owed_ -= std::min(walk_owed_, cells);
    }
    const bool walk_ends = walk.at_end();
    if (again && walk_ends) row_walk_.reset();
    // It has gone over its bytes.
    if (asked != kUnlimited && looked < asked && !walk_ends) return false;
  }
  rounds_ = 0;
  return true;
}

// --- what is found

void TypeLook::Note(const Table& table, const FamilySchema& after, const TypeWalk::Cell& cell) {
  if (!std::exchange(has_found_, true) && asks_ == Asks::kAny) {
    first_ = {1, std::string(cell.row_key),
              "type " + std::string(ValueTypeName(cell.value.type)) + " (row " +
                  RowText(table, cell) + ", column " + ColumnText(after, cell) + ")"};
  }
  if (asks_ == Asks::kAny) return;
  if (ConvertValue(cell.value.type, cell.value.stored, cell.wanted.type, &converted_)) return;
  auto row = stuck_.find(cell.row_key);
  if (row == stuck_.end() && stuck_bytes_ < kStuckBytesMax) {
    row = stuck_.emplace(cell.row_key, StuckInRow{0, StuckText(table, after, cell)}).first;
    stuck_bytes_ += kBytesOfRow + row->first.size() + row->second.text.size();
  }
  StuckInRow& stuck = row == stuck_.end() ? more_stuck_ : row->second;
  if (stuck.cells++ == 0 && stuck.text.empty()) stuck.text = StuckText(table, after, cell);
}

void TypeLook::Forget(std::string_view row_key) {
  const auto row = stuck_.find(row_key);
  if (row == stuck_.end()) return;
  stuck_bytes_ -= kBytesOfRow + row->first.size() + row->second.text.size();
  stuck_.erase(row);
}

FoundCells TypeLook::found() const {
  if (asks_ == Asks::kAny) return first_;
  FoundCells found{more_stuck_.cells, {}, more_stuck_.text};
  for (const auto& [row, stuck] : stuck_) found.cells += stuck.cells;
  if (!stuck_.empty()) {
    found.row_key = stuck_.begin()->first;
    found.text = stuck_.begin()->second.text;
  }
  return found;
}

Status TypeLook::Refusal(const FamilySchema& after) const {
  if (gives_up_ && !has_refused()) {
    return Status::Error(ErrorCode::kTryAgain, "rows of family " + Quote(after.name) +
                                                   " change faster than they can be looked at");
  }
  return RefusalOf(asks_, after.name, found());
}

Status TypeLook::RefusalOf(Asks asks, std::string_view family, const FoundCells& found) {
  if (found.cells == 0) return Status::Ok();
  if (asks == Asks::kAny) {
    return Status::Error(ErrorCode::kWrongType, "family " + Quote(family) + " has cells of " +
                                                    found.text +
                                                    ": CONVERT rewrites them, KEEP leaves them");
  }
  const bool one = found.cells == 1;
  return Status::Error(ErrorCode::kWrongType,
                       found.text + ": " + FormatUint64(found.cells) + (one ? " cell" : " cells") +
                           " cannot be converted; CONVERT SKIP leaves " + (one ? "it" : "those"));
}

}  // namespace cellar
