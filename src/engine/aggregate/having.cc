// See having.h.
#include "engine/aggregate/having.h"

#include <cmath>
#include <string>

#include "base/assert.h"
#include "base/text/decimal.h"
#include "engine/aggregate/aggregate_result.h"

namespace cellar {
namespace {

// Is the result beyond all numbers that the text could mean, or the text beyond all results?
int CompareInfinite(double result, double literal) {
  return result < literal ? -1 : literal < result ? 1 : 0;
}

// A result is compared as the decimal that it prints as, exactly.
int CompareToText(const AggregateValue& result, std::string_view text) {
  Decimal literal;
  const bool is_integer = result.kind == AggregateValue::Kind::kInteger;
  const double floating = is_integer ? 0 : result.floating;
  if (!ParseDecimal(text, &literal)) {
    double infinity = 0;
    const bool parsed = ParseDouble(text, &infinity) == NumberError::kNone;
    CELLAR_ASSERT(parsed);  // PlanHaving has seen to it
    return CompareInfinite(floating, infinity);
  }
  if (std::isinf(floating)) return floating < 0 ? -1 : 1;
  if (!is_integer) return CompareDecimals(DecimalOf(floating), literal);
  return CompareDecimals(DecimalOf(result.integer), literal);
}

bool Holds(const PlannedHaving& having, const AggregateValue& result) {
  switch (result.kind) {
    case AggregateValue::Kind::kCell:
      return ComparedLiteral(having.value).Holds(having.op, result.type, result.text);
    case AggregateValue::Kind::kInteger:
      return CompareHolds(having.op, CompareToText(result, having.value));
    case AggregateValue::Kind::kDouble:
      if (std::isnan(result.floating)) return having.op == CompareOp::kNe;
      return CompareHolds(having.op, CompareToText(result, having.value));
    default:
      CELLAR_ASSERT(result.kind == AggregateValue::Kind::kNull);
      return having.op == CompareOp::kNe;
  }
}

}  // namespace

bool HavingHolds(const AggregatePlan& plan, const AggregateGroup& group) {
  for (const PlannedHaving& having : plan.having) {
    if (!Holds(having, ReduceValue(plan, plan.reduces[having.reduce], group))) return false;
  }
  return true;
}

}  // namespace cellar
