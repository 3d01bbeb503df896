// See accumulator.h.
#include "engine/aggregate/accumulator.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/inline.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/table/version_walk.h"

namespace cellar {
namespace {

constexpr int kQuantileBits{7};
constexpr int kQuantileShift{52 - kQuantileBits};
constexpr uint64_t kSignBit{uint64_t{1} << 63};
// Numbers below the normal ones are lifted by so many powers of two, and all keys are above 0.
constexpr int kLift{60};
constexpr int64_t kLiftedKeys{int64_t{kLift} << kQuantileBits};
constexpr int64_t kNormalKeyMin{int64_t{1} << kQuantileBits};
constexpr size_t kKnownSlotsFirst{8};

// The lowest bits of the product are mixed least, so they are dropped: the table takes the lowest
// of the rest. Those of a float's bits say nothing, mostly.
size_t HashOf(int64_t key) {
  const auto bits = static_cast<uint64_t>(key);
  return static_cast<size_t>((bits ^ bits >> 32) * 0x9e3779b97f4a7c15ULL >> 32);
}

template <typename T>
T& At(char* accumulator) {
  return *std::launder(reinterpret_cast<T*>(accumulator));
}
template <typename T>
const T& At(const char* accumulator) {
  return *std::launder(reinterpret_cast<const T*>(accumulator));
}

// Is it a cell that SUM and its like take? Fast for integers.
CELLAR_INLINE bool ReadCellNumber(const FoldCell& cell, Number* number) {
  if (IsIntegerType(cell.type)) [[likely]] {
    number->is_integer = true;
    number->integer = LoadInteger(cell.type, cell.stored);
    return true;
  }
  return ReadNumber(cell.type, cell.stored, cell.text_counts, number);
}

size_t AddToExtreme(Reduce::Function function, ValueType type, std::string_view stored,
                    HeldValue* value) {
  if (!value->empty()) {
    const int order = CompareValues(type, stored, value->type(), value->stored());
    if (function == Reduce::Function::kMin ? order >= 0 : order <= 0) return 0;
  }
  const size_t before = value->empty() ? 0 : value->heap_bytes();
  value->Set(type, stored);
  return value->heap_bytes() - before;  // modulo 2^64: may be negative
}

TimedValue::Wanted WantedOf(Reduce::Function function) {
  return function == Reduce::Function::kFirst ? TimedValue::Wanted::kFirst
                                              : TimedValue::Wanted::kLast;
}

template <typename T, typename Change>
size_t Grown(T* held, Change change) {
  const size_t before = held->heap_bytes();
  change();
  return held->heap_bytes() - before;
}

}  // namespace

// --- KeyCounts

void KeyCounts::Grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>());
  slots_.resize(std::max(kKnownSlotsFirst, 2 * old.size()));
  used_ = 0;
  total_ = 0;
  for (const Slot& slot : old) {
    if (slot.count > 0) Add(slot.key, slot.count);
  }
}

void KeyCounts::Add(int64_t key, uint64_t count) {
  if (4 * (used_ + 1) > 3 * slots_.size()) {
    const uint64_t total = total_;
    Grow();
    total_ = total;
  }
  const size_t mask = slots_.size() - 1;
  size_t at = HashOf(key) & mask;
  while (slots_[at].count > 0 && slots_[at].key != key) at = (at + 1) & mask;
  if (slots_[at].count == 0) ++used_;
  slots_[at].key = key;
  slots_[at].count += count;
  total_ += count;
}

std::vector<std::pair<int64_t, uint64_t>> KeyCounts::Sorted() const {
  std::vector<std::pair<int64_t, uint64_t>> sorted;
  sorted.reserve(used_);
  for (const Slot& slot : slots_) {
    if (slot.count > 0) sorted.emplace_back(slot.key, slot.count);
  }
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// --- DistinctValues

void DistinctValues::AddValue(ValueType type, std::string_view stored) {
  static thread_local std::string key;
  key.clear();
  AppendValueKey(type, stored, &key);
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  AddHash({hash.low64, hash.high64});
}

// Exact up to kDistinctExactMax values, by a table of their hashes (of 128 bits, so that two values
// with one hash need not be feared); beyond, a sketch.
void DistinctValues::AddHash(const Hash& hash) {
  if (sketch_ != nullptr) {
    (void)sketch_->Add(HllInputOfHash(hash.low));
    return;
  }
  const auto find = [this](const Hash& wanted) {
    const size_t mask = slots_.size() - 1;
    size_t at = wanted.low & mask;
    while (slots_[at] != Hash() && slots_[at] != wanted) at = (at + 1) & mask;
    return at;
  };
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Hash> old = std::exchange(slots_, std::vector<Hash>());
    slots_.resize(std::max(kKnownSlotsFirst, 2 * old.size()));
    for (const Hash& kept : old) {
      if (kept != Hash()) slots_[find(kept)] = kept;
    }
  }
  Hash& slot = slots_[find(hash)];
  if (slot == hash) return;
  slot = hash;
  if (++used_ > kDistinctExactMax) GoOver();
}

