// See aggregate_plan.h.
#include "engine/aggregate/aggregate_plan.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/aggregate/accumulator.h"
#include "engine/keys/key_component.h"
#include "engine/schema/column_set.h"

namespace cellar {
namespace {

Status Refuse(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

std::string OrderText(const Order& key) { return "KEY " + Quote(key.spec()); }

Status OutOfRange(std::string_view option, uint64_t count, const Order& key) {
  return Refuse(std::string(option) + " " + FormatUint64(count) + " is out of range: " +
                OrderText(key) + " has " + FormatUint64(key.components().size()) + " components");
}

// PART by number (from 1) or by name; STEP only where the component is a number, and of integers
// only a whole one.
Status PlanPart(const Order& key, const GroupTerm& term, PlannedTerm* planned) {
  const size_t components = key.components().size();
  size_t index = components;
  if (!term.name.empty()) {
    index = key.FindName(term.name);
    if (index == components)
      return Refuse("no component " + Quote(term.name) + " in " + OrderText(key));
  }
  if (term.name.empty() && term.count >= 1 && term.count <= components) index = term.count - 1;
  if (index == components) return OutOfRange("PART", term.count, key);
  const OrderComponent component = key.components()[index];
  planned->count = index;
  planned->component = component.type;
  planned->descending = component.descending;
  if (!term.step) return Status::Ok();
  const bool is_number =
      component.type >= ComponentType::kU8 && component.type <= ComponentType::kF64;
  if (!is_number && component.type != ComponentType::kRecno) {
    return Refuse("STEP needs a number, and component " + FormatUint64(index + 1) + " is " +
                  std::string(ComponentTypeName(component.type)));
  }
  ASSIGN_OR_RETURN(planned->step, ParseStep(*term.step));
  if (!IsFloatComponent(component.type) && !planned->step->step.is_integer) {
    return Refuse("STEP " + Quote(*term.step) + " is not an integer, and component " +
                  FormatUint64(index + 1) + " is " +
                  std::string(ComponentTypeName(component.type)));
  }
  return Status::Ok();
}

Status PlanValue(const TableSchema& schema, const GroupTerm& term, PlannedTerm* planned) {
  ASSIGN_OR_RETURN(const FamilySchema* family, RequireFamily(schema, term.family));
  planned->family = static_cast<size_t>(family - schema.families.data());
  RETURN_IF_ERROR(EncodeQualifier(*family, term.qualifier, &planned->qualifier));
  if (!term.step) return Status::Ok();
  if (family->type && ClassOf(*family->type) != ValueClass::kNumber) {
    return Refuse("STEP needs numbers, and family '" + family->name + "' holds " +
                  std::string(ValueTypeName(*family->type)));
  }
  ASSIGN_OR_RETURN(planned->step, ParseStep(*term.step));
  return Status::Ok();
}

// Families of which cells may be taken: those that the options name, if any, and a target does.
bool MayTake(const FamilySchema& family, const std::vector<ColumnSelector>& columns,
             const AggregateRequest& request) {
  const bool selected = columns.empty() || std::any_of(columns.begin(), columns.end(),
                                                       [&](const ColumnSelector& selector) {
                                                         return selector.family == family.name;
                                                       });
  return selected &&
         std::any_of(request.reduces.begin(), request.reduces.end(), [&](const Reduce& reduce) {
           return reduce.target == Reduce::Target::kAll || reduce.family == family.name;
         });
}

Status PlanQualifier(const TableSchema& schema, const GroupTerm& term,
                     const std::vector<ColumnSelector>& columns, const AggregateRequest& request,
                     PlannedTerm* planned) {
  planned->count = static_cast<size_t>(std::min<uint64_t>(term.count, kOrderComponentsMax + 1));
  const Order* first = nullptr;
  size_t components = 0;
  for (const FamilySchema& family : schema.families) {
    if (!MayTake(family, columns, request)) continue;
    components = std::max(components, family.order.components().size());
    if (first == nullptr) first = &family.order;
    // Encodings of two orders cannot be compared, but their texts can.
    if (!(family.order == *first)) planned->as_text = true;
  }
  if (first != nullptr) planned->order = *first;
  if (term.count <= components || first == nullptr) return Status::Ok();
  return Refuse("QUALIFIER " + FormatUint64(term.count) +
                " is out of range: the qualifiers have at most " + FormatUint64(components) +
                " components");
}

Status PlanTerm(const TableSchema& schema, const GroupTerm& term, PlannedTerm* planned) {
  const size_t components = schema.key.components().size();
  planned->kind = term.kind;
  switch (term.kind) {
    case GroupTerm::Kind::kKey:
      if (term.count > components) return OutOfRange("KEY", term.count, schema.key);
      planned->count = term.count == 0 ? components : static_cast<size_t>(term.count);
      return Status::Ok();
    case GroupTerm::Kind::kPart:
      return PlanPart(schema.key, term, planned);
    case GroupTerm::Kind::kBytes: {
      const OrderComponent component = schema.key.components().front();
      if (components > 1 || !IsTextComponent(component.type)) {
        return Refuse("BYTES needs row keys that are one text, and these are " +
                      OrderText(schema.key));
      }
      planned->descending = component.descending;
      planned->count = static_cast<size_t>(std::min<uint64_t>(term.count, kRowKeyBytesMax));
      return Status::Ok();
    }
    case GroupTerm::Kind::kTime:
      planned->duration_micros = static_cast<uint64_t>(term.duration_micros);
      return Status::Ok();
    case GroupTerm::Kind::kValue:
      return PlanValue(schema, term, planned);
    default:
      return Status::Ok();
  }
}

std::string_view FunctionName(Reduce::Function function) {
  constexpr std::string_view kNames[] = {"rows", "count",    "sum",      "avg",      "min",
                                         "max",  "distinct", "quantile", "histogram"};
  return kNames[static_cast<size_t>(function)];
}

// The numbers of QUANTILE and HISTOGRAM. An integer of 64 bits stays one, since as a double a bound
// beyond 2^53 would be another. Bounds must ascend.
Status PlanNumbers(const Reduce& reduce, PlannedReduce* planned) {
  const bool quantile = reduce.function == Reduce::Function::kQuantile;
  const size_t max = quantile ? kQuantilesMax : kHistogramBoundsMax;
  if (reduce.numbers.size() > max) {
    return Status::Error(ErrorCode::kTooLarge, planned->name + " with " +
                                                   FormatUint64(reduce.numbers.size()) +
                                                   " numbers, the limit is " + FormatUint64(max));
  }
  for (const std::string_view text : reduce.numbers) {
    Number number;
    int128_t integer = 0;
    if (ParseInt128(text, &integer) == NumberError::kNone && integer >= INT64_MIN &&
        integer <= static_cast<int128_t>(UINT64_MAX)) {
      number.integer = integer;
    } else {
      number.is_integer = false;
      if (ParseDouble(text, &number.floating) != NumberError::kNone) {
        return Status::Error(ErrorCode::kBadValue,
                             planned->name + ": " + Quote(text) + " is not a number");
      }
    }
    if (quantile) {
      const double q = ToDouble(number);
      if (q < 0 || q > 1) {
        return Status::Error(ErrorCode::kBadValue,
                             planned->name + ": " + Quote(text) + " is not within 0 and 1");
      }
      planned->quantiles.push_back(q);
      continue;
    }
    if (!planned->bounds.empty() && CompareNumbers(planned->bounds.back(), number) >= 0) {
      return Status::Error(ErrorCode::kBadValue, planned->name + ": bound " + Quote(text) +
                                                     " is not above the one before it");
    }
    planned->bounds.push_back(number);
  }
  return Status::Ok();
}

Status PlanReduce(const TableSchema& schema, const Reduce& reduce, PlannedReduce* planned) {
  planned->function = reduce.function;
  planned->target = reduce.target;
  std::string target = "*";
  if (reduce.target != Reduce::Target::kAll) {
    ASSIGN_OR_RETURN(const FamilySchema* family, RequireFamily(schema, reduce.family));
    planned->family = static_cast<size_t>(family - schema.families.data());
    target = family->name;
    if (reduce.target == Reduce::Target::kColumn) {
      RETURN_IF_ERROR(EncodeQualifier(*family, reduce.qualifier, &planned->qualifier));
      target += ":";
      const bool decoded = family->order.Decode(planned->qualifier, &target);
      CELLAR_ASSERT(decoded);
    }
  }
  planned->name = reduce.name ? std::string(*reduce.name)
                              : std::string(FunctionName(reduce.function)) + "(" + target + ")";
  return PlanNumbers(reduce, planned);
}

Status PlanSort(const AggregateRequest& request, AggregatePlan* plan) {
  if (!request.sort) return Status::Ok();
  const auto found =
      std::find_if(plan->reduces.begin(), plan->reduces.end(),
                   [&](const PlannedReduce& reduce) { return reduce.name == *request.sort; });
  if (found == plan->reduces.end()) {
    return Refuse("SORT " + Quote(*request.sort) + " is the name of no REDUCE");
  }
  if (found->function >= Reduce::Function::kQuantile) {
    return Refuse("SORT " + Quote(*request.sort) + " is not one number");
  }
  plan->sort = static_cast<size_t>(found - plan->reduces.begin());
  plan->sort_descending = request.sort_descending;
  return Status::Ok();
}

Status TooMany(std::string_view what, size_t count, size_t max) {
  return Status::Error(ErrorCode::kTooLarge, FormatUint64(count) + " " + std::string(what) +
                                                 ", the limit is " + FormatUint64(max));
}

}  // namespace

// Whatever can be refused is refused here, so that folding fails for want of memory alone. Each
// accumulator gets its place in the memory of a group.
Result<AggregatePlan> AggregatePlan::Compile(const TableSchema& schema,
                                             const AggregateRequest& request,
                                             const std::vector<ColumnSelector>& columns,
                                             bool reverse) {
  AggregatePlan plan;
  if (request.terms.size() > kGroupTermsMax)
    return TooMany("BY terms", request.terms.size(), kGroupTermsMax);
  if (request.reduces.size() > kReducesMax)
    return TooMany("REDUCEs", request.reduces.size(), kReducesMax);
  plan.key = schema.key;
  for (const FamilySchema& family : schema.families)
    plan.families.push_back({family.name, family.order, !family.type.has_value()});
  for (const GroupTerm& term : request.terms) {
    PlannedTerm& planned = plan.terms.emplace_back();
    RETURN_IF_ERROR(PlanTerm(schema, term, &planned));
    if (term.kind == GroupTerm::Kind::kQualifier)
      RETURN_IF_ERROR(PlanQualifier(schema, term, columns, request, &planned));
    plan.groups_by_cell |= planned.of_cell();
    plan.wants_timestamps |= term.kind == GroupTerm::Kind::kTime;
  }
  for (const Reduce& reduce : request.reduces) {
    PlannedReduce planned;
    RETURN_IF_ERROR(PlanReduce(schema, reduce, &planned));
    for (const PlannedReduce& other : plan.reduces) {
      if (other.name == planned.name)
        return Refuse("two REDUCEs have the name " + Quote(other.name));
    }
    planned.offset = plan.accumulator_bytes;
    plan.accumulator_bytes += AccumulatorBytes(planned.function);
    plan.reduces.push_back(std::move(planned));
  }
  RETURN_IF_ERROR(PlanSort(request, &plan));
  plan.reverse = reverse;
  plan.skip = request.skip;
  plan.limit = request.limit;
  return plan;
}

std::string FirstComponentsText(const Order& order, std::string_view encoded, size_t count) {
  std::string text;
  if (count == order.components().size()) {
    const bool decoded = order.Decode(encoded, &text);
    CELLAR_ASSERT(decoded);
    return text;
  }
  for (size_t i = 0; i < count; ++i) {
    const OrderComponent component = order.components()[i];
    if (i > 0) text.push_back(order.delimiter());
    const size_t bytes = ComponentSize(component, encoded);
    const bool decoded = DecodeComponent(component, encoded.substr(0, bytes), &text);
    CELLAR_ASSERT(decoded);
    encoded.remove_prefix(bytes);
  }
  return text;
}

// Only cells that some REDUCE takes are read. Where an option counts cells or columns, or a filter
// sees them, they all have to come, or it would count otherwise.
void NarrowToTargets(const AggregateRequest& request, const RowOptions& rows, CellOptions* cells,
                     std::vector<ColumnSelector>* targets) {
  cells->timestamps =
      std::any_of(request.terms.begin(), request.terms.end(),
                  [](const GroupTerm& term) { return term.kind == GroupTerm::Kind::kTime; });
  if (rows.each || cells->filter || cells->columns_skip != 0 || cells->columns_max != kUnlimited ||
      cells->super_columns_max != kUnlimited) {
    return;
  }
  for (const Reduce& reduce : request.reduces) {
    if (reduce.target == Reduce::Target::kAll) return;
    const bool column = reduce.target == Reduce::Target::kColumn;
    targets->push_back(
        {.kind = column ? ColumnSelector::Kind::kColumn : ColumnSelector::Kind::kFamily,
         .family = reduce.family,
         .first = reduce.qualifier,
         .second = {}});
  }
  if (cells->columns.empty())
    cells->columns = *targets;
  else
    cells->columns_within = targets;
}

}  // namespace cellar
