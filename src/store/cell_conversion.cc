// See cell_conversion.h.
#include "store/cell_conversion.h"

#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/keys/value_convert.h"
#include "store/store.h"

namespace cellar {

CellConversion::CellConversion(Store& store, uint32_t family_id, OtherCells others,
                               const FamilyAccess* rights)
    : store_(store), family_id_(family_id), others_(others), rights_(rights), walk_(family_id) {
  CELLAR_ASSERT(others == OtherCells::kConvert || others == OtherCells::kSkip);
}

Status CellConversion::ChangedAgain(const FamilySchema& family, uint64_t rows) {
  return Status::Error(ErrorCode::kErr, "the types of family " + Quote(family.name) +
                                            " were changed again, after " + FormatUint64(rows) +
                                            " rows had been converted");
}

Status CellConversion::Left(const FoundCells& stuck) {
  return Status::Error(ErrorCode::kWrongType,
                       stuck.text + ", since it was written meanwhile: the type has changed, and " +
                           FormatUint64(stuck.cells) + " cells were left");
}

bool CellConversion::PrepareIndexes(Table* table, uint64_t rows_max) {
  if (!table->has_indexes() || !table->indexes()->MustBeWhole()) return true;
  (void)store_.BuildIndexes(*table, rows_max, Store::kIndexMicrosUnlimited);
  return !table->indexes()->MustBeWhole();
}

Status CellConversion::Step(Table* table, const FamilySchema& family, const TypeChange& change,
                            uint64_t cells_max) {
  CELLAR_ASSERT(family.id == family_id_);
  CELLAR_ASSERT(!at_end());
  store_.PrepareIndexesForWrite(*table);
  rewrites_.clear();
  rewritten_.clear();
  if (rewritten_.capacity() > 4 * TypeWalk::kSliceBytesMax) rewritten_ = {};
  (void)walk_.Step(*table, change, store_.now_micros_, cells_max, [&](const TypeWalk::Cell& cell) {
    if (!rows_ || rows_->Contains(cell.row_key)) Convert(*table, family, cell);
  });
  return RewriteAll(table);
}

void CellConversion::Convert(const Table& table, const FamilySchema& family,
                             const TypeWalk::Cell& cell) {
  if (!ConvertValue(cell.value.type, cell.value.stored, cell.wanted.type, &converted_)) {
    if (stuck_.cells++ == 0) {
      stuck_.row_key = cell.row_key;
      stuck_.text = StuckText(table, family, cell);
    }
    return;
  }
  CellValue value{cell.wanted.type, 0, cell.value.expiry_micros, converted_};
  const bool packs = Packs(family.compression) && IsTextType(value.type);
  const auto packed = packs ? packer_.Pack(family.compression, converted_) : std::nullopt;
  if (packed) {
    value.packed = kCellCompressed;
    value.stored = *packed;
  }
  const size_t begin = rewritten_.size();
  rewritten_ += cell.row_key;
  rewritten_ += cell.qualifier;
  const size_t value_at = rewritten_.size();
  PutCellValue(&rewritten_, value);
  rewrites_.push_back({begin, cell.row_key.size(), cell.qualifier.size(),
                       rewritten_.size() - value_at, cell.timestamp});
}

// One step of the log; but if an index refuses it each row is one, so that one is refused alone.
Status CellConversion::RewriteAll(Table* table) {
  if (rewrites_.empty()) return Status::Ok();
  if (!MayBeRefused(*table)) {
    AddRows(*table, rewrites_);
    return Committed(store_.CommitMutation(table, rewrites_.size()));
  }
  Status refusal;
  RETURN_IF_ERROR(CommitUnlessRefused(table, rewrites_, &refusal));
  if (refusal.ok()) return refusal;
  for (size_t at = 0; at < rewrites_.size();) {
    const Rewrites row = RowFrom(at);
    at += row.size();
    RETURN_IF_ERROR(CommitUnlessRefused(table, row, &refusal));
    if (refusal.ok()) continue;
    const bool is_passed_over =
        others_ == OtherCells::kSkip &&
        (refusal.code() == ErrorCode::kNotUnique || refusal.code() == ErrorCode::kTooLarge);
    if (!is_passed_over) return refusal;
  }
  return Status::Ok();
}

// The cells of the row whose first one is at `at`.
CellConversion::Rewrites CellConversion::RowFrom(size_t at) const {
  size_t end = at + 1;
  while (end < rewrites_.size() && RowOf(rewrites_[end]) == RowOf(rewrites_[at])) ++end;
  return Rewrites(rewrites_).subspan(at, end - at);
}

bool CellConversion::MayBeRefused(const Table& table) const {
  if (!table.has_indexes()) return false;
  for (size_t at = 0; at < rewrites_.size();) {
    const Rewrites row = RowFrom(at);
    at += row.size();
    size_t bytes = 0;
    for (const Rewrite& cell : row) bytes += cell.value_bytes;
    if (table.indexes()->MayRefuse(row.front().row_bytes, bytes)) return true;
  }
  return false;
}

// Makes the mutation of these cells, which are whole rows of rewrites_.
void CellConversion::AddRows(const Table& table, Rewrites cells) {
  MutationBuilder& mutation = store_.mutation_;
  store_.BeginMutation();
  rows_added_ = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    const Rewrite& cell = cells[i];
    if (i == 0 || RowOf(cell) != RowOf(cells[i - 1])) {
      if (i > 0) mutation.Rewrites(MutationBuilder::Edge::kEnd);
      mutation.Row(table.id(), RowOf(cell));
      mutation.Rewrites(MutationBuilder::Edge::kBegin);
      ++rows_added_;
    }
    const std::string_view parts = std::string_view(rewritten_).substr(cell.begin);
    mutation.Put(family_id_, parts.substr(cell.row_bytes, cell.qualifier_bytes), cell.timestamp,
                 parts.substr(cell.row_bytes + cell.qualifier_bytes, cell.value_bytes));
  }
  mutation.Rewrites(MutationBuilder::Edge::kEnd);
}

Status CellConversion::Committed(Status status) {
  if (status.ok()) rows_rewritten_ += rows_added_;
  return status;
}

// As CommitMutation, but an index may refuse what rows would become: *refusal, and nothing was
// done. It can only tell when the change is there: so it is made on trial, and taken back.
Status CellConversion::CommitUnlessRefused(Table* table, Rewrites cells, Status* refusal) {
  AddRows(*table, cells);
  RowResolver::Outcome outcome;
  *refusal = store_.ApplyOrRefuse(*table, rights_, &outcome);
  if (!refusal->ok()) return Status::Ok();
  table->RollBackTo(*outcome.checkpoint);
  RETURN_IF_ERROR(Committed(store_.CommitMutation(table, cells.size())));
  table->indexes()->ForgetRefusals();
  return Status::Ok();
}

}  // namespace cellar
