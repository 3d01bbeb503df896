// Accumulators as bytes, for a CAGG over several sets: the node that puts them together merges what
// each set has folded. Numbers are little-endian or varints; sums and spreads keep every bit.
#include <bit>
#include <cmath>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "engine/aggregate/accumulator.h"
#include "engine/aggregate/aggregate_plan.h"

namespace cellar {
namespace {

template <typename T>
T& HeldAt(char* accumulator) {
  return *std::launder(reinterpret_cast<T*>(accumulator));
}
template <typename T>
const T& HeldAt(const char* accumulator) {
  return *std::launder(reinterpret_cast<const T*>(accumulator));
}

void PutByte(std::string* to, uint8_t byte) { to->push_back(static_cast<char>(byte)); }
bool GetByte(std::string_view* from, uint8_t* byte) {
  if (from->empty()) return false;
  *byte = static_cast<uint8_t>(from->front());
  from->remove_prefix(1);
  return true;
}

void PutSigned(std::string* to, int64_t value) { PutFixed64(to, static_cast<uint64_t>(value)); }
bool GetSigned(std::string_view* from, int64_t* value) {
  uint64_t bits = 0;
  if (!GetFixed64(from, &bits)) return false;
  *value = static_cast<int64_t>(bits);
  return true;
}

void PutDouble(std::string* to, double value) { PutFixed64(to, std::bit_cast<uint64_t>(value)); }
bool GetDouble(std::string_view* from, double* value) {
  uint64_t bits = 0;
  if (!GetFixed64(from, &bits)) return false;
  *value = std::bit_cast<double>(bits);
  return true;
}

// By 64 bits of its fraction, which is all that there are, and the exponent of what is finite.
constexpr int kFractionBits{64};
constexpr int64_t kNoNumber{INT64_MAX};
void PutLongDouble(std::string* to, long double value) {
  if (!std::isfinite(value)) {
    PutSigned(to, kNoNumber);
    return PutDouble(to, static_cast<double>(value));
  }
  int exponent = 0;
  const long double fraction = std::frexp(std::fabs(value), &exponent);
  PutSigned(to, exponent);
  PutByte(to, std::signbit(value) ? 1 : 0);
  PutFixed64(to, static_cast<uint64_t>(std::ldexp(fraction, kFractionBits)));
}
bool GetLongDouble(std::string_view* from, long double* value) {
  int64_t exponent = 0;
  if (!GetSigned(from, &exponent)) return false;
  if (exponent == kNoNumber) {
    double narrow = 0;
    if (!GetDouble(from, &narrow)) return false;
    *value = narrow;
    return true;
  }
  uint8_t negative = 0;
  uint64_t fraction = 0;
  if (exponent < -20'000 || exponent > 20'000 || !GetByte(from, &negative) ||
      !GetFixed64(from, &fraction))
    return false;
  *value =
      std::ldexp(static_cast<long double>(fraction), static_cast<int>(exponent) - kFractionBits);
  if (negative != 0) *value = -*value;
  return true;
}

void PutNumber(std::string* to, const Number& number) {
  PutByte(to, number.is_integer ? 1 : 0);
  PutFixed64(to, static_cast<uint64_t>(number.integer));
  PutFixed64(to, static_cast<uint64_t>(number.integer >> 64));
  PutDouble(to, number.floating);
}
bool GetNumber(std::string_view* from, Number* number) {
  uint8_t is_integer = 0;
  uint64_t low = 0;
  uint64_t high = 0;
  if (!GetByte(from, &is_integer) || !GetFixed64(from, &low) || !GetFixed64(from, &high) ||
      !GetDouble(from, &number->floating))
    return false;
  number->is_integer = is_integer != 0;
  number->integer = static_cast<int128_t>(static_cast<uint128_t>(high) << 64 | low);
  return true;
}

bool GetType(std::string_view* from, ValueType* type) {
  uint8_t byte = 0;
  if (!GetByte(from, &byte)) return false;
  *type = static_cast<ValueType>(byte);
  return byte <= static_cast<uint8_t>(ValueType::kHll);
}

}  // namespace

void LongAccumulator::Encode(std::string* to) const {
  LongAccumulator carried = *this;
  carried.Carry();
  for (const int64_t digit : carried.digits_) PutSigned(to, digit);
}

bool LongAccumulator::Decode(std::string_view* from) {
  for (int64_t& digit : digits_)
    if (!GetSigned(from, &digit)) return false;
  return true;
}

void ExactSum::Encode(std::string* to) const {
  for (const uint64_t half : {integers_low_, integers_high_, units_low_, units_high_})
    PutFixed64(to, half);
  PutByte(to, has_doubles_);
  PutByte(to, has_infinity_);
  PutByte(to, has_minus_infinity_);
  PutByte(to, rare_ != nullptr ? 1 : 0);
  if (rare_ != nullptr) rare_->Encode(to);
}

bool ExactSum::Decode(std::string_view* from) {
  for (uint64_t* const half : {&integers_low_, &integers_high_, &units_low_, &units_high_})
    if (!GetFixed64(from, half)) return false;
  uint8_t has_rare = 0;
  if (!GetByte(from, &has_doubles_) || !GetByte(from, &has_infinity_) ||
      !GetByte(from, &has_minus_infinity_) || !GetByte(from, &has_rare))
    return false;
  return has_rare == 0 || Rare().Decode(from);
}

void Growth::Encode(std::string* to) const {
  sum_.Encode(to);
  PutSigned(to, first_micros_);
  PutSigned(to, last_micros_);
}

bool Growth::Decode(std::string_view* from) {
  return sum_.Decode(from) && GetSigned(from, &first_micros_) && GetSigned(from, &last_micros_);
}

void Spread::Encode(std::string* to) const {
  Spread folded = *this;
  folded.Fold();
  PutVarint64(to, folded.folded_);
  PutByte(to, folded.infinite_ ? 1 : 0);
  PutNumber(to, folded.origin_);
  PutLongDouble(to, folded.mean_);
  PutLongDouble(to, folded.squares_);
}

bool Spread::Decode(std::string_view* from) {
  uint8_t infinite = 0;
  if (!GetVarint64(from, &folded_) || !GetByte(from, &infinite)) return false;
  infinite_ = infinite != 0;
  return GetNumber(from, &origin_) && GetLongDouble(from, &mean_) && GetLongDouble(from, &squares_);
}

void TimedValue::Encode(std::string* to) const {
  PutByte(to, held_ ? 1 : 0);
  if (!held_) return;
  PutByte(to, static_cast<uint8_t>(type_));
  PutVarint64(to, family_);
  PutSigned(to, timestamp_micros_);
  PutLengthPrefixed(to, row_key());
  PutLengthPrefixed(to, qualifier());
  PutLengthPrefixed(to, stored());
}

bool TimedValue::Decode(std::string_view* from) {
  uint8_t held = 0;
  if (!GetByte(from, &held)) return false;
  if (held == 0) return true;
  ValueType type = ValueType::kBytes;
  CellPlace place;
  uint64_t family = 0;
  std::string_view value;
  if (!GetType(from, &type) || !GetVarint64(from, &family) ||
      !GetSigned(from, &place.timestamp_micros) || !GetLengthPrefixed(from, &place.row_key) ||
      !GetLengthPrefixed(from, &place.qualifier) || !GetLengthPrefixed(from, &value))
    return false;
  place.family = family;
  (void)Hold(place, type, value);
  return true;
}

// Buckets as they were encoded while there was nothing else; numbers behind a count that no group
// can have, which a node of such a version refuses.
constexpr uint64_t kExactNumbers{UINT64_MAX};
constexpr int64_t kInfinityBits{0x7ff0000000000000};
void QuantileCounts::Encode(std::string* to) const {
  if (exact_) PutVarint64(to, kExactNumbers);
  PutVarint64(to, counts_.size());
  for (const auto& [key, count] : counts_.Sorted()) {
    PutSigned(to, key);
    PutVarint64(to, count);
  }
}

bool QuantileCounts::Decode(std::string_view* from) {
  uint64_t left = 0;
  if (!GetVarint64(from, &left)) return false;
  exact_ = left == kExactNumbers;
  if (exact_ && (!GetVarint64(from, &left) || left > kQuantileExactMax)) return false;
  for (; left > 0; --left) {
    int64_t key = 0;
    uint64_t count = 0;
    if (!GetSigned(from, &key) || !GetVarint64(from, &count) || count == 0) return false;
    if (exact_ && (key > kInfinityBits || key < -kInfinityBits)) return false;
    counts_.Add(key, count);
  }
  return true;
}

void DistinctValues::Encode(std::string* to) const {
  PutVarint64(to, used_);
  for (const Hash& hash : slots_) {
    if (hash == Hash()) continue;
    PutFixed64(to, hash.low);
    PutFixed64(to, hash.high);
  }
  std::string state;
  for (const HllSketch* const sketch : {sketch_.get(), states_.get()}) {
    state.clear();
    if (sketch != nullptr) sketch->EncodeTo(&state);
    PutLengthPrefixed(to, state);
  }
}

bool DistinctValues::Decode(std::string_view* from) {
  uint64_t left = 0;
  if (!GetVarint64(from, &left) || left > kDistinctExactMax) return false;
  for (; left > 0; --left) {
    Hash hash;
    if (!GetFixed64(from, &hash.low) || !GetFixed64(from, &hash.high)) return false;
    AddHash(hash);
  }
  for (std::unique_ptr<HllSketch>* const sketch : {&sketch_, &states_}) {
    std::string_view state;
    if (!GetLengthPrefixed(from, &state) || (!state.empty() && !HllIsCanonical(state)))
      return false;
    if (!state.empty()) *sketch = std::make_unique<HllSketch>(state);
  }
  return true;
}

void EncodeAccumulator(const PlannedReduce& reduce, const char* accumulator, std::string* to) {
  switch (reduce.function) {
    case Reduce::Function::kRows:
      return PutVarint64(to, HeldAt<RowsAccumulator>(accumulator).rows);
    case Reduce::Function::kCount:
      return PutVarint64(to, HeldAt<CountAccumulator>(accumulator).cells);
    case Reduce::Function::kSum:
      return HeldAt<SumAccumulator>(accumulator).sum.Encode(to);
    case Reduce::Function::kAvg:
      PutVarint64(to, HeldAt<AvgAccumulator>(accumulator).cells);
      return HeldAt<AvgAccumulator>(accumulator).sum.Encode(to);
    case Reduce::Function::kMin:
    case Reduce::Function::kMax: {
      const HeldValue& value = HeldAt<ExtremeAccumulator>(accumulator).value;
      PutByte(to, value.empty() ? 0 : 1);
      if (value.empty()) return;
      PutByte(to, static_cast<uint8_t>(value.type()));
      return PutLengthPrefixed(to, value.stored());
    }
    case Reduce::Function::kFirst:
    case Reduce::Function::kLast:
      return HeldAt<TimedAccumulator>(accumulator).value->Encode(to);
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance:
      return HeldAt<SpreadAccumulator>(accumulator).spread->Encode(to);
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate:
      return HeldAt<GrowthAccumulator>(accumulator).growth->Encode(to);
    case Reduce::Function::kDistinct:
      return HeldAt<DistinctAccumulator>(accumulator).values->Encode(to);
    case Reduce::Function::kQuantile:
      return HeldAt<QuantileAccumulator>(accumulator).counts->Encode(to);
    case Reduce::Function::kHistogram:
      for (size_t i = 0; i <= reduce.bounds.size(); ++i)
        PutVarint64(to, HeldAt<HistogramAccumulator>(accumulator).counts[i]);
      return;
  }
}

bool DecodeAccumulator(const PlannedReduce& reduce, std::string_view* from, char* accumulator) {
  switch (reduce.function) {
    case Reduce::Function::kRows:
      return GetVarint64(from, &HeldAt<RowsAccumulator>(accumulator).rows);
    case Reduce::Function::kCount:
      return GetVarint64(from, &HeldAt<CountAccumulator>(accumulator).cells);
    case Reduce::Function::kSum:
      return HeldAt<SumAccumulator>(accumulator).sum.Decode(from);
    case Reduce::Function::kAvg:
      return GetVarint64(from, &HeldAt<AvgAccumulator>(accumulator).cells) &&
             HeldAt<AvgAccumulator>(accumulator).sum.Decode(from);
    case Reduce::Function::kMin:
    case Reduce::Function::kMax: {
      uint8_t held = 0;
      ValueType type = ValueType::kBytes;
      std::string_view stored;
      if (!GetByte(from, &held)) return false;
      if (held == 0) return true;
      if (!GetType(from, &type) || !GetLengthPrefixed(from, &stored)) return false;
      HeldAt<ExtremeAccumulator>(accumulator).value.Set(type, stored);
      return true;
    }
    case Reduce::Function::kFirst:
    case Reduce::Function::kLast:
      return HeldAt<TimedAccumulator>(accumulator).value->Decode(from);
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance:
      return HeldAt<SpreadAccumulator>(accumulator).spread->Decode(from);
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate:
      return HeldAt<GrowthAccumulator>(accumulator).growth->Decode(from);
    case Reduce::Function::kDistinct:
      return HeldAt<DistinctAccumulator>(accumulator).values->Decode(from);
    case Reduce::Function::kQuantile:
      return HeldAt<QuantileAccumulator>(accumulator).counts->Decode(from);
    case Reduce::Function::kHistogram:
      for (size_t i = 0; i <= reduce.bounds.size(); ++i)
        if (!GetVarint64(from, &HeldAt<HistogramAccumulator>(accumulator).counts[i])) return false;
      return true;
  }
  return false;
}

}  // namespace cellar
