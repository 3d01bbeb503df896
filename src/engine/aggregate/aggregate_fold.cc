// See aggregate_fold.h.
#include "engine/aggregate/aggregate_fold.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/keys/key_component.h"
#include "engine/keys/timestamp.h"
#include "engine/table/version_walk.h"

namespace cellar {
namespace {

void AppendBigEndian16(uint64_t number, std::string* to) {
  to->push_back(static_cast<char>(number >> 8));
  to->push_back(static_cast<char>(number));
}

void AppendBigEndian64(uint64_t number, std::string* to) {
  char bytes[8];
  StoreLittleEndian(bytes, __builtin_bswap64(number));
  to->append(bytes, sizeof(bytes));
}

// The value type in which a numeric component is read.
ValueType NumberTypeOf(ComponentType type) {
  switch (type) {
    case ComponentType::kU8:
      return ValueType::kU8;
    case ComponentType::kU16:
      return ValueType::kU16;
    case ComponentType::kU32:
      return ValueType::kU32;
    case ComponentType::kI8:
      return ValueType::kI8;
    case ComponentType::kI16:
      return ValueType::kI16;
    case ComponentType::kI32:
      return ValueType::kI32;
    case ComponentType::kI64:
      return ValueType::kI64;
    case ComponentType::kF32:
      return ValueType::kF32;
    case ComponentType::kF64:
      return ValueType::kF64;
    default:
      return ValueType::kU64;  // recno too
  }
}

}  // namespace

AggregateFold::AggregateFold(const AggregatePlan& plan, const ReadView& view,
                             AggregateGroups* groups)
    : plan_(plan), groups_(groups), columns_(plan.terms.size()), row_parts_(plan.terms.size()) {
  for (size_t i = 0; i < plan.terms.size(); ++i) {
    const PlannedTerm& term = plan.terms[i];
    if (term.kind == GroupTerm::Kind::kValue)
      columns_[i] = std::make_unique<ColumnAhead>(view, term.family, term.qualifier);
  }
}

void AggregateFold::Reattach(const ReadView& view) {
  for (const auto& column : columns_) {
    if (column != nullptr) column->Reattach(view);
  }
}

bool AggregateFold::WantsValues() const {
  return std::any_of(plan_.reduces.begin(), plan_.reduces.end(), [](const PlannedReduce& reduce) {
    return reduce.function != Reduce::Function::kRows &&
           reduce.function != Reduce::Function::kCount;
  });
}

bool AggregateFold::CountsRows() const {
  return std::any_of(plan_.reduces.begin(), plan_.reduces.end(), [](const PlannedReduce& reduce) {
    return reduce.function == Reduce::Function::kRows;
  });
}

void AggregateFold::FindTakers(size_t family, std::string_view qualifier,
                               std::vector<uint32_t>* takers) const {
  takers->clear();
  for (size_t i = 0; i < plan_.reduces.size(); ++i) {
    if (plan_.reduces[i].Takes(family, qualifier)) takers->push_back(static_cast<uint32_t>(i));
  }
}

bool AggregateFold::ColumnsAreAlike(size_t family) const {
  const PlannedFamily& planned = plan_.families[family];
  if (planned.text_counts && !planned.columns.empty()) return false;
  return std::none_of(plan_.reduces.begin(), plan_.reduces.end(), [&](const PlannedReduce& reduce) {
    return reduce.target == Reduce::Target::kColumn && reduce.family == family;
  });
}

// --- terms of the row

// The whole is refused when this slice is over, so it does not matter which group a cell is in that
// has no multiple.
void AggregateFold::AppendStepped(const NumberStep& step, ValueType type, std::string_view stored,
                                  std::string* part) {
  Number multiple;
  if (step.Floor(type, stored, &multiple)) [[likely]]
    return AppendNumberKey(multiple, false, part);
  groups_->Refuse(Status::Error(ErrorCode::kErr,
                                "a STEP that is not an integer of 64 bits makes doubles, and there "
                                "is an integer beyond 2^53: it would not stay exact"));
  AppendNullKey(part);
}

void AggregateFold::AppendValue(const PlannedTerm& term, size_t index) {
  std::string& part = row_parts_[index];
  const CellValue* const value = columns_[index]->Newest(row_key_);
  if (value == nullptr) return AppendNullKey(&part);
  if (value->type == ValueType::kF32 && !term.step) float32_mask_ |= uint32_t{1} << index;
  if (!term.step) {
    ValueBuffer buffer;
    const SeenValue seen = SeenOf(value->type, value->stored, &buffer);
    return AppendValueKey(seen.type, seen.stored, &part);
  }
  if (ClassOf(value->type) != ValueClass::kNumber) return AppendNullKey(&part);
  AppendStepped(*term.step, value->type, value->stored, &part);
}

// A part of a group's key, encoded so that groups sort by it. Without STEP it is what stands in the
// row's key already.
void AggregateFold::AppendPart(const PlannedTerm& term) {
  const size_t begin = plan_.key.ComponentsSize(row_key_, term.count);
  const size_t end = plan_.key.ComponentsSize(row_key_, term.count + 1);
  const std::string_view encoded = row_key_.substr(begin, end - begin);
  std::string& part = scratch_;
  part.clear();
  if (!term.step) {
    part.assign(encoded);
    return;
  }
  const ValueType type = NumberTypeOf(term.component);
  if (term.component == ComponentType::kRecno) {
    Number number;
    number.integer = term.step->FloorInteger(plan_.key.DecodeRecno(row_key_));
    AppendNumberKey(number, false, &part);
  } else {
    text_.clear();
    const bool decoded =
        DecodeComponentValue({term.component, term.descending}, type, encoded, &text_);
    CELLAR_ASSERT(decoded);
    AppendStepped(*term.step, type, text_, &part);
  }
  if (term.descending) Complement(&part, 0);
}

void AggregateFold::AppendBytes(const PlannedTerm& term) {
  text_.clear();
  const bool decoded = plan_.key.Decode(row_key_, &text_);
  CELLAR_ASSERT(decoded);
  if (text_.size() > term.count) text_.resize(term.count);
  scratch_.clear();
  AppendEscaped(text_, &scratch_);
  if (term.descending) Complement(&scratch_, 0);
}

void AggregateFold::AppendRowTerm(const PlannedTerm& term, size_t index) {
  std::string& part = row_parts_[index];
  part.clear();
  switch (term.kind) {
    case GroupTerm::Kind::kKey:
      part.assign(row_key_.substr(0, plan_.key.ComponentsSize(row_key_, term.count)));
      return;
    case GroupTerm::Kind::kPart:
      AppendPart(term);
      part.append(scratch_);
      return;
    case GroupTerm::Kind::kBytes:
      AppendBytes(term);
      part.append(scratch_);
      return;
    default:
      CELLAR_ASSERT(term.kind == GroupTerm::Kind::kValue);
      return AppendValue(term, index);
  }
}

// Terms that depend on the row alone are encoded once for all its cells; if no term depends on the
// cell, so is the whole key, and the group is looked up once.
void AggregateFold::MakeRow() {
  row_made_ = true;
  float32_mask_ = 0;
  for (size_t i = 0; i < plan_.terms.size(); ++i) {
    if (!plan_.terms[i].of_cell()) AppendRowTerm(plan_.terms[i], i);
  }
  if (plan_.groups_by_cell) return;
  key_.clear();
  for (const std::string& part : row_parts_) key_.append(part);
}

void AggregateFold::EnterGroup() {
  group_ = &groups_->Find(key_, float32_mask_);
  last_key_.assign(key_);
}

// --- terms of the cell

// Cells of one day come together mostly, and a step is looked for once.
int64_t AggregateFold::BeginOfStep(const TimeStep& step, int64_t timestamp_micros) {
  if (time_step_ != &step || timestamp_micros < time_piece_.from ||
      timestamp_micros >= time_piece_.until) {
    time_piece_ = step.Find(timestamp_micros);
    time_step_ = &step;
  }
  return time_piece_.begin;
}

void AggregateFold::NotePlace(size_t family, std::string_view qualifier, int64_t timestamp_micros) {
  if (plan_.wants_columns &&
      (place_row_ != row_ || place_.family != family || place_qualifier_ != qualifier)) {
    place_row_ = row_;
    place_qualifier_.assign(qualifier);
    ++place_.column;
  }
  place_.row_key = row_key_;
  place_.family = family;
  place_.qualifier = qualifier;
  place_.timestamp_micros = timestamp_micros;
}

// Terms of a cell, in the order of encoded keys; a text that other families encode otherwise is
// compared as text (as_text).
void AggregateFold::AppendCellTerm(const PlannedTerm& term, size_t family,
                                   std::string_view qualifier, int64_t timestamp_micros) {
  switch (term.kind) {
    case GroupTerm::Kind::kFamily:
      return AppendBigEndian16(family, &key_);
    case GroupTerm::Kind::kColumn:
      AppendBigEndian16(family, &key_);
      key_.append(qualifier);
      return;
    case GroupTerm::Kind::kQualifier: {
      const Order& order = plan_.families[family].order;
      const size_t count = std::min(term.count, order.components().size());
      const std::string_view first = qualifier.substr(0, order.ComponentsSize(qualifier, count));
      if (!term.as_text) {
        key_.append(first);
        return;
      }
      AppendEscaped(FirstComponentsText(order, first, count), &key_);
      return;
    }
    default: {
      CELLAR_ASSERT(term.kind == GroupTerm::Kind::kTime);
      const auto timestamp = static_cast<uint64_t>(timestamp_micros);
      const uint64_t begin =
          term.time_step ? static_cast<uint64_t>(BeginOfStep(*term.time_step, timestamp_micros))
                         : timestamp - timestamp % term.duration_micros;
      return AppendBigEndian64(begin ^ kTimeSignBit, &key_);
    }
  }
}

AggregateGroup* AggregateFold::FindGroup(size_t family, std::string_view qualifier,
                                         int64_t timestamp_micros) {
  if (!plan_.groups_by_cell) {
    GoToRow();
    return group_;
  }
  if (!row_made_) MakeRow();
  key_.clear();
  for (size_t i = 0; i < plan_.terms.size(); ++i) {
    if (plan_.terms[i].of_cell())
      AppendCellTerm(plan_.terms[i], family, qualifier, timestamp_micros);
    else
      key_.append(row_parts_[i]);
  }
  if (group_ != nullptr && key_ == last_key_) return group_;
  group_ = &groups_->Find(key_, float32_mask_);
  last_key_.assign(key_);
  return group_;
}

void AggregateFold::AddTo(const std::vector<uint32_t>& takers, size_t family,
                          std::string_view qualifier, int64_t timestamp_micros, ValueType type,
                          std::string_view stored) {
  AggregateGroup* const group = FindGroup(family, qualifier, timestamp_micros);
  if (plan_.wants_places) [[unlikely]]
    NotePlace(family, qualifier, timestamp_micros);
  const FoldCell cell{
      .type = type,
      .stored = stored,
      .text_counts = IsTextType(type) && plan_.families[family].TextCounts(qualifier),
      .row = row_,
      .place = &place_};
  groups_->Add(group, takers, cell);
}

void AggregateFold::AddRun(const std::vector<uint32_t>& takers, bool text_counts,
                           std::span<const std::string_view> values, PlainValue* plain) {
  GoToRow();
  AddHeld(takers, text_counts, values, Rows::kOne, plain);
}

void AggregateFold::AddHeld(const std::vector<uint32_t>& takers, bool text_counts,
                            std::span<const std::string_view> values, Rows rows,
                            PlainValue* plain) {
  const FoldRun run{.values = values,
                    .text_counts = text_counts,
                    .row = rows == Rows::kOne ? row_ : 0,
                    .plain = plain};
  groups_->Add(group_, takers, run);
}

void AggregateFold::Add(size_t family, std::string_view qualifier, int64_t timestamp_micros,
                        ValueType type, std::string_view stored) {
  FindTakers(family, qualifier, &takers_);
  if (!takers_.empty()) AddTo(takers_, family, qualifier, timestamp_micros, type, stored);
}

}  // namespace cellar
