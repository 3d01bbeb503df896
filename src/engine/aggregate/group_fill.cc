// See group_fill.h.
#include "engine/aggregate/group_fill.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "engine/keys/key_component.h"

namespace cellar {

GroupFill::GroupFill(const AggregatePlan& plan, AggregateGroups* groups)
    : plan_(plan),
      term_(plan.terms[plan.fill_term]),
      groups_(groups),
      sorter_(plan, GroupOrder::kSteps) {
  CELLAR_ASSERT(plan.fill != Fill::kNone);
  sorter_.Begin(groups->all());
}

std::string_view GroupFill::StepOf(size_t i) const {
  const StepPlace place = sorter_.step_place(i);
  return sorter_.at(i).key(plan_).substr(place.at, place.bytes);
}

GroupFill::StepValue GroupFill::ValueOf(std::string_view step) const {
  StepValue value;
  if (term_.kind == GroupTerm::Kind::kTime) {
    value.is_step = true;
    value.micros = static_cast<int64_t>(DecodeBigEndian64(step.data()) ^ kTimeSignBit);
    return value;
  }
  std::string plain(step);
  if (term_.descending) Complement(&plain, 0);
  std::string_view rest = plain;
  const KeyedValue keyed = TakeValueKey(&rest);
  value.number = keyed.number;
  value.is_step = keyed.value_class == ValueClass::kNumber &&
                  (keyed.number.is_integer || std::isfinite(keyed.number.floating));
  return value;
}

GroupFill::StepValue GroupFill::NextOf(const StepValue& value) const {
  StepValue next = value;
  if (term_.kind == GroupTerm::Kind::kTime) {
    if (term_.time_step)
      next.micros = term_.time_step->Next(value.micros);
    else if (value.micros <= INT64_MAX - static_cast<int64_t>(term_.duration_micros))
      next.micros = value.micros + static_cast<int64_t>(term_.duration_micros);
  } else if (value.number.is_integer) {
    next.number.integer = term_.step->NextInteger(value.number.integer);
    // No cell has a greater integer: what follows are floats.
    if (next.number.integer > UINT64_MAX) {
      next.number.is_integer = false;
      next.number.floating = term_.step->NextFloat(ToDouble(value.number));
    }
  } else {
    next.number.floating = term_.step->NextFloat(value.number.floating);
  }
  return next;
}

bool GroupFill::IsBefore(const StepValue& a, const StepValue& b) const {
  if (term_.kind == GroupTerm::Kind::kTime) return a.micros < b.micros;
  return CompareNumbers(a.number, b.number) < 0;
}

void GroupFill::AddGroup(const StepValue& value) {
  const AggregateGroup& group = sorter_.at(at_);
  const std::string_view key = group.key(plan_);
  const StepPlace place = sorter_.step_place(at_);
  std::string step;
  if (term_.kind == GroupTerm::Kind::kTime) {
    char bytes[sizeof(uint64_t)];
    EncodeBigEndian64(bytes, static_cast<uint64_t>(value.micros) ^ kTimeSignBit);
    step.assign(bytes, sizeof(bytes));
  } else {
    AppendNumberKey(value.number, false, &step);
    if (term_.descending) Complement(&step, 0);
  }
  key_.assign(key.substr(0, place.at)).append(step).append(key.substr(place.at + place.bytes));
  groups_->AddFilled(key_, group.float32_mask(), plan_.fill == Fill::kPrevious ? &group : nullptr);
}

bool GroupFill::Step(size_t groups) {
  if (!sorted_ && !sorter_.Step(groups)) return false;
  if (!std::exchange(sorted_, true) && sorter_.size() > 0) value_ = ValueOf(StepOf(0));
  for (; at_ + 1 < sorter_.size(); --groups) {
    if (groups == 0) return false;
    const StepValue following = ValueOf(StepOf(at_ + 1));
    if (value_.is_step && following.is_step && sorter_.SameSeries(at_, at_ + 1)) {
      const StepValue next = NextOf(value_);
      if (!IsBefore(value_, next)) {
        groups_->Refuse(Status::Error(ErrorCode::kTooLarge,
                                      "FILL has no end: a step is too small for its numbers"));
        return true;
      }
      if (IsBefore(next, following)) {
        AddGroup(next);
        value_ = next;
        continue;
      }
    }
    value_ = following;
    ++at_;
  }
  return true;
}

}  // namespace cellar
