// See aggregate_result.h.
#include "engine/aggregate/aggregate_result.h"

#include <algorithm>
#include <limits>
#include <new>

#include "base/assert.h"
#include "base/coding.h"
#include "engine/keys/key_component.h"

namespace cellar {
namespace {

template <typename T>
const T& At(const PlannedReduce& reduce, const AggregateGroup& group) {
  return *std::launder(reinterpret_cast<const T*>(group.accumulator(reduce)));
}

uint64_t TakeBigEndian(std::string_view* from, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<uint8_t>((*from)[i]);
  from->remove_prefix(bytes);
  return number;
}

AggregateValue Text(std::string text) {
  AggregateValue value;
  value.kind = AggregateValue::Kind::kText;
  value.text = std::move(text);
  return value;
}
AggregateValue Integer(int128_t integer) {
  AggregateValue value;
  value.kind = AggregateValue::Kind::kInteger;
  value.integer = integer;
  return value;
}
AggregateValue Double(double floating) {
  AggregateValue value;
  value.kind = AggregateValue::Kind::kDouble;
  value.floating = floating;
  return value;
}

AggregateValue OfKeyed(const KeyedValue& keyed, bool float32) {
  switch (keyed.value_class) {
    case ValueClass::kNull:
      return {};
    case ValueClass::kNumber: {
      AggregateValue value =
          keyed.number.is_integer ? Integer(keyed.number.integer) : Double(keyed.number.floating);
      if (keyed.is_bool) value.kind = AggregateValue::Kind::kBool;
      if (float32 && value.kind == AggregateValue::Kind::kDouble)
        value.kind = AggregateValue::Kind::kFloat32;
      return value;
    }
    case ValueClass::kUuid: {
      std::string text;
      AppendUuidText(keyed.bytes, &text);
      return Text(std::move(text));
    }
    case ValueClass::kText:
      break;
  }
  return Text(keyed.bytes);
}

ValueType ValueTypeOf(ComponentType type) {
  constexpr ValueType kTypes[] = {
      ValueType::kBytes, ValueType::kBytes, ValueType::kBytes, ValueType::kU8,  ValueType::kU16,
      ValueType::kU32,   ValueType::kU64,   ValueType::kI8,    ValueType::kI16, ValueType::kI32,
      ValueType::kI64,   ValueType::kF32,   ValueType::kF64,   ValueType::kBool};
  CELLAR_ASSERT(type <= ComponentType::kBool);
  return kTypes[static_cast<size_t>(type)];
}

// A component without STEP, from the front of *key.
AggregateValue TakeComponent(const PlannedTerm& term, std::string_view* key) {
  const OrderComponent component{term.component, term.descending};
  const size_t bytes = ComponentSize(component, *key);
  const std::string_view encoded = key->substr(0, bytes);
  key->remove_prefix(bytes);
  std::string text;
  const bool decoded = DecodeComponent(component, encoded, &text);
  CELLAR_ASSERT(decoded);
  if (IsTextComponent(term.component)) return Text(std::move(text));
  if (term.component == ComponentType::kRecno) {
    int64_t number = 0;
    const bool parsed = ParseInt64(text, &number) == NumberError::kNone;
    CELLAR_ASSERT(parsed);
    return Integer(number);
  }
  if (term.component > ComponentType::kBool) return Text(std::move(text));  // a UUID
  AggregateValue value;
  value.kind = AggregateValue::Kind::kCell;
  value.type = ValueTypeOf(term.component);
  const Status stored = ParseValue(value.type, text, &value.text);
  CELLAR_ASSERT(stored.ok());
  return value;
}

// Its bytes as they were before they were turned round; *key moves behind.
std::string TakeComplement(std::string_view* key, bool is_number) {
  std::string plain;
  for (const char c : *key) plain.push_back(static_cast<char>(~c));
  std::string_view rest = plain;
  if (is_number)
    (void)TakeValueKey(&rest);
  else
    (void)TakeEscaped(&rest);
  const size_t bytes = plain.size() - rest.size();
  key->remove_prefix(bytes);
  plain.resize(bytes);
  return plain;
}

// Takes from the front of a group's key the bytes that this term has put there. A descending one
// was stored as its complement, to sort the other way, and is turned round before it is read.
AggregateValue TakeTerm(const AggregatePlan& plan, const PlannedTerm& term, bool float32,
                        std::string_view* key) {
  switch (term.kind) {
    case GroupTerm::Kind::kKey: {
      const size_t bytes = plan.key.ComponentsSize(*key, term.count);
      AggregateValue value = Text(FirstComponentsText(plan.key, key->substr(0, bytes), term.count));
      key->remove_prefix(bytes);
      return value;
    }
    case GroupTerm::Kind::kPart: {
      if (!term.step) return TakeComponent(term, key);
      if (!term.descending) return OfKeyed(TakeValueKey(key), false);
      const std::string plain = TakeComplement(key, true);
      std::string_view rest = plain;
      return OfKeyed(TakeValueKey(&rest), false);
    }
    case GroupTerm::Kind::kBytes: {
      if (!term.descending) return Text(TakeEscaped(key));
      const std::string plain = TakeComplement(key, false);
      std::string_view rest = plain;
      return Text(TakeEscaped(&rest));
    }
    case GroupTerm::Kind::kFamily:
      return Text(plan.families[TakeBigEndian(key, 2)].name);
    case GroupTerm::Kind::kColumn: {
      const PlannedFamily& family = plan.families[TakeBigEndian(key, 2)];
      const size_t bytes = family.order.EncodedSize(*key);
      std::string text = family.name + ":";
      const bool decoded = family.order.Decode(key->substr(0, bytes), &text);
      CELLAR_ASSERT(decoded);
      key->remove_prefix(bytes);
      return Text(std::move(text));
    }
    case GroupTerm::Kind::kQualifier: {
      if (term.as_text) return Text(TakeEscaped(key));
      const Order& order = term.order;
      const size_t count = std::min(term.count, order.components().size());
      const size_t bytes = order.ComponentsSize(*key, count);
      AggregateValue value = Text(FirstComponentsText(order, key->substr(0, bytes), count));
      key->remove_prefix(bytes);
      return value;
    }
    case GroupTerm::Kind::kTime:
      return Integer(static_cast<int64_t>(TakeBigEndian(key, 8) ^ kTimeSignBit));
    case GroupTerm::Kind::kValue:
      return OfKeyed(TakeValueKey(key), float32);
  }
  return {};
}

AggregateValue SumOf(const ExactSum& sum) {
  return sum.has_doubles() ? Double(sum.Round()) : Integer(sum.integers());
}

// An integer sum may be more than a double can be exact for, and is rounded then.
double DoubleOf(const ExactSum& sum) {
  return sum.has_doubles() ? sum.Round() : static_cast<double>(sum.integers());
}

// A second of the time from the first to the last cell; null where that is none.
AggregateValue RateOf(const Growth& growth) {
  constexpr double kMicrosPerSecond{1e6};
  if (growth.micros() == 0) return {};
  return Double(DoubleOf(growth.sum()) / (static_cast<double>(growth.micros()) / kMicrosPerSecond));
}

AggregateValue AvgOf(const AvgAccumulator& avg) {
  if (avg.cells == 0) return {};
  return Double(DoubleOf(avg.sum) / static_cast<double>(avg.cells));
}

AggregateValue QuantilesOf(const PlannedReduce& reduce, const QuantileCounts& counts) {
  if (counts.total() == 0) return {};
  AggregateValue value;
  value.kind = AggregateValue::Kind::kDoubles;
  const auto sorted = counts.Sorted();
  for (const Decimal& q : reduce.quantiles) {
    // The nearest rank: of n numbers the ceil(q * n)-th, and the first for q = 0.
    const uint64_t rank = std::max<uint64_t>(CeilOfPart(q, counts.total()), 1);
    uint64_t before = 0;
    for (const auto& [number, count] : sorted) {
      before += count;
      if (before < rank) continue;
      value.doubles.push_back(number);
      break;
    }
  }
  return value;
}

// What a function came to that does not give a cell's value.
AggregateValue OwnValue(const PlannedReduce& reduce, const AggregateGroup& group) {
  switch (reduce.function) {
    case Reduce::Function::kRows:
      return Integer(static_cast<int128_t>(At<RowsAccumulator>(reduce, group).rows));
    case Reduce::Function::kCount:
      return Integer(static_cast<int128_t>(At<CountAccumulator>(reduce, group).cells));
    case Reduce::Function::kSum:
      return SumOf(At<SumAccumulator>(reduce, group).sum);
    case Reduce::Function::kAvg:
      return AvgOf(At<AvgAccumulator>(reduce, group));
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance: {
      const Spread& spread = *At<SpreadAccumulator>(reduce, group).spread;
      if (spread.count() < 2) return {};
      return Double(reduce.function == Reduce::Function::kStddev ? spread.Deviation()
                                                                 : spread.Variance());
    }
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate: {
      const Growth& growth = *At<GrowthAccumulator>(reduce, group).growth;
      if (growth.empty()) return {};
      return reduce.function == Reduce::Function::kDelta ? SumOf(growth.sum()) : RateOf(growth);
    }
    case Reduce::Function::kDistinct:
      return Integer(static_cast<int128_t>(At<DistinctAccumulator>(reduce, group).values->Count()));
    case Reduce::Function::kQuantile:
      return QuantilesOf(reduce, *At<QuantileAccumulator>(reduce, group).counts);
    default: {
      CELLAR_ASSERT(reduce.function == Reduce::Function::kHistogram);
      const uint64_t* counts = At<HistogramAccumulator>(reduce, group).counts;
      AggregateValue value;
      value.kind = AggregateValue::Kind::kCounts;
      value.counts.assign(counts, counts + reduce.bounds.size() + 1);
      return value;
    }
  }
}

}  // namespace

std::vector<AggregateValue> GroupValues(const AggregatePlan& plan, const AggregateGroup& group) {
  std::vector<AggregateValue> values;
  std::string_view key = group.key(plan);
  for (size_t i = 0; i < plan.terms.size(); ++i) {
    const bool float32 = (group.float32_mask() >> i & 1) != 0;
    values.push_back(TakeTerm(plan, plan.terms[i], float32, &key));
  }
  CELLAR_ASSERT(key.empty());
  return values;
}

bool CellOf(const AggregatePlan& plan, const PlannedReduce& reduce, const AggregateGroup& group,
            SeenValue* cell) {
  if (group.filled()) {
    if (group.source() != nullptr) return CellOf(plan, reduce, *group.source(), cell);
    if (plan.fill != Fill::kValue) return false;
    *cell = {plan.fill_type, plan.fill_stored};
    return true;
  }
  const auto take = [cell](const auto& held) {
    if (held.empty()) return false;
    *cell = {held.type(), held.stored()};
    return true;
  };
  if (reduce.function == Reduce::Function::kFirst || reduce.function == Reduce::Function::kLast)
    return take(*At<TimedAccumulator>(reduce, group).value);
  return take(At<ExtremeAccumulator>(reduce, group).value);
}

StepPlace FindStep(const AggregatePlan& plan, size_t index, const AggregateGroup& group) {
  const std::string_view key = group.key(plan);
  std::string_view rest = key;
  for (size_t i = 0; i < index; ++i) (void)TakeTerm(plan, plan.terms[i], false, &rest);
  const size_t begin = key.size() - rest.size();
  (void)TakeTerm(plan, plan.terms[index], false, &rest);
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(key.size() - rest.size() - begin)};
}

// A group may have come into being by cells that this function does not take: its MIN and MAX are
// null then.
AggregateValue ReduceValue(const AggregatePlan& plan, const PlannedReduce& reduce,
                           const AggregateGroup& group) {
  const bool gives_fill = group.filled() && group.source() == nullptr;
  if (gives_fill || GivesCell(reduce.function)) {
    SeenValue cell{ValueType::kBytes, {}};
    AggregateValue value;
    if (!CellOf(plan, reduce, group, &cell)) return value;
    value.kind = AggregateValue::Kind::kCell;
    value.type = cell.type;
    value.text = cell.stored;
    return value;
  }
  if (group.filled()) return ReduceValue(plan, reduce, *group.source());
  return OwnValue(reduce, group);
}

}  // namespace cellar