void DistinctValues::GoOver() {
  sketch_ = std::make_unique<HllSketch>();
  for (const Hash& hash : slots_) {
    if (hash != Hash()) (void)sketch_->Add(HllInputOfHash(hash.low));
  }
  slots_ = std::vector<Hash>();
  used_ = 0;
}

void DistinctValues::AddState(std::string_view state) {
  if (states_ == nullptr) states_ = std::make_unique<HllSketch>();
  states_->Merge(state);
}

void DistinctValues::Add(const DistinctValues& other) {
  if (other.states_ != nullptr) {
    if (states_ == nullptr) states_ = std::make_unique<HllSketch>();
    states_->Merge(*other.states_);
  }
  if (other.sketch_ != nullptr) {
    if (sketch_ == nullptr) GoOver();
    sketch_->Merge(*other.sketch_);
  }
  for (const Hash& hash : other.slots_) {
    if (hash != Hash()) AddHash(hash);
  }
}

uint64_t DistinctValues::Count() const {
  return (sketch_ != nullptr ? sketch_->Estimate() : used_) +
         (states_ != nullptr ? states_->Estimate() : 0);
}

size_t DistinctValues::heap_bytes() const {
  return slots_.capacity() * sizeof(Hash) + (sketch_ != nullptr ? sizeof(HllSketch) : 0) +
         (states_ != nullptr ? sizeof(HllSketch) : 0);
}

// --- QUANTILE

// The exponent and the highest 7 bits of the mantissa: numbers of one key differ by less than 1/128
// of them. Numbers below the normal ones have no leading bit, and are scaled first to be as exact.
int64_t QuantileKey(double value) {
  auto bits = std::bit_cast<uint64_t>(value);
  const bool negative = (bits & kSignBit) != 0;
  bits &= ~kSignBit;
  if (bits == 0) return 0;
  auto key = static_cast<int64_t>(bits >> kQuantileShift);
  if (key >= kNormalKeyMin) {
    key += kLiftedKeys;
  } else {
    const double lifted = std::ldexp(std::bit_cast<double>(bits), kLift);
    key = static_cast<int64_t>(std::bit_cast<uint64_t>(lifted) >> kQuantileShift);
  }
  return negative ? -key : key;
}

double QuantileValue(int64_t key) {
  if (key == 0) return 0;
  const bool negative = key < 0;
  if (negative) key = -key;
  double value = 0;
  if (key >= kLiftedKeys + kNormalKeyMin) {
    value = std::bit_cast<double>(static_cast<uint64_t>(key - kLiftedKeys) << kQuantileShift);
  } else {
    value = std::ldexp(std::bit_cast<double>(static_cast<uint64_t>(key) << kQuantileShift), -kLift);
  }
  return negative ? -value : value;
}

namespace {

// Of a number, so that keys are in the order of numbers; the two zeros are one.
int64_t ExactKey(double number) {
  if (number == 0) return 0;
  const auto bits = static_cast<int64_t>(std::bit_cast<uint64_t>(number) & ~kSignBit);
  return std::signbit(number) ? -bits : bits;
}

double ExactValue(int64_t key) {
  const auto value = std::bit_cast<double>(static_cast<uint64_t>(key < 0 ? -key : key));
  return key < 0 ? -value : value;
}

}  // namespace

void QuantileCounts::Add(double number) {
  if (exact_)
    AddKey(ExactKey(number), 1);
  else
    counts_.Add(QuantileKey(number), 1);
}

void QuantileCounts::AddKey(int64_t key, uint64_t count) {
  counts_.Add(key, count);
  if (counts_.size() > kQuantileExactMax) [[unlikely]]
    GoOver();
}

// What is there then does not depend on the order in which numbers came.
void QuantileCounts::GoOver() {
  const KeyCounts numbers = std::exchange(counts_, KeyCounts());
  exact_ = false;
  for (const auto& [key, count] : numbers.Sorted())
    counts_.Add(QuantileKey(ExactValue(key)), count);
}

