// What a feed tells with OLD and EXPIRED: cells that were there, as a record holds them behind the
// ops that have met them (engine/state/pre_images.h).
//
//   OLD       a put has the column's newest live version before it; a deletion is one `del` a cell
//   EXPIRED   what retention had dropped is `del ... by expired` when an op removes it
//
// Of a part that was taken down before any of it was done the lists say what was there then. What
// its own ops have made of the columns since is followed here: puts, and folds.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "engine/keys/hyperloglog.h"
#include "engine/keys/timestamp.h"
#include "store/history/feed_decoder.h"

namespace cellar {
namespace {

Status Unreadable() {
  return Status::Error(ErrorCode::kCorruption, "the log has old cells that cannot be read");
}

}  // namespace

// Lists stand behind their ops: reads on until the next ones, which are of the part at hand, some
// ops at a time. What comes before them and is in no part was not told.
Status FeedDecoder::LookAhead() {
  constexpr int kOpsAtOnce{64};
  DecodedOp op;
  for (int i = 0; i < kOpsAtOnce; ++i) {
    if (!ahead_.Next(&op)) {
      part_ = {.begin = UINT64_MAX, .end = UINT64_MAX, .lists = {}};
      return ahead_.status();
    }
    if (op.op == MutationOp::kStep || op.op == MutationOp::kTable || op.op == MutationOp::kRow)
      continue;
    if (op.op != MutationOp::kPreImages) {
      ++ahead_changes_;
      continue;
    }
    const uint64_t ops = op.id >> 1;
    if (ops > ahead_changes_) return Unreadable();
    if (ahead_changes_ <= change_) continue;  // of nothing
    part_ = {.begin = ahead_changes_ - ops,
             .end = ahead_changes_,
             .together = (op.id & 1) == static_cast<uint64_t>(PreImages::Taken::kTogether),
             .lists = op.first};
    if (part_.begin < change_) return Unreadable();
    next_list_.reset();
    part_puts_.clear();
    part_folds_.clear();
    return Status::Ok();
  }
  work_ += kOpsAtOnce / 8;
  return Status::Ok();
}

bool FeedDecoder::NextOld(OldList* list, OldCell* cell) {
  if (list->cells == 0 || list->bytes.empty()) return false;
  --list->cells;
  cell->kind = static_cast<OldCellKind>(list->bytes.front());
  list->bytes.remove_prefix(1);
  return GetLengthPrefixed(&list->bytes, &cell->key) &&
         GetLengthPrefixed(&list->bytes, &cell->value);
}

// The next change of the record is at hand. Lists stand in the order of their changes.
Status FeedDecoder::NextChange() {
  if (!feed_.tells_pre_images()) return Status::Ok();
  CELLAR_ASSERT(skip_cells_ == 0);
  const uint64_t change = change_++;
  list_ = {};
  in_part_ = change >= part_.begin && change < part_.end;
  if (!in_part_) return Status::Ok();
  if (!next_list_ && !part_.lists.empty()) {
    NextList next;
    if (!GetVarint64(&part_.lists, &next.change) || !GetVarint64(&part_.lists, &next.cells) ||
        next.change >= part_.end - part_.begin || next.change < change - part_.begin) {
      return Unreadable();
    }
    next_list_ = next;
  }
  if (!next_list_ || next_list_->change != change - part_.begin) return Status::Ok();
  list_ = {next_list_->cells, part_.lists};
  skip_cells_ = next_list_->cells;
  next_list_.reset();
  return Status::Ok();
}

Status FeedDecoder::SkipOld() {
  constexpr uint64_t kCellsAtOnce{64};
  OldList list{std::min(skip_cells_, kCellsAtOnce), part_.lists};
  const uint64_t cells = list.cells;
  OldCell cell;
  while (list.cells > 0) {
    if (!NextOld(&list, &cell)) return Unreadable();
  }
  part_.lists = list.bytes;
  skip_cells_ -= cells;
  work_ += cells / 8;
  return Status::Ok();
}

std::string FeedDecoder::ColumnKey(const FamilySchema& family, std::string_view qualifier) const {
  std::string key(row_key_);
  PutFamilyId(&key, family.id);
  key += qualifier;
  return key;
}

// --- puts

void FeedDecoder::NotePutOfPart(const FamilySchema& family, const DecodedOp& op) {
  if (!in_part_ || !part_.together) return;
  const std::string column = ColumnKey(family, op.first);
  part_puts_[column].insert_or_assign(op.number, std::string(op.second));
  if (!part_folds_.empty()) part_folds_.erase({column, op.number});
}

void FeedDecoder::NoteFoldOfPart(const FamilySchema& family, const DecodedOp& op) {
  if (!in_part_ || !part_.together) return;
  const std::string column = ColumnKey(family, op.first);
  if (const auto puts = part_puts_.find(column); puts != part_puts_.end()) {
    // Of the part's own making, or gone: then the fold begins anew.
    const auto put = puts->second.find(op.number);
    if (put != puts->second.end()) return FoldInto(op.op, op.second, &put->second);
  }
  part_folds_[{column, op.number}].emplace_back(op.op, op.second);
}

// As Table::FoldHll does it.
void FeedDecoder::FoldInto(MutationOp op, std::string_view input, std::string* cell_value) {
  CellValue cell;
  std::string state;
  const bool merges = op == MutationOp::kMergeState;
  if (DecodeCellHead(*cell_value, &cell) && cell.type == ValueType::kHll) {
    const bool changed = merges ? HllMerge(cell.stored, input, &state)
                                : HllAdd(cell.stored, HllInputOf(input), &state);
    if (!changed) return;
  } else {
    cell = {.type = ValueType::kHll, .expiry_micros = kNoExpiry, .stored = {}};
    state = merges ? std::string(input) : HllStateOf(HllInputOf(input));
  }
  cell.stored = state;
  cell_value->clear();
  PutCellValue(cell_value, cell);
}

std::string_view FeedDecoder::FoldedSince(const std::string& column, uint64_t timestamp,
                                          std::string_view value) {
  if (part_folds_.empty() || value.empty()) return value;
  const auto folds = part_folds_.find({column, timestamp});
  if (folds == part_folds_.end()) return value;
  std::string folded(value);
  for (const auto& [op, input] : folds->second) FoldInto(op, input, &folded);
  folded_ = std::move(folded);
  return folded_;
}

void FeedDecoder::AddOld(const FamilySchema& family, const DecodedOp& op) {
  if (!in_part_) return;
  uint64_t newest = 0;
  std::string_view value;
  const std::string column = ColumnKey(family, op.first);
  const auto puts = part_puts_.find(column);
  const bool has_puts = puts != part_puts_.end();
  OldList list = OldOfChange();
  OldCell cell;
  while (NextOld(&list, &cell)) {
    int64_t timestamp = 0;
    if (cell.kind != OldCellKind::kNewest || !LoadTimestamp(cell.key, &timestamp)) continue;
    if (has_puts && puts->second.contains(static_cast<uint64_t>(timestamp))) continue;
    newest = static_cast<uint64_t>(timestamp);
    value = FoldedSince(column, newest, cell.value);
  }
  // Puts of the same part, that the list does not know. What is gone has no value.
  if (has_puts) {
    for (const auto& [timestamp, put] : puts->second) {
      CellValue made;
      if (!DecodeCellHead(put, &made) || (!value.empty() && timestamp < newest)) continue;
      if (family.policy.Drops(1, static_cast<int64_t>(timestamp), made.expiry_micros, step_micros_))
        continue;
      newest = timestamp;
      value = put;
    }
  }
  CellValue old;
  if (value.empty() || !DecodeCellValue(value, &plain_, &old)) return;
  AddValue(old, {}, "old");
  Add("oldts", FormatUint64(newest));
  Add("oldtype", ValueTypeName(old.type));
}

// --- what is gone

void FeedDecoder::TellGone(const FamilySchema& family, std::string_view qualifier,
                           uint64_t timestamp, const OldCell& cell) {
  if (!BeginChange("del")) return;
  AddPlace(family, qualifier, timestamp);
  CellValue value;
  if (feed_.old && DecodeCellValue(cell.value, &plain_, &value)) AddValue(value, "type", "value");
  if (cell.kind == OldCellKind::kReclaimed) Add("by", "expired");
}

// Of kReplace and kReclaimColumn.
void FeedDecoder::TellReclaimed(const FamilySchema& family, const DecodedOp& op) {
  if (!feed_.expired || !in_part_) return;
  spill_ = {SpillKind::kReclaimed, op, list_, {}, &family, {}};
}

// Of a part that was taken down before any of it was done: what its puts have made of the column,
// and without a value what is gone.
Status FeedDecoder::TellReclaimedCell(OldCell cell) {
  if (cell.kind == OldCellKind::kNewest) spill_.newest = cell.value;
  if (cell.kind != OldCellKind::kReclaimed) return Status::Ok();
  if (cell.value.empty()) cell.value = spill_.newest;  // it is the same cell
  int64_t timestamp = 0;
  if (!LoadTimestamp(cell.key, &timestamp)) return Unreadable();
  const auto at = static_cast<uint64_t>(timestamp);
  const DecodedOp& op = spill_.op;
  if (!part_.together) {
    TellGone(*spill_.family, op.first, at, cell);
    return Status::Ok();
  }
  const std::string column = ColumnKey(*spill_.family, op.first);
  std::map<uint64_t, std::string>& puts = part_puts_[column];
  if (puts.contains(at)) return Status::Ok();
  cell.value = FoldedSince(column, at, cell.value);
  TellGone(*spill_.family, op.first, at, cell);
  puts.emplace(at, std::string());
  part_folds_.erase({column, at});
  return Status::Ok();
}

void FeedDecoder::TellRemoved(const DecodedOp& op, std::string_view prefix) {
  spill_ = {SpillKind::kRemoved, op, list_, std::string(prefix), nullptr, {}};
}

Status FeedDecoder::SpillOn() {
  ++work_;
  if (spill_.list.cells == 0) return EndSpill();
  OldCell cell;
  if (!NextOld(&spill_.list, &cell)) return Unreadable();
  if (spill_.kind == SpillKind::kReclaimed) return TellReclaimedCell(cell);
  const bool wanted = cell.kind == OldCellKind::kReclaimed ? feed_.expired : feed_.old;
  return wanted ? TellCell(cell, spill_.prefix) : Status::Ok();
}

// What the op tells behind its cells: with OLD a deletion has nothing more to tell; a put has that
// it has displaced another one of its part.
Status FeedDecoder::EndSpill() {
  const bool removed = spill_.kind == SpillKind::kRemoved;
  spill_.kind = SpillKind::kNone;
  const DecodedOp& op = spill_.op;
  if (removed) return feed_.old ? Status::Ok() : TellDeletion(op);
  if (op.op != MutationOp::kReplace || !part_.together) return Status::Ok();
  std::map<uint64_t, std::string>& puts = part_puts_[ColumnKey(*spill_.family, op.first)];
  const auto put = puts.find(op.replaced);
  if (put == puts.end() || put->second.empty()) return Status::Ok();
  const std::string value = std::exchange(put->second, std::string());
  TellGone(*spill_.family, op.first, op.replaced, {OldCellKind::kReclaimed, {}, value});
  return Status::Ok();
}

Status FeedDecoder::TellCell(const OldCell& cell, std::string_view prefix) {
  std::string key(prefix);
  key += cell.key;
  const std::string_view whole(key);
  const size_t row_bytes = table_->schema.key.EncodedSize(whole);
  uint32_t id = 0;
  const size_t id_bytes = row_bytes == 0 ? 0 : DecodeFamilyId(whole.substr(row_bytes), &id);
  if (id_bytes == 0) return Unreadable();
  const auto family = table_->families.find(id);
  if (family == table_->families.end() || !family->second.covered) return Status::Ok();
  const std::string_view rest = whole.substr(row_bytes + id_bytes);
  const size_t qualifier_bytes = family->second.schema->order.EncodedSize(rest);
  int64_t timestamp = 0;
  if (qualifier_bytes == 0 || !LoadTimestamp(rest.substr(qualifier_bytes), &timestamp))
    return Unreadable();
  if (row_key_ != whole.substr(0, row_bytes)) {
    old_row_.assign(whole.substr(0, row_bytes));
    row_key_ = old_row_;
    row_ = Row::kUnknown;
  }
  if (!RowMatters()) return Status::Ok();
  TellGone(*family->second.schema, rest.substr(0, qualifier_bytes),
           static_cast<uint64_t>(timestamp), cell);
  return Status::Ok();
}

}  // namespace cellar
