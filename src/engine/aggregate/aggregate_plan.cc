// See aggregate_plan.h.
#include "engine/aggregate/aggregate_plan.h"

#include <algorithm>
#include <utility>

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

Status TooMany(std::string_view what, size_t count, size_t max) {
  return Status::Error(ErrorCode::kTooLarge, FormatUint64(count) + " " + std::string(what) +
                                                 ", the limit is " + FormatUint64(max));
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
  ASSIGN_OR_RETURN(planned->step, NumberStep::Parse(*term.step));
  if (!IsFloatComponent(component.type) && !planned->step->is_integer()) {
    return Refuse("STEP " + Quote(*term.step) + " is not an integer of 64 bits, and component " +
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
  const std::optional<ValueType> type = TypeOf(*family, planned->qualifier);
  if (type && ClassOf(*type) != ValueClass::kNumber) {
    const bool is_columns = family->FindColumn(planned->qualifier) != nullptr;
    const std::string column = std::string(term.family) + ":" + std::string(term.qualifier);
    return Refuse("STEP needs numbers, and " +
                  (is_columns ? "column " + Quote(column) : "family '" + family->name + "'") +
                  " holds " + std::string(ValueTypeName(*type)));
  }
  ASSIGN_OR_RETURN(planned->step, NumberStep::Parse(*term.step));
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
    case GroupTerm::Kind::kTime: {
      planned->duration_micros = static_cast<uint64_t>(term.duration_micros);
      if (term.duration_micros != 0) return Status::Ok();
      ASSIGN_OR_RETURN(planned->time_step, TimeStep::Parse(term.duration, term.zone));
      return Status::Ok();
    }
    case GroupTerm::Kind::kValue:
      return PlanValue(schema, term, planned);
    default:
      return Status::Ok();
  }
}

std::string_view FunctionName(Reduce::Function function) {
  constexpr std::string_view kNames[] = {"rows",  "count", "sum",      "avg",      "min",
                                         "max",   "first", "last",     "stddev",   "variance",
                                         "delta", "rate",  "distinct", "quantile", "histogram"};
  return kNames[static_cast<size_t>(function)];
}

// The numbers of QUANTILE and HISTOGRAM, which are taken as the decimals that they are.
Status PlanNumber(bool quantile, std::string_view text, PlannedReduce* planned) {
  const auto refuse = [&](std::string_view what) {
    return Status::Error(ErrorCode::kBadValue, planned->name + ": " + std::string(what));
  };
  const std::string no_number = Quote(text) + " is not a number";
  if (!quantile) {
    const NumberBounds::Refusal refusal = planned->bounds.Add(text);
    if (refusal == NumberBounds::Refusal::kNoNumber) return refuse(no_number);
    if (refusal == NumberBounds::Refusal::kNotAbove)
      return refuse("bound " + Quote(text) + " is not above the one before it");
    return Status::Ok();
  }
  double number = 0;
  if (ParseDouble(text, &number) != NumberError::kNone) return refuse(no_number);
  Decimal one;
  Decimal q;
  const bool parsed = ParseDecimal("1", &one);
  CELLAR_ASSERT(parsed);
  if (!ParseDecimal(text, &q) || q.negative || CompareDecimals(q, one) > 0)
    return refuse(Quote(text) + " is not within 0 and 1");
  planned->quantiles.push_back(std::move(q));
  return Status::Ok();
}

Status PlanNumbers(const Reduce& reduce, PlannedReduce* planned) {
  const bool quantile = reduce.function == Reduce::Function::kQuantile;
  const size_t max = quantile ? kQuantilesMax : kHistogramBoundsMax;
  if (reduce.numbers.size() > max) {
    return Status::Error(ErrorCode::kTooLarge, planned->name + " with " +
                                                   FormatUint64(reduce.numbers.size()) +
                                                   " numbers, the limit is " + FormatUint64(max));
  }
  for (const std::string_view text : reduce.numbers)
    RETURN_IF_ERROR(PlanNumber(quantile, text, planned));
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

// Which REDUCE an option names; of one result.
Result<size_t> FindReduce(const AggregatePlan& plan, std::string_view option,
                          std::string_view name) {
  const auto found = std::find_if(plan.reduces.begin(), plan.reduces.end(),
                                  [&](const PlannedReduce& reduce) { return reduce.name == name; });
  const std::string named = std::string(option) + " " + Quote(name);
  if (found == plan.reduces.end()) return Refuse(named + " is the name of no REDUCE");
  if (found->function >= Reduce::Function::kQuantile) return Refuse(named + " is not one number");
  return static_cast<size_t>(found - plan.reduces.begin());
}

Status PlanSort(const AggregateRequest& request, AggregatePlan* plan) {
  if (!request.sort) return Status::Ok();
  ASSIGN_OR_RETURN(plan->sort, FindReduce(*plan, "SORT", *request.sort));
  plan->sort_descending = request.sort_descending;
  return Status::Ok();
}

// A number can only be compared with a number; the value of a cell with any text.
Status PlanHaving(const AggregateRequest& request, AggregatePlan* plan) {
  if (request.having.size() > kHavingMax)
    return TooMany("HAVINGs", request.having.size(), kHavingMax);
  for (const Having& having : request.having) {
    ASSIGN_OR_RETURN(const size_t reduce, FindReduce(*plan, "HAVING", having.name));
    Decimal decimal;
    double infinity = 0;
    if (!GivesCell(plan->reduces[reduce].function) && !ParseDecimal(having.value, &decimal) &&
        ParseDouble(having.value, &infinity) != NumberError::kNone) {
      return Status::Error(ErrorCode::kBadValue, "HAVING " + Quote(having.name) + ": " +
                                                     Quote(having.value) + " is not a number");
    }
    plan->having.push_back({reduce, having.op, std::string(having.value)});
  }
  return Status::Ok();
}

// The value of FILL: an integer of 64 bits, or a double.
Status PlanFillValue(std::string_view text, AggregatePlan* plan) {
  for (const ValueType type : {ValueType::kI64, ValueType::kU64, ValueType::kF64}) {
    plan->fill_type = type;
    if (ParseValue(type, text, &plan->fill_stored).ok()) return Status::Ok();
  }
  return Status::Error(ErrorCode::kBadValue,
                       "FILL " + Quote(text) + " is not NULL, PREVIOUS or a number");
}

Status PlanFill(const AggregateRequest& request, AggregatePlan* plan) {
  plan->fill = request.fill;
  if (request.fill == Fill::kNone) return Status::Ok();
  size_t with_steps = 0;
  for (size_t i = 0; i < plan->terms.size(); ++i) {
    if (!plan->terms[i].has_steps()) continue;
    plan->fill_term = i;
    ++with_steps;
  }
  if (with_steps != 1) {
    return Refuse("FILL needs one BY TIME or BY with STEP, and there are " +
                  FormatUint64(with_steps));
  }
  return request.fill == Fill::kValue ? PlanFillValue(request.fill_value, plan) : Status::Ok();
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
    plan.families.push_back({family.name, family.order, !family.type.has_value(), family.columns});
  for (const GroupTerm& term : request.terms) {
    PlannedTerm& planned = plan.terms.emplace_back();
    RETURN_IF_ERROR(PlanTerm(schema, term, &planned));
    if (term.kind == GroupTerm::Kind::kQualifier)
      RETURN_IF_ERROR(PlanQualifier(schema, term, columns, request, &planned));
    plan.groups_by_cell |= planned.of_cell();
    plan.wants_timestamps |= term.kind == GroupTerm::Kind::kTime;
  }
  plan.groups_by_front =
      plan.terms.empty() || (plan.terms.size() == 1 && plan.terms[0].kind == GroupTerm::Kind::kKey);
  for (const Reduce& reduce : request.reduces) {
    PlannedReduce planned;
    RETURN_IF_ERROR(PlanReduce(schema, reduce, &planned));
    for (const PlannedReduce& other : plan.reduces) {
      if (other.name == planned.name)
        return Refuse("two REDUCEs have the name " + Quote(other.name));
    }
    planned.offset = plan.accumulator_bytes;
    plan.accumulator_bytes += AccumulatorBytes(planned.function);
    plan.wants_places |= WantsPlace(planned.function);
    plan.wants_columns |= WantsColumn(planned.function);
    plan.reduces.push_back(std::move(planned));
  }
  plan.wants_timestamps |= plan.wants_places;
  RETURN_IF_ERROR(PlanHaving(request, &plan));
  RETURN_IF_ERROR(PlanFill(request, &plan));
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
                  [](const GroupTerm& term) { return term.kind == GroupTerm::Kind::kTime; }) ||
      std::any_of(request.reduces.begin(), request.reduces.end(),
                  [](const Reduce& reduce) { return WantsPlace(reduce.function); });
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