void QuantileCounts::Add(const QuantileCounts& other) {
  if (exact_ && !other.exact_) GoOver();
  for (const auto& [key, count] : other.counts_.Sorted()) {
    if (exact_)
      AddKey(key, count);
    else
      counts_.Add(other.exact_ ? QuantileKey(ExactValue(key)) : key, count);
  }
}

std::vector<std::pair<double, uint64_t>> QuantileCounts::Sorted() const {
  std::vector<std::pair<double, uint64_t>> sorted;
  sorted.reserve(counts_.size());
  for (const auto& [key, count] : counts_.Sorted())
    sorted.emplace_back(exact_ ? ExactValue(key) : QuantileValue(key), count);
  return sorted;
}

// --- HeldValue

void HeldValue::Set(ValueType type, std::string_view stored) {
  char* heap = nullptr;
  if (stored.size() > sizeof(inline_)) {
    heap = new char[stored.size()];
    std::memcpy(heap, stored.data(), stored.size());
  }
  char near[sizeof(inline_)] = {};
  if (heap == nullptr && !stored.empty()) std::memcpy(near, stored.data(), stored.size());
  Free();
  held_ = true;
  type_ = type;
  bytes_ = stored.size();
  if (heap != nullptr)
    heap_ = heap;
  else
    std::memcpy(inline_, near, sizeof(near));
}

void HeldValue::Free() {
  if (held_ && bytes_ > sizeof(inline_)) delete[] heap_;
  held_ = false;
  bytes_ = 0;
}

// --- accumulators

size_t AccumulatorBytes(Reduce::Function function) {
  switch (function) {
    case Reduce::Function::kRows:
      return sizeof(RowsAccumulator);
    case Reduce::Function::kCount:
      return sizeof(CountAccumulator);
    case Reduce::Function::kSum:
      return sizeof(SumAccumulator);
    case Reduce::Function::kAvg:
      return sizeof(AvgAccumulator);
    case Reduce::Function::kMin:
    case Reduce::Function::kMax:
      return sizeof(ExtremeAccumulator);
    default:
      return sizeof(void*);
  }
}

size_t AccumulatorBytesMax(const PlannedReduce& reduce) {
  switch (reduce.function) {
    case Reduce::Function::kRows:
    case Reduce::Function::kCount:
      return AccumulatorBytes(reduce.function);
    case Reduce::Function::kSum:
    case Reduce::Function::kAvg:
      return AccumulatorBytes(reduce.function) + sizeof(LongAccumulator);
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance:
      return AccumulatorBytes(reduce.function) + sizeof(Spread);
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate:
      return AccumulatorBytes(reduce.function) + sizeof(Growth) + sizeof(LongAccumulator);
    case Reduce::Function::kDistinct:  // the table, while it grows, and two sketches
      return AccumulatorBytes(reduce.function) + sizeof(DistinctValues) + 2 * sizeof(HllSketch) +
             8 * kDistinctExactMax * sizeof(uint64_t) * 2;
    case Reduce::Function::kHistogram:
      return AccumulatorBytes(reduce.function) + (reduce.bounds.size() + 1) * sizeof(uint64_t);
    default:
      return SIZE_MAX;
  }
}

// Accumulators of a group lie side by side in its memory. What a function needs beyond that is
// allocated here, and its size returned, so that agg-max-memory counts it.
size_t BeginAccumulator(const PlannedReduce& reduce, char* accumulator) {
  switch (reduce.function) {
    case Reduce::Function::kRows:
      new (accumulator) RowsAccumulator;
      return 0;
    case Reduce::Function::kCount:
      new (accumulator) CountAccumulator;
      return 0;
    case Reduce::Function::kSum:
      new (accumulator) SumAccumulator;
      return 0;
    case Reduce::Function::kAvg:
      new (accumulator) AvgAccumulator;
      return 0;
    case Reduce::Function::kMin:
    case Reduce::Function::kMax:
      new (accumulator) ExtremeAccumulator;
      return 0;
    case Reduce::Function::kFirst:
    case Reduce::Function::kLast:
      new (accumulator) TimedAccumulator{new TimedValue};
      return sizeof(TimedValue);
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance:
      new (accumulator) SpreadAccumulator{new Spread};
      return sizeof(Spread);
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate:
      new (accumulator) GrowthAccumulator{new Growth};
      return sizeof(Growth);
    case Reduce::Function::kDistinct:
      new (accumulator) DistinctAccumulator{new DistinctValues};
      return sizeof(DistinctValues);
    case Reduce::Function::kQuantile:
      new (accumulator) QuantileAccumulator{new QuantileCounts};
      return sizeof(QuantileCounts);
    case Reduce::Function::kHistogram: {
      const size_t counts = reduce.bounds.size() + 1;
      new (accumulator) HistogramAccumulator{new uint64_t[counts]()};
      return counts * sizeof(uint64_t);
    }
  }
  return 0;
}

