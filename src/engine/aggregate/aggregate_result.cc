// See aggregate_result.h.
#include "engine/aggregate/aggregate_result.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "base/assert.h"
#include "base/coding.h"
#include "engine/keys/key_component.h"

namespace cellar {
namespace {

constexpr size_t kPieceFirst{32};

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
      return Integer(static_cast<int128_t>(TakeBigEndian(key, 8)));
    case GroupTerm::Kind::kValue:
      return OfKeyed(TakeValueKey(key), float32);
  }
  return {};
}

AggregateValue SumOf(const ExactSum& sum) {
  return sum.has_doubles() ? Double(sum.Round()) : Integer(sum.integers());
}

AggregateValue AvgOf(const AvgAccumulator& avg) {
  if (avg.cells == 0) return {};
  const double sum =
      avg.sum.has_doubles() ? avg.sum.Round() : static_cast<double>(avg.sum.integers());
  return Double(sum / static_cast<double>(avg.cells));
}

AggregateValue QuantilesOf(const PlannedReduce& reduce, const KeyCounts& counts) {
  if (counts.total() == 0) return {};
  AggregateValue value;
  value.kind = AggregateValue::Kind::kDoubles;
  const auto sorted = counts.Sorted();
  for (const double q : reduce.quantiles) {
    // The nearest rank: of n numbers the ceil(q * n)-th, and the first for q = 0.
    const double wanted = std::ceil(q * static_cast<double>(counts.total()));
    const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, counts.total());
    uint64_t before = 0;
    for (const auto& [key, count] : sorted) {
      before += count;
      if (before < rank) continue;
      value.doubles.push_back(QuantileValue(key));
      break;
    }
  }
  return value;
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

// A group may have come into being by cells that this function does not take: its MIN and MAX are
// null then.
AggregateValue ReduceValue(const PlannedReduce& reduce, const AggregateGroup& group) {
  switch (reduce.function) {
    case Reduce::Function::kRows:
      return Integer(static_cast<int128_t>(At<RowsAccumulator>(reduce, group).rows));
    case Reduce::Function::kCount:
      return Integer(static_cast<int128_t>(At<CountAccumulator>(reduce, group).cells));
    case Reduce::Function::kSum:
      return SumOf(At<SumAccumulator>(reduce, group).sum);
    case Reduce::Function::kAvg:
      return AvgOf(At<AvgAccumulator>(reduce, group));
    case Reduce::Function::kMin:
    case Reduce::Function::kMax: {
      const HeldValue& held = At<ExtremeAccumulator>(reduce, group).value;
      AggregateValue value;
      if (held.empty()) return value;
      value.kind = AggregateValue::Kind::kCell;
      value.type = held.type();
      value.text = held.stored();
      return value;
    }
    case Reduce::Function::kDistinct:
      return Integer(static_cast<int128_t>(At<DistinctAccumulator>(reduce, group).values->Count()));
    case Reduce::Function::kQuantile:
      return QuantilesOf(reduce, *At<QuantileAccumulator>(reduce, group).counts);
    case Reduce::Function::kHistogram: {
      const uint64_t* counts = At<HistogramAccumulator>(reduce, group).counts;
      AggregateValue value;
      value.kind = AggregateValue::Kind::kCounts;
      value.counts.assign(counts, counts + reduce.bounds.size() + 1);
      return value;
    }
  }
  return {};
}

// --- GroupSorter

void GroupSorter::Begin(const std::vector<AggregateGroup*>& groups) {
  static_assert(kBytesPerGroup == 2 * sizeof(Entry), "entries_ and merged_");
  CELLAR_ASSERT(entries_.empty());  // so that they take what is asked for, and no more
  entries_.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) entries_[i].group = groups[i];
  prepared_ = 0;
  piece_ = 0;
  pair_ = 0;
}

