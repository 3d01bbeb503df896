// What a feed tells with OLD and EXPIRED: cells that were there, as a record holds them behind the
// ops that have met them (engine/state/old_cells.h).
//
//   OLD       a put has the column's newest live version before it; a deletion is one `del` a cell
//   EXPIRED   what retention had dropped is `del ... by expired` when an op removes it
#include <utility>

#include "base/text/number.h"
#include "engine/keys/timestamp.h"
#include "store/history/feed_decoder.h"

namespace cellar {
namespace {

Status Unreadable() {
  return Status::Error(ErrorCode::kCorruption, "the log has old cells that cannot be read");
}

}  // namespace

// One look through the record: lists stand behind their ops.
Status FeedDecoder::FindOldCells(std::string_view payload) {
  old_.clear();
  parts_.clear();
  change_ = 0;
  part_at_ = 0;
  part_ = nullptr;
  part_puts_.clear();
  MutationReader reader(payload);
  int64_t stamp = 0;
  (void)reader.ReadStamp(&stamp);
  DecodedOp op;
  uint64_t changes = 0;
  while (reader.Next(&op)) {
    if (op.op == MutationOp::kStep || op.op == MutationOp::kTable || op.op == MutationOp::kRow)
      continue;
    if (op.op != MutationOp::kOldCells) {
      ++changes;
      continue;
    }
    const uint64_t ops = op.id >> 1;
    if (ops > changes) return Unreadable();
    const bool together = (op.id & 1) == static_cast<uint64_t>(OldCells::Taken::kTogether);
    // What comes before it and is in no part was not told.
    if (ops < changes && (parts_.empty() || parts_.back().end < changes - ops))
      parts_.push_back({changes - ops, false, false});
    parts_.push_back({changes, together, true});
    std::string_view rest = op.first;
    while (!rest.empty()) {
      uint64_t index = 0;
      OldList list;
      if (!GetVarint64(&rest, &index) || !GetVarint64(&rest, &list.cells) || index >= ops)
        return Unreadable();
      const std::string_view begin = rest;
      OldList skipped{list.cells, rest};
      OldCell cell;
      while (skipped.cells > 0) {
        if (!NextOld(&skipped, &cell)) return Unreadable();
      }
      rest = skipped.bytes;
      list.bytes = begin.substr(0, begin.size() - rest.size());
      old_.emplace(changes - ops + index, list);
    }
  }
  return reader.status();
}

bool FeedDecoder::NextOld(OldList* list, OldCell* cell) {
  if (list->cells == 0 || list->bytes.empty()) return false;
  --list->cells;
  cell->kind = static_cast<OldCellKind>(list->bytes.front());
  list->bytes.remove_prefix(1);
  return GetLengthPrefixed(&list->bytes, &cell->key) &&
         GetLengthPrefixed(&list->bytes, &cell->value);
}

// The next change of the record is at hand.
void FeedDecoder::NextChange() {
  if (!feed_.tells_old_cells()) return;
  const uint64_t change = change_++;
  while (part_at_ < parts_.size() && parts_[part_at_].end <= change) {
    ++part_at_;
    part_puts_.clear();
  }
  const bool is_told = part_at_ < parts_.size() && parts_[part_at_].told;
  part_ = is_told ? &parts_[part_at_] : nullptr;
}

FeedDecoder::OldList FeedDecoder::OldOfChange() const {
  const auto found = old_.find(change_ - 1);
  return found == old_.end() ? OldList{} : found->second;
}

std::string FeedDecoder::ColumnKey(const FamilySchema& family, std::string_view qualifier) const {
  std::string key(row_key_);
  PutFamilyId(&key, family.id);
  key += qualifier;
  return key;
}

// --- puts

void FeedDecoder::NotePutOfPart(const FamilySchema& family, const DecodedOp& op) {
  if (part_ == nullptr || !part_->together) return;
  part_puts_[ColumnKey(family, op.first)].insert_or_assign(op.number, std::string(op.second));
}

void FeedDecoder::AddOld(const FamilySchema& family, const DecodedOp& op) {
  if (part_ == nullptr) return;
  uint64_t newest = 0;
  std::string_view value;
  const auto puts = part_puts_.find(ColumnKey(family, op.first));
  const bool has_puts = puts != part_puts_.end();
  OldList list = OldOfChange();
  OldCell cell;
  while (NextOld(&list, &cell)) {
    int64_t timestamp = 0;
    if (cell.kind != OldCellKind::kNewest || !LoadTimestamp(cell.key, &timestamp)) continue;
    if (has_puts && puts->second.contains(static_cast<uint64_t>(timestamp))) continue;
    newest = static_cast<uint64_t>(timestamp);
    value = cell.value;
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
  if (!Begin("del", table_->name)) return;
  AddPlace(family, qualifier, timestamp);
  CellValue value;
  if (feed_.old && DecodeCellValue(cell.value, &plain_, &value)) AddValue(value, "type", "value");
  if (cell.kind == OldCellKind::kReclaimed) Add("by", "expired");
}

// Of kReplace and kReclaimColumn.
Status FeedDecoder::TellReclaimed(const FamilySchema& family, const DecodedOp& op) {
  if (!feed_.expired || part_ == nullptr) return Status::Ok();
  OldList list = OldOfChange();
  OldCell cell;
  // Of a part that was taken down before any of it was done: what its puts have made of the column,
  // and without a value what is gone.
  std::map<uint64_t, std::string>* const puts =
      part_->together ? &part_puts_[ColumnKey(family, op.first)] : nullptr;
  std::string_view newest;
  while (NextOld(&list, &cell)) {
    int64_t timestamp = 0;
    if (cell.kind == OldCellKind::kNewest) newest = cell.value;
    if (cell.kind != OldCellKind::kReclaimed) continue;
    if (cell.value.empty()) cell.value = newest;  // it is the same cell
    if (!LoadTimestamp(cell.key, &timestamp)) return Unreadable();
    const auto at = static_cast<uint64_t>(timestamp);
    if (puts != nullptr && puts->contains(at)) continue;
    TellGone(family, op.first, at, cell);
    if (puts != nullptr) puts->emplace(at, std::string());
  }
  if (op.op != MutationOp::kReplace || puts == nullptr) return Status::Ok();
  const auto put = puts->find(op.replaced);
  if (put == puts->end() || put->second.empty()) return Status::Ok();
  const std::string value = std::exchange(put->second, std::string());
  TellGone(family, op.first, op.replaced, {OldCellKind::kReclaimed, {}, value});
  return Status::Ok();
}

Status FeedDecoder::TellRemoved(std::string_view prefix) {
  OldList list = OldOfChange();
  OldCell cell;
  while (NextOld(&list, &cell)) {
    const bool wanted = cell.kind == OldCellKind::kReclaimed ? feed_.expired : feed_.old;
    if (wanted) RETURN_IF_ERROR(TellCell(cell, prefix));
  }
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