// The counterpart: accumulators have no destructors, as the memory around them is freed in one go.
void EndAccumulator(const PlannedReduce& reduce, char* accumulator) {
  switch (reduce.function) {
    case Reduce::Function::kSum:
      return At<SumAccumulator>(accumulator).sum.Free();
    case Reduce::Function::kAvg:
      return At<AvgAccumulator>(accumulator).sum.Free();
    case Reduce::Function::kMin:
    case Reduce::Function::kMax:
      return At<ExtremeAccumulator>(accumulator).value.Free();
    case Reduce::Function::kFirst:
    case Reduce::Function::kLast:
      delete At<TimedAccumulator>(accumulator).value;
      return;
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance:
      delete At<SpreadAccumulator>(accumulator).spread;
      return;
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate:
      delete At<GrowthAccumulator>(accumulator).growth;
      return;
    case Reduce::Function::kDistinct:
      delete At<DistinctAccumulator>(accumulator).values;
      return;
    case Reduce::Function::kQuantile:
      delete At<QuantileAccumulator>(accumulator).counts;
      return;
    case Reduce::Function::kHistogram:
      delete[] At<HistogramAccumulator>(accumulator).counts;
      return;
    default:
      return;
  }
}

namespace {

// Where cells come from, one after the other.
struct OneCell {
  const FoldCell* left;

  static constexpr size_t size() { return 1; }
  static constexpr bool rows_differ() { return false; }
  CELLAR_INLINE const FoldCell* Next() { return std::exchange(left, nullptr); }
};
struct StoredCells {
  const FoldRun& run;
  FoldCell cell{};
  size_t at{0};