// An integer of 128 bits and a float must compare exactly. So the integer is taken apart: the
// largest double not above it, and the rest. A float has no rest.
void GroupSorter::Prepare(Entry* entry) const {
  const PlannedReduce& reduce = plan_.reduces[*plan_.sort];
  if (reduce.function == Reduce::Function::kMin || reduce.function == Reduce::Function::kMax) {
    entry->kind = At<ExtremeAccumulator>(reduce, *entry->group).value.empty() ? 0 : 2;
    return;
  }
  const AggregateValue value = ReduceValue(reduce, *entry->group);
  if (value.kind == AggregateValue::Kind::kInteger) {
    entry->kind = 3;
    entry->floor = static_cast<double>(value.integer);
    if (static_cast<int128_t>(entry->floor) > value.integer)
      entry->floor = std::nextafter(entry->floor, -std::numeric_limits<double>::infinity());
    entry->rest = static_cast<uint64_t>(value.integer - static_cast<int128_t>(entry->floor));
  } else if (value.kind == AggregateValue::Kind::kDouble) {
    entry->kind = std::isnan(value.floating) ? 1 : 4;
    entry->floor = entry->kind == 1 ? 0 : value.floating;
  }
}

int GroupSorter::CompareSorted(const Entry& a, const Entry& b) const {
  const auto three_way = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.kind < 2 || b.kind < 2) return three_way(a.kind, b.kind);
  if (a.kind == 2) {
    const PlannedReduce& reduce = plan_.reduces[*plan_.sort];
    const HeldValue& x = At<ExtremeAccumulator>(reduce, *a.group).value;
    const HeldValue& y = At<ExtremeAccumulator>(reduce, *b.group).value;
    return CompareForSort(x.type(), x.stored(), y.type(), y.stored());
  }
  if (a.floor != b.floor) return three_way(a.floor, b.floor);
  if (a.rest != b.rest) return three_way(a.rest, b.rest);
  return three_way(a.kind, b.kind);
}

bool GroupSorter::Before(const Entry& a, const Entry& b) const {
  if (plan_.sort) {
    const int order = CompareSorted(a, b);
    if (order != 0) return plan_.sort_descending ? order > 0 : order < 0;
  }
  const int order = a.group->key(plan_).compare(b.group->key(plan_));
  return plan_.reverse ? order > 0 : order < 0;
}

// A merge sort that can pause anywhere, since all of where it stands is in members. Sort keys are
// prepared, pieces of kPieceFirst groups sorted, neighbouring pieces merged into merged_; after
// each round over all of them that takes the place of entries_.
bool GroupSorter::Step(size_t groups) {
  const auto before = [this](const Entry& a, const Entry& b) { return Before(a, b); };
  size_t left = std::max<size_t>(groups, 1);
  if (plan_.sort) {
    for (; prepared_ < entries_.size() && left > 0; --left) Prepare(&entries_[prepared_++]);
    if (prepared_ < entries_.size()) return false;
  }
  if (piece_ == 0) {
    while (pair_ < entries_.size()) {
      if (left == 0) return false;
      const size_t end = std::min(pair_ + kPieceFirst, entries_.size());
      std::sort(entries_.begin() + static_cast<ptrdiff_t>(pair_),
                entries_.begin() + static_cast<ptrdiff_t>(end), before);
      left -= std::min(left, end - pair_);
      pair_ = end;
    }
    piece_ = kPieceFirst;
    pair_ = 0;
    left_ = 0;
    right_ = std::min(piece_, entries_.size());
    merged_.clear();
  }
  while (piece_ < entries_.size()) {
    merged_.reserve(entries_.size());
    while (pair_ < entries_.size()) {
      const size_t middle = std::min(pair_ + piece_, entries_.size());
      const size_t end = std::min(pair_ + 2 * piece_, entries_.size());
      while (left_ < middle || right_ < end) {
        if (left-- == 0) return false;
        const bool from_right =
            left_ == middle || (right_ < end && before(entries_[right_], entries_[left_]));
        merged_.push_back(entries_[from_right ? right_++ : left_++]);
      }
      pair_ = end;
      left_ = end;
      right_ = std::min(end + piece_, entries_.size());
    }
    entries_.swap(merged_);
    merged_.clear();
    piece_ *= 2;
    pair_ = 0;
    left_ = 0;
    right_ = std::min(piece_, entries_.size());
  }
  return true;
}

}  // namespace cellar