  explicit StoredCells(const FoldRun& its_run) : run(its_run) {
    cell.text_counts = run.text_counts;
    cell.row = run.row;
  }
  size_t size() const { return run.values.size(); }
  bool rows_differ() const { return run.row == 0; }
  CELLAR_INLINE const FoldCell* Next() {
    if (at == run.values.size()) return nullptr;
    CellValue read;
    ReadStoredCell(run.values[at++], run.plain, &read);
    cell.type = read.type;
    cell.stored = read.stored;
    return &cell;
  }
};

// Is the cell, as it is stored, a signed integer without flags?
static_assert(static_cast<uint8_t>(ValueType::kI8) == 4 &&
              static_cast<uint8_t>(ValueType::kI64) == 7);
CELLAR_INLINE bool IsSignedCell(std::string_view value) {
  return !value.empty() && (static_cast<uint8_t>(value[0]) & ~uint8_t{3}) == 4;
}
// LoadInteger of a signed type; mostly one load.
CELLAR_INLINE int64_t LoadSigned(std::string_view stored) {
  if (stored.size() == sizeof(int32_t)) return LoadLittleEndian<int32_t>(stored.data());
  return static_cast<int64_t>(LoadInteger(ValueType::kI64, stored));
}

// What the next ones come to, as far as they are signed integers that stand there as they are, as
// mostly all do; *count is how many.
CELLAR_INLINE int128_t AddSigned(OneCell* /*cells*/, uint64_t* /*count*/) { return 0; }
CELLAR_INLINE int128_t AddSigned(StoredCells* cells, uint64_t* count) {
  const std::span<const std::string_view> values = cells->run.values;
  const size_t first = cells->at;
  size_t at = first;
  int128_t sum = 0;
  for (; at < values.size(); ++at) {
    const std::string_view value = values[at];
    if (!IsSignedCell(value)) break;
    sum += LoadSigned(value.substr(1));
  }
  cells->at = at;
  *count += at - first;
  return sum;
}

// The next one that is a number; the others are counted in *skipped.
template <typename Cells>
CELLAR_INLINE const FoldCell* NextNumber(Cells* cells, uint64_t* skipped, Number* number) {
  while (const FoldCell* const cell = cells->Next()) {
    if (ReadCellNumber(*cell, number)) [[likely]]
      return cell;
    ++*skipped;
  }
  return nullptr;
}

// Returns how many numbers there were. Integers are added up apart, as 128 bits hold any number of
// them.
template <typename Cells>
CELLAR_INLINE uint64_t AddToSum(Cells cells, ExactSum* sum, uint64_t* skipped) {
  uint64_t numbers = 0;
  int128_t integers = AddSigned(&cells, &numbers);
  while (const FoldCell* const cell = cells.Next()) {
    if (IsIntegerType(cell->type)) [[likely]] {
      integers += LoadInteger(cell->type, cell->stored);
      ++numbers;
      continue;
    }
    Number number;
    if (!ReadNumber(cell->type, cell->stored, cell->text_counts, &number)) {
      ++*skipped;
      continue;
    }
    ++numbers;
    if (number.is_integer)
      integers += number.integer;
    else
      sum->AddDouble(number.floating);
  }
  sum->AddInteger(integers);
  return numbers;
}

// Of functions that take numbers alone.
template <typename Cells>
CELLAR_INLINE size_t AddNumbers(const PlannedReduce& reduce, Cells cells, char* accumulator,
                                uint64_t* skipped) {
  Number number;
  switch (reduce.function) {
    case Reduce::Function::kSum: {
      ExactSum* sum = &At<SumAccumulator>(accumulator).sum;
      const size_t before = sum->heap_bytes();
      (void)AddToSum(cells, sum, skipped);
      return sum->heap_bytes() - before;
    }
    case Reduce::Function::kAvg: {
      auto& avg = At<AvgAccumulator>(accumulator);
      const size_t before = avg.sum.heap_bytes();
      avg.cells += AddToSum(cells, &avg.sum, skipped);
      return avg.sum.heap_bytes() - before;
    }
    case Reduce::Function::kQuantile: {
      QuantileCounts* counts = At<QuantileAccumulator>(accumulator).counts;
      const size_t before = counts->heap_bytes();
      while (NextNumber(&cells, skipped, &number) != nullptr) counts->Add(ToDouble(number));
      return counts->heap_bytes() - before;
    }
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance: {
      Spread* spread = At<SpreadAccumulator>(accumulator).spread;
      while (NextNumber(&cells, skipped, &number) != nullptr) spread->Add(number);
      return 0;
    }
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate: {
      Growth* growth = At<GrowthAccumulator>(accumulator).growth;
      const size_t before = growth->heap_bytes();
      while (const FoldCell* const cell = NextNumber(&cells, skipped, &number))
        growth->Add(*cell->place, number);
      return growth->heap_bytes() - before;
    }
    default: {
      CELLAR_ASSERT(reduce.function == Reduce::Function::kHistogram);
      uint64_t* counts = At<HistogramAccumulator>(accumulator).counts;
      while (const FoldCell* const cell = NextNumber(&cells, skipped, &number))
        ++counts[reduce.bounds.NotAbove(cell->type, number)];
      return 0;
    }
  }
}

// First the functions that take every cell, then those that need a number: a cell that is none adds
// to *skipped and changes nothing. What the heap has grown by is returned, so that agg-max-memory
// can bound it.
template <typename Cells>
CELLAR_INLINE size_t AddCells(const PlannedReduce& reduce, Cells cells, char* accumulator,
                              uint64_t* skipped) {
  size_t grown = 0;
  switch (reduce.function) {
    case Reduce::Function::kRows: {
      auto& rows = At<RowsAccumulator>(accumulator);
      if (cells.rows_differ()) {
        rows.rows += cells.size();
        return 0;
      }
      while (const FoldCell* const cell = cells.Next()) {
        if (rows.last_row != cell->row) ++rows.rows;
        rows.last_row = cell->row;
      }
      return 0;
    }
    case Reduce::Function::kCount:
      At<CountAccumulator>(accumulator).cells += cells.size();
      return 0;
    case Reduce::Function::kMin:
    case Reduce::Function::kMax:
      while (const FoldCell* const cell = cells.Next()) {
        ValueBuffer buffer;
        const SeenValue seen = SeenOf(cell->type, cell->stored, &buffer);
        grown += AddToExtreme(reduce.function, seen.type, seen.stored,
                              &At<ExtremeAccumulator>(accumulator).value);
      }
      return grown;
    case Reduce::Function::kFirst:
    case Reduce::Function::kLast: {
      TimedValue* value = At<TimedAccumulator>(accumulator).value;
      while (const FoldCell* const cell = cells.Next()) {
        if (!value->YieldsTo(WantedOf(reduce.function), *cell->place)) continue;
        ValueBuffer buffer;
        const SeenValue seen = SeenOf(cell->type, cell->stored, &buffer);
        grown += value->Hold(*cell->place, seen.type, seen.stored);
      }
      return grown;
    }
    case Reduce::Function::kDistinct: {
      DistinctValues* values = At<DistinctAccumulator>(accumulator).values;
      const size_t before = values->heap_bytes();
      while (const FoldCell* const cell = cells.Next()) {
        if (cell->type == ValueType::kHll)
          values->AddState(cell->stored);
        else
          values->AddValue(cell->type, cell->stored);
      }
      return values->heap_bytes() - before;
    }
    default:
      return AddNumbers(reduce, cells, accumulator, skipped);
  }
}

}  // namespace

size_t AddToAccumulator(const PlannedReduce& reduce, const FoldCell& cell, char* accumulator,
                        uint64_t* skipped) {
  return AddCells(reduce, OneCell{&cell}, accumulator, skipped);
}

size_t AddToAccumulator(const PlannedReduce& reduce, const FoldRun& run, char* accumulator,
                        uint64_t* skipped) {
  CELLAR_ASSERT(!WantsPlace(reduce.function));
  return AddCells(reduce, StoredCells(run), accumulator, skipped);
}

// Both have folded the same reduce over rows that the other has not seen, so numbers of rows simply
// add up. `from` stays as it is, and has to be ended by its owner.
size_t MergeAccumulator(const PlannedReduce& reduce, const char* from, char* accumulator) {
  switch (reduce.function) {
    case Reduce::Function::kRows:
      At<RowsAccumulator>(accumulator).rows += At<RowsAccumulator>(from).rows;
      return 0;
    case Reduce::Function::kCount:
      At<CountAccumulator>(accumulator).cells += At<CountAccumulator>(from).cells;
      return 0;
    case Reduce::Function::kSum: {
      ExactSum& sum = At<SumAccumulator>(accumulator).sum;
      return Grown(&sum, [&] { sum.Add(At<SumAccumulator>(from).sum); });
    }
    case Reduce::Function::kAvg: {
      auto& avg = At<AvgAccumulator>(accumulator);
      avg.cells += At<AvgAccumulator>(from).cells;
      return Grown(&avg.sum, [&] { avg.sum.Add(At<AvgAccumulator>(from).sum); });
    }
    case Reduce::Function::kMin:
    case Reduce::Function::kMax: {
      const HeldValue& value = At<ExtremeAccumulator>(from).value;
      if (value.empty()) return 0;
      return AddToExtreme(reduce.function, value.type(), value.stored(),
                          &At<ExtremeAccumulator>(accumulator).value);
    }
    case Reduce::Function::kFirst:
    case Reduce::Function::kLast: {
      TimedValue* value = At<TimedAccumulator>(accumulator).value;
      return value->Add(WantedOf(reduce.function), *At<TimedAccumulator>(from).value);
    }
    case Reduce::Function::kStddev:
    case Reduce::Function::kVariance:
      At<SpreadAccumulator>(accumulator).spread->Add(*At<SpreadAccumulator>(from).spread);
      return 0;
    case Reduce::Function::kDelta:
    case Reduce::Function::kRate: {
      Growth* growth = At<GrowthAccumulator>(accumulator).growth;
      return Grown(growth, [&] { growth->Add(*At<GrowthAccumulator>(from).growth); });
    }
    case Reduce::Function::kDistinct: {
      DistinctValues* values = At<DistinctAccumulator>(accumulator).values;
      return Grown(values, [&] { values->Add(*At<DistinctAccumulator>(from).values); });
    }
    case Reduce::Function::kQuantile: {
      QuantileCounts* counts = At<QuantileAccumulator>(accumulator).counts;
      return Grown(counts, [&] { counts->Add(*At<QuantileAccumulator>(from).counts); });
    }
    case Reduce::Function::kHistogram: {
      const uint64_t* counts = At<HistogramAccumulator>(from).counts;
      for (size_t i = 0; i <= reduce.bounds.size(); ++i)
        At<HistogramAccumulator>(accumulator).counts[i] += counts[i];
      return 0;
    }
  }
  return 0;
}

}  // namespace cellar
